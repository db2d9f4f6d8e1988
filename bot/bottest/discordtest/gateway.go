package discordtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// gateway is what the gateway knows. The server's mu guards it.
type gateway struct {
	conns      []*conn
	sessions   map[string]*session
	newest     *session
	next       []Greeting
	silent     bool
	unanswered bool // beats get no answer
	identifies int
	resumes    int
	remaining  int // sessions that may be begun today; 0 for a thousand
	beats      int
	closes     []int // the codes with which the app has ended links
	serial     int
}

// session is what a link has to be told, from its beginning.
type session struct {
	id     string
	events []map[string]any
	conn   *conn // nil while there is no link
	ended  bool
}

// conn is one WebSocket.
type conn struct {
	socket *websocket.Conn
	write  sync.Mutex
	ended  bool
}

// Greeting is how Discord misbehaves on a new link.
type Greeting struct {
	Mute   bool  // it accepts the link and says nothing, not even hello
	Hush   bool  // it says hello, and then nothing
	Before []int // operations that it sends before RESUMED or READY, such as 11 and 7
	Close  int   // it closes with this code, when the app has said who it is
	Refuse *bool // it sends operation 9 instead, with this
	Late   int   // it closes with this code after READY or RESUMED
}

// Next lets the next links be greeted so, one each.
func (s *Server) Next(greetings ...Greeting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link.next = append(s.link.next, greetings...)
}

// Remaining lets Discord say that only so many sessions may be begun today.
func (s *Server) Remaining(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link.remaining = n
}

// Silence lets nothing be sent any more over the links that there are, not even the answers to beats, or all go on.
func (s *Server) Silence(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link.silent = silent
}

// Unanswered lets no beat be answered while all else goes on, or each.
func (s *Server) Unanswered(unanswered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link.unanswered = unanswered
}

// Linked reports whether a session has a link.
func (s *Server) Linked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.newest != nil && s.link.newest.conn != nil
}

// Identifies and Resumes are how often the app has begun a session and taken one up again, Beats how many beats it has sent, and
// Links how many links there have been.
func (s *Server) Identifies() int { return s.count(&s.link.identifies) }

// Resumes is explained at [Server.Identifies].
func (s *Server) Resumes() int { return s.count(&s.link.resumes) }

// Beats is explained at [Server.Identifies].
func (s *Server) Beats() int { return s.count(&s.link.beats) }

// Links is explained at [Server.Identifies].
func (s *Server) Links() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.link.conns)
}

func (s *Server) count(of *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *of
}

// Closes are the codes with which the app has ended links.
func (s *Server) Closes() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.link.closes...)
}

// Drop cuts the link without a word. It returns when that has ended.
func (s *Server) Drop() {
	s.mu.Lock()
	var c *conn
	if s.link.newest != nil {
		c = s.link.newest.conn
	}
	s.mu.Unlock()
	if c == nil {
		return
	}
	_ = c.socket.Close()
	s.Await(10*time.Second, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return c.ended
	})
}

// Shut closes the link with a code.
func (s *Server) Shut(code int) {
	s.mu.Lock()
	c := s.link.newest.conn
	s.mu.Unlock()
	if c != nil {
		c.shut(code)
	}
}

// Op sends an operation over the link: 1 asks for a beat, 7 for a new link, and 9 ends the session, with true or false.
func (s *Server) Op(op int, data any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.link.newest
	if op == 9 && data != true {
		current.ended = true
	}
	if current.conn != nil {
		current.conn.send(map[string]any{"op": op, "d": data})
	}
}

// Dispatch sends an event, or keeps it for the time when the session is taken up again. It returns its number.
func (s *Server) Dispatch(kind string, data any) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dispatch(kind, data)
}

// Repeat sends an event of the session again.
func (s *Server) Repeat(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.link.newest; current.conn != nil && number >= 1 && number <= len(current.events) {
		current.conn.send(current.events[number-1])
	}
}

// dispatch is Dispatch with a copy of the data. The caller holds mu.
func (s *Server) dispatch(kind string, data any) int {
	current := s.link.newest
	if current == nil || current.ended {
		return 0
	}
	raw, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("discordtest: encode an event: %v", err))
	}
	current.events = append(current.events, map[string]any{"op": 0, "t": kind, "s": len(current.events) + 1, "d": json.RawMessage(raw)})
	if current.conn != nil && !s.link.silent {
		current.conn.send(current.events[len(current.events)-1])
	}
	s.Happened()
	return len(current.events)
}

func (c *conn) send(v any) {
	c.write.Lock()
	defer c.write.Unlock()
	_ = c.socket.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_ = c.socket.WriteJSON(v)
}

