// Package discordtest is something that behaves like Discord, for tests: its REST API and its gateway on a port of this machine.
//
// A [Server] has people, channels and messages; a test plays the people ([Server.Say], [Server.Click], [Server.Submit]), looks at
// what the app did ([Server.Messages], [Server.Calls]) and makes Discord misbehave ([Server.Fail], [Server.Next],
// [Server.Silence]). It refuses what Discord is known to refuse.
package discordtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"nudge/bot/bottest/stage"
)

// Who and what there is in the beginning. Others are added by [Server.AddUser] and [Server.AddChannel].
const (
	Token = "test.token"
	Bot   = "999"
	App   = "998"
	Guild = "800"
)

// Options say how a Server behaves. The zero value works.
type Options struct {
	Beat   time.Duration // the interval of beats; 1 s
	Answer time.Duration // in which an interaction has to be answered first; 3 s
	Token  time.Duration // in which an interaction can be answered further; 15 min
	Nonce  time.Duration // in which a nonce is known; 5 min
	Blind  bool          // the app may not read what is said
	Limits bool          // calls are limited as Discord's are
	Lacks  int64         // the permissions that the bot does not have in the server
	Alone  bool          // the bot is in no server
}

// Server is a Discord. Its methods may be called concurrently.
type Server struct {
	stage.Stage[Fault] // calls go by their routes

	http    *httptest.Server
	options Options
	closing chan struct{}
	links   sync.WaitGroup

	mu           sync.Mutex
	lastID       uint64
	users        map[string]User
	channels     map[string]*channel
	calls        []Call
	windows      map[string]*window // by route and channel
	second       []time.Time        // when the last calls were made
	interactions map[string]*interaction
	commands     []json.RawMessage
	link         gateway
	nonces       map[string]nonce
	uploaded     []File // with the call that is done
}

// User is a person.
type User struct{ ID, Name string }

// Call is one call of the API.
type Call struct {
	Route  string // such as "message.create"
	Method string
	Path   string // without the version in front
	Body   json.RawMessage
	At     time.Time
	Status int
	Code   int // of the error that was answered
}

// Fault is how a call goes wrong.
type Fault struct {
	Status     int           // answered with this status
	Code       int           // and this code
	RetryAfter time.Duration // answered with status 429
	Global     bool          // for all routes
	HTML       bool          // answered as what stands in front of Discord does, with Status
	Done       bool          // what was asked for is done all the same
	Hang       bool          // there is no answer, until the caller gives up
	Cut        bool          // the connection ends without an answer

	Until <-chan struct{} // if set, the answer is given when it is closed or the caller gives up
}

type nonce struct {
	message *Message
	at      time.Time
}

// New starts a Discord.
func New(o Options) *Server {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.Beat, time.Second}, {&o.Answer, 3 * time.Second}, {&o.Token, 15 * time.Minute}, {&o.Nonce, 5 * time.Minute}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	s := &Server{
		options: o, closing: make(chan struct{}), users: map[string]User{}, channels: map[string]*channel{},
		interactions: map[string]*interaction{}, nonces: map[string]nonce{}, windows: map[string]*window{},
	}
	s.link.sessions = map[string]*session{}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Close ends all links and the server.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	conns := s.link.conns
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.socket.Close()
	}
	s.links.Wait()
	s.http.Close()
}

// APIURL is what stands for https://discord.com/api.
func (s *Server) APIURL() string { return s.http.URL + "/api" }

// AddUser adds a person.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// AddChannel adds a channel of the server in which the bot and everybody is.
func (s *Server) AddChannel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[id] = &channel{ID: id, guild: Guild}
}

// Calls are the calls of a route so far; of every route for "".
func (s *Server) Calls(route string) (out []Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if route == "" || c.Route == route {
			out = append(out, c)
		}
	}
	return out
}

// newID gives an id that is higher than all before it, and tells the time. The caller holds mu.
func (s *Server) newID() string {
	const epoch = 1420070400000
	s.lastID = max(s.lastID+1, uint64(time.Now().UnixMilli()-epoch)<<22)
	return strconv.FormatUint(s.lastID, 10)
}

func (s *Server) user(id string) map[string]any {
	if id == Bot {
		return map[string]any{"id": Bot, "username": "nudge", "global_name": nil, "bot": true}
	}
	u, ok := s.users[id]
	if !ok {
		panic(fmt.Sprintf("discordtest: there is no user %s", id))
	}
	return map[string]any{"id": u.ID, "username": "user" + u.ID, "global_name": u.Name}
}
