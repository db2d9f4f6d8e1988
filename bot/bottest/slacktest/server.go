// Package slacktest is something that behaves like Slack, for tests: its Web API and Socket Mode on a port of this machine.
//
// A [Server] has people, channels and messages; a test plays the people ([Server.Say], [Server.Click], [Server.Submit]),
// looks at what the app did ([Server.Messages], [Server.Calls]) and makes Slack misbehave ([Server.Fail],
// [Server.Disconnect]). It refuses what Slack is known to refuse.
package slacktest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"nudge/bot/bottest/stage"
)

// Who there is in the beginning. Others are added by [Server.AddUser] and [Server.AddChannel].
const (
	Team     = "T0TEST"
	BotUser  = "U0BOT"
	BotID    = "B0BOT"
	BotToken = "xoxb-test"
	AppToken = "xapp-test"
)

// Options say how a Server behaves. The zero value works.
type Options struct {
	Ping time.Duration // between the pings on a link; 5 ms
	// Trigger is how long a trigger_id is good; 3 s.
	Trigger time.Duration
	// Scopes are those that the bot token has, as Slack lists them; they are not listed when this is empty.
	Scopes string
	// Notice is for how long a link that was told that it ends goes on when there is another; 5 ms.
	Notice time.Duration
	// Limits lets calls be refused that are more than Slack takes of a method in a minute, or of messages in a channel.
	Limits bool
	// Minute is how long a minute of these limits lasts; 1 min. A second is a sixtieth of it.
	Minute time.Duration
	// Agent says that the app is declared as an agent, and so has sessions with a Stop button.
	Agent bool
	// Unsubscribed says that an agent does not hear of its Stop button, which is not shown then.
	Unsubscribed bool
	Now          func() time.Time // the time by which a status ages; time.Now
}

// Server is a Slack. Its methods may be called concurrently.
type Server struct {
	stage.Stage[Fault] // calls go by their methods

	http    *httptest.Server
	options Options
	closing chan struct{}
	links   sync.WaitGroup

	mu        sync.Mutex
	clock     int64 // microseconds; the last ts that was given
	serial    int
	users     map[string]User
	channels  map[string]*channel
	calls     []Call
	tickets   map[string]bool
	opens     int
	conns     []*conn
	silent    bool
	scatters  bool
	storm     int            // links that are unwanted
	stormy    string         // why
	acks      map[string]int // by envelope
	delivered []*delivery
	triggers  map[string]time.Time
	views     []View
	uploads   map[string]*uploading
	attached  map[string]*attached
	downloads []Download
	counted   map[string][]time.Time
	buckets   map[string]*bucket // by channel
	refused   int
	statuses  map[spot]status
	sessions  map[spot]session
	prompts   map[spot][]Prompt
	titles    map[spot]string
	homes     map[string]View // by user
}

// User is a person.
type User struct {
	ID, Name, Zone string
	Team           string // Team if ""
	Locale         string // "en-US" if ""
	Guest          bool
	Stranger       bool // of another organisation
	Bot            bool
	Enterprise     string // the organisation of several workspaces that they belong to
}

// Call is one call of the Web API.
type Call struct {
	Method string
	Form   url.Values
	JSON   map[string]any // of the methods that take JSON
	At     time.Time
	Error  string // what was answered, when it was not ok
}

// Fault is how a call goes wrong.
type Fault struct {
	Error      string        // answered with ok false
	Status     int           // answered with this status and no JSON
	RetryAfter time.Duration // answered with status 429, in whole seconds; less than 1 µs is said as 0
	Done       bool          // what was asked for is done all the same
	Hang       bool          // there is no answer, until the caller gives up
	Delay      time.Duration // before the answer
}

// New starts a Slack.
func New(o Options) *Server {
	if o.Ping <= 0 {
		o.Ping = 5 * time.Millisecond
	}
	if o.Trigger <= 0 {
		o.Trigger = 3 * time.Second
	}
	if o.Notice <= 0 {
		o.Notice = 5 * time.Millisecond
	}
	if o.Minute <= 0 {
		o.Minute = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{
		options: o, closing: make(chan struct{}), clock: time.Now().UnixMicro(),
		users: map[string]User{}, channels: map[string]*channel{}, tickets: map[string]bool{},
		triggers: map[string]time.Time{}, uploads: map[string]*uploading{}, attached: map[string]*attached{},
		counted: map[string][]time.Time{}, buckets: map[string]*bucket{}, acks: map[string]int{},
		statuses: map[spot]status{}, sessions: map[spot]session{}, prompts: map[spot][]Prompt{}, titles: map[spot]string{}, homes: map[string]View{},
	}
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
	conns := s.conns
	s.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
	s.links.Wait()
	s.http.Close()
}

// APIURL is what stands for https://slack.com/api/.
func (s *Server) APIURL() string { return s.http.URL + "/api/" }

// AddUser adds a person.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Team == "" {
		u.Team = Team
	}
	s.users[u.ID] = u
}

// AddChannel adds a channel in which the bot and these people are.
func (s *Server) AddChannel(id string, members ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &channel{id: id, members: map[string]bool{BotUser: true}}
	for _, m := range members {
		c.members[m] = true
	}
	s.channels[id] = c
}

// Archive archives a channel.
func (s *Server) Archive(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[id]; c != nil {
		c.archived = true
	}
}

// DM is the channel of a person's direct messages with the bot. It need not be there.
func DM(user string) string { return "D" + strings.TrimPrefix(user, "U") }

// openDM gives the channel of a person's direct messages, and makes it. The caller holds mu.
func (s *Server) openDM(user string) *channel {
	id := DM(user)
	c := s.channels[id]
	if c == nil {
		c = &channel{id: id, members: map[string]bool{BotUser: true, user: true}}
		s.channels[id] = c
	}
	return c
}

// Calls are the calls of a method so far; of every method for "".
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if method == "" || c.Method == method {
			out = append(out, c)
		}
	}
	return out
}

// File is the content of an uploaded file; "" if there is none of that name or it is shared nowhere.
func (s *Server) File(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.channels {
		for _, m := range c.messages {
			for _, f := range m.Files {
				if f.Name == name {
					return s.uploads[f.ID].content
				}
			}
		}
	}
	return ""
}

// nextTS gives a ts that is later than all before it, and not earlier than now. The caller holds mu.
func (s *Server) nextTS() string {
	s.clock = max(s.clock+1, time.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.clock/1_000_000, s.clock%1_000_000)
}

// number gives a new id. The caller holds mu.
func (s *Server) number(prefix string) string {
	s.serial++
	return fmt.Sprintf("%s%04d", prefix, s.serial)
}