func (c *conn) shut(code int) {
	_ = c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
	_ = c.socket.Close()
}

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// open serves one link.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("v") != "10" || r.URL.Query().Get("encoding") != "json" {
		http.Error(w, "which version?", http.StatusBadRequest)
		return
	}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &conn{socket: socket}
	s.mu.Lock()
	select {
	case <-s.closing:
		s.mu.Unlock()
		_ = socket.Close()
		return
	default:
	}
	s.links.Add(1)
	s.link.conns = append(s.link.conns, c)
	var g Greeting
	if len(s.link.next) > 0 {
		g, s.link.next = s.link.next[0], s.link.next[1:]
	}
	s.Happened()
	s.mu.Unlock()
	defer s.links.Done()
	defer s.gone(c)
	if !g.Mute {
		c.send(map[string]any{"op": 10, "d": map[string]any{"heartbeat_interval": s.options.Beat.Milliseconds()}, "s": nil, "t": nil})
	}
	for {
		_, data, err := socket.ReadMessage()
		if err != nil {
			s.closed(err)
			return
		}
		if len(data) > 4096 {
			c.shut(4002)
			return
		}
		s.heard(c, g, data, strings.HasSuffix(r.URL.Path, "/resume"))
	}
}

// closed notes how the app has ended a link.
func (s *Server) closed(err error) {
	if closed, ok := err.(*websocket.CloseError); ok {
		s.mu.Lock()
		s.link.closes = append(s.link.closes, closed.Code)
		if (closed.Code == 1000 || closed.Code == 1001) && s.link.newest != nil {
			s.link.newest.ended = true
		}
		s.mu.Unlock()
	}
}

func (s *Server) gone(c *conn) {
	_ = c.socket.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	c.ended = true
	for _, session := range s.link.sessions {
		if session.conn == c {
			session.conn = nil
		}
	}
	s.Happened()
}

// heard takes what the app sends.
func (s *Server) heard(c *conn, g Greeting, data []byte, resuming bool) {
	var f struct {
		Op   int `json:"op"`
		Data struct {
			Token   string `json:"token"`
			Session string `json:"session_id"`
			Seq     int    `json:"seq"`
			Intents int    `json:"intents"`
		} `json:"d"`
	}
	_ = json.Unmarshal(data, &f) // a beat has a number for its data
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.Happened()
	switch f.Op {
	case 1:
		s.link.beats++
		if !g.Mute && !g.Hush && !s.link.silent && !s.link.unanswered {
			c.send(map[string]any{"op": 11})
		}
	case 2:
		s.link.identifies++
		s.introduced(c, g, f.Data.Token, func() { s.begin(c, f.Data.Intents) })
	case 6:
		s.link.resumes++
		s.introduced(c, g, f.Data.Token, func() { s.resume(c, f.Data.Session, f.Data.Seq, resuming) })
	}
}

// introduced answers an app that has said who it is. The caller holds mu.
func (s *Server) introduced(c *conn, g Greeting, token string, welcome func()) {
	switch {
	case strings.TrimPrefix(token, "Bot ") != Token:
		c.shut(4004)
		return
	case g.Hush, g.Mute:
		return
	case g.Close > 0:
		c.shut(g.Close)
		return
	case g.Refuse != nil:
		c.send(map[string]any{"op": 9, "d": *g.Refuse})
		return
	}
	for _, op := range g.Before {
		c.send(map[string]any{"op": op, "d": nil})
	}
	s.link.silent = false
	welcome()
	if g.Late > 0 {
		c.shut(g.Late)
	}
}

// begin begins a session. The caller holds mu.
func (s *Server) begin(c *conn, intents int) {
	if s.options.Blind && intents&(1<<15) != 0 {
		c.shut(4014)
		return
	}
	s.link.serial++
	current := &session{id: fmt.Sprint("session-", s.link.serial), conn: c}
	s.link.sessions[current.id], s.link.newest = current, current
	s.dispatch("READY", map[string]any{
		"v": 10, "user": s.user(Bot), "session_id": current.id, "application": map[string]any{"id": App, "flags": 0},
		"resume_gateway_url": s.address("/resume"), "guilds": []any{map[string]any{"id": Guild, "unavailable": true}},
	})
	var rooms, threads []any
	for _, ch := range s.channels {
		switch {
		case ch.parent != "" && !ch.archived:
			threads = append(threads, ch.json())
		case ch.guild != "" && ch.parent == "":
			rooms = append(rooms, ch.json())
		}
	}
	s.dispatch("GUILD_CREATE", map[string]any{"id": Guild, "name": "Test", "channels": rooms, "threads": threads})
}

// resume takes a session up again, and sends what was missed. The caller holds mu.
func (s *Server) resume(c *conn, id string, seq int, rightPlace bool) {
	current := s.link.sessions[id]
	if current == nil || current.ended || !rightPlace || seq > len(current.events) {
		c.send(map[string]any{"op": 9, "d": false})
		return
	}
	current.conn = c
	for _, e := range current.events[seq:] {
		c.send(e)
	}
	s.dispatch("RESUMED", map[string]any{})
}

func (s *Server) address(path string) string {
	return strings.Replace(s.http.URL, "http://", "ws://", 1) + path
}
