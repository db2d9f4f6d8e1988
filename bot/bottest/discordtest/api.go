package discordtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is what a call is answered with.
type answer struct {
	status int
	code   int
	body   any
}

func refused(status, code int) answer { return answer{status: status, code: code} }

var (
	unknownChannel = refused(404, 10003)
	unknownMessage = refused(404, 10008)
)

// routes name the calls by their method and path, in which * stands for any part.
var routes = []struct{ name, method, path string }{
	{"gateway", "GET", "gateway/bot"},
	{"application", "GET", "applications/@me"},
	{"guilds", "GET", "users/@me/guilds"},
	{"command.create", "POST", "applications/*/commands"},
	{"dm.open", "POST", "users/@me/channels"},
	{"channel.get", "GET", "channels/*"},
	{"message.create", "POST", "channels/*/messages"},
	{"message.list", "GET", "channels/*/messages"},
	{"message.get", "GET", "channels/*/messages/*"},
	{"message.edit", "PATCH", "channels/*/messages/*"},
	{"message.delete", "DELETE", "channels/*/messages/*"},
	{"thread.create", "POST", "channels/*/messages/*/threads"},
	{"typing", "POST", "channels/*/typing"},
	{"reaction.add", "PUT", "channels/*/messages/*/reactions/*/@me"},
	{"reaction.remove", "DELETE", "channels/*/messages/*/reactions/*/@me"},
	{"interaction.answer", "POST", "interactions/*/*/callback"},
	{"followup.create", "POST", "webhooks/*/*"},
	{"followup.edit", "PATCH", "webhooks/*/*/messages/@original"},
}

func routeOf(method, path string) (name string, args []string) {
	parts := strings.Split(path, "/")
	for _, r := range routes {
		pattern := strings.Split(r.path, "/")
		if r.method != method || len(pattern) != len(parts) {
			continue
		}
		args, fits := []string(nil), true
		for i, p := range pattern {
			if p == "*" {
				args = append(args, parts[i])
			} else if p != parts[i] {
				fits = false
			}
		}
		if fits {
			return r.name, args
		}
	}
	return "", nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/gateway") || strings.HasPrefix(r.URL.Path, "/resume") {
		s.open(w, r)
		return
	}
	if id, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok {
		s.download(w, r, id)
		return
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v10/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	body, files := readBody(r)
	route, args := routeOf(r.Method, path)
	c := Call{Route: route, Method: r.Method, Path: "/" + path, Body: body, At: time.Now(), Status: 404}
	s.mu.Lock()
	fault := s.Spoil(route, len(s.calls))
	if s.options.Limits {
		if wait, global := s.limit(w.Header(), route, append(args, "")[0], c.At); wait > 0 {
			fault = &Fault{RetryAfter: wait, Global: global}
		}
	}
	spoilt := fault != nil && *fault != (Fault{})
	var out answer
	switch {
	case r.Header.Get("Authorization") != "Bot "+Token && !strings.HasPrefix(route, "interaction") && !strings.HasPrefix(route, "followup"):
		out = refused(401, 0)
	case !spoilt || fault.Done:
		s.uploaded = files
		out = s.do(route, args, r.URL.Query(), body)
	}
	if spoilt && fault.Status > 0 {
		out.status, out.code = fault.Status, fault.Code
	} else if spoilt && fault.RetryAfter > 0 {
		out.status = 429
	}
	c.Status, c.Code = out.status, out.code
	s.calls = append(s.calls, c)
	s.Happened()
	s.mu.Unlock()
	if spoilt && spoil(w, r, *fault, out) {
		return
	}
	write(w, out)
}

// download gives the bytes of a file, to those who show no token.
func (s *Server) download(w http.ResponseWriter, r *http.Request, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.channels {
		for _, m := range c.messages {
			for _, f := range m.Files {
				if f.ID == id && r.Header.Get("Authorization") == "" {
					_, _ = io.WriteString(w, f.Content)
					return
				}
			}
		}
	}
	http.NotFound(w, r)
}

// readBody reads the JSON of a call, and the files that come with it.
func readBody(r *http.Request) (body []byte, files []File) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		body, _ = io.ReadAll(r.Body)
		return body, nil
	}
	if r.ParseMultipartForm(1<<20) != nil {
		return nil, nil
	}
	for _, headers := range r.MultipartForm.File {
		for _, h := range headers {
			if f, err := h.Open(); err == nil {
				content, _ := io.ReadAll(f)
				_ = f.Close()
				files = append(files, File{Name: h.Filename, Type: h.Header.Get("Content-Type"), Content: string(content)})
			}
		}
	}
	return []byte(r.FormValue("payload_json")), files
}

// spoil lets a call go wrong, and reports whether that was all of its answer.
func spoil(w http.ResponseWriter, r *http.Request, f Fault, out answer) bool {
	if f.Until != nil {
		select {
		case <-f.Until:
		case <-r.Context().Done():
		}
	}
	switch {
	case f.Hang:
		<-r.Context().Done()
	case f.Cut:
		if h, ok := w.(http.Hijacker); ok {
			if socket, _, err := h.Hijack(); err == nil {
				_ = socket.Close()
			}
		}
	case f.HTML:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, "<html><body>error code: 1015</body></html>")
	case f.RetryAfter > 0:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", fmt.Sprint(int(f.RetryAfter/time.Second)+1))
		if f.Global {
			w.Header().Set("X-RateLimit-Global", "true")
		}
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(map[string]any{"message": "You are being rate limited.", "retry_after": f.RetryAfter.Seconds(), "global": f.Global})
	default:
		return false
	}
	return true
}

func write(w http.ResponseWriter, out answer) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case out.status >= 400:
		w.WriteHeader(out.status)
		_ = json.NewEncoder(w).Encode(map[string]any{"message": http.StatusText(out.status), "code": out.code})
	case out.body == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusOK)
		_ = json.NewEncoder(w).Encode(out.body)
	}
}

// do does what a call asks for. The caller holds mu.
func (s *Server) do(route string, args []string, query url.Values, body []byte) answer {
	switch route {
	case "gateway":
		remaining := 1000
		if s.link.remaining > 0 {
			remaining = s.link.remaining - 1
		}
		return answer{status: 200, body: map[string]any{"url": s.address("/gateway"), "shards": 1, "session_start_limit": map[string]any{
			"total": 1000, "remaining": remaining, "reset_after": 3_600_000, "max_concurrency": 1}}}
	case "application":
		flags := 1 << 19
		if s.options.Blind {
			flags = 0
		}
		return answer{status: 200, body: map[string]any{"id": App, "name": "Nudge", "flags": flags}}
	case "guilds":
		guilds := []any{}
		if !s.options.Alone {
			guilds = append(guilds, map[string]any{"id": Guild, "name": "Test", "permissions": strconv.FormatInt((1<<50-1)&^(1<<3)&^s.options.Lacks, 10)})
		}
		return answer{status: 200, body: guilds}
	case "command.create":
		s.commands = append(s.commands, slices.Clone(body))
		return answer{status: 200, body: map[string]any{"id": s.newID()}}
	case "dm.open":
		var asked struct {
			User string `json:"recipient_id"`
		}
		_ = json.Unmarshal(body, &asked)
		if _, ok := s.users[asked.User]; !ok {
			return refused(400, 50035)
		}
		return answer{status: 200, body: map[string]any{"id": s.dm(asked.User).ID, "type": 1}}
	case "interaction.answer":
		return s.answer(args[0], args[1], body)
	case "followup.create", "followup.edit":
		return s.followUp(route, args[1], body)
	case "":
		return refused(404, 0)
	}
	c := s.channels[args[0]]
	if c == nil {
		return unknownChannel
	}
	switch route {
	case "channel.get":
		return answer{status: 200, body: c.json()}
	case "message.create":
		return s.create(c, body)
	case "message.list":
		return s.list(c, query.Get("after"))
	case "typing":
		c.typing++
		return answer{status: 204}
	}
	i := slices.IndexFunc(c.messages, func(m *Message) bool { return m.ID == args[1] })
	if i < 0 {
		return unknownMessage
	}
	m := c.messages[i]
	switch route {
	case "message.get":
		return answer{status: 200, body: m.json(s, "")}
	case "message.edit":
		return s.change(c, m, body)
	case "message.delete":
		c.messages = slices.Delete(c.messages, i, i+1)
		return answer{status: 204}
	case "thread.create":
		return s.begun(c, m, body)
	case "reaction.add":
		emoji, _ := url.PathUnescape(args[2])
		if !slices.Contains(m.Reactions, emoji) {
			m.Reactions = append(m.Reactions, emoji)
		}
		return answer{status: 204}
	case "reaction.remove":
		emoji, _ := url.PathUnescape(args[2])
		m.Reactions = slices.DeleteFunc(m.Reactions, func(r string) bool { return r == emoji })
		return answer{status: 204}
	}
	return refused(404, 0)
}

// create posts a message of the bot's. The caller holds mu.
func (s *Server) create(c *channel, body []byte) answer {
	b, ok := readSent(body)
	if !ok {
		return refused(400, 50109)
	}
	if status, code := b.fault(); status > 0 {
		return refused(status, code)
	}
	switch {
	case c.shut > 0:
		return refused(403, c.shut)
	case c.locked:
		return refused(400, 160005)
	}
	if known, found := s.nonces[b.Nonce]; b.Enforce && b.Nonce != "" && found && time.Since(known.at) < s.options.Nonce {
		return answer{status: 200, body: known.message.json(s, c.guild)}
	}
	c.archived = false
	text := ""
	if b.Content != nil {
		text = strings.TrimSpace(*b.Content)
	}
	m := &Message{
		ID: s.newID(), Channel: c.ID, Author: Bot, Text: text, First: b.Components, Components: b.Components, Nonce: b.Nonce, Mentions: b.notifies(), At: time.Now(), Files: s.uploaded,
	}
	if b.Reference != nil {
		m.RefersTo = b.Reference.Message
	}
	c.messages = append(c.messages, m)
	if b.Nonce != "" {
		s.nonces[b.Nonce] = nonce{m, time.Now()}
	}
	s.dispatch("MESSAGE_CREATE", m.json(s, c.guild))
	return answer{status: 200, body: m.json(s, c.guild)}
}

// list gives up to a hundred messages after one, newest first, as Discord does. The caller holds mu.
func (s *Server) list(c *channel, after string) answer {
	out := []any{}
	for _, m := range c.messages {
		if (len(m.ID) > len(after) || len(m.ID) == len(after) && m.ID > after) && len(out) < 100 && m.For == "" {
			out = append([]any{m.json(s, "")}, out...)
		}
	}
	return answer{status: 200, body: out}
}

// change changes a message of the bot's. The caller holds mu.
func (s *Server) change(c *channel, m *Message, body []byte) answer {
	b, ok := readSent(body)
	if !ok {
		return refused(400, 50109)
	}
	status, code := b.fault()
	switch {
	case status > 0:
		return refused(status, code)
	case m.Author != Bot:
		return refused(403, 50005)
	case c.archived:
		return refused(400, 50083)
	}
	if b.Content != nil {
		m.Text = strings.TrimSpace(*b.Content)
	}
	m.Components, m.Mentions, m.Edits = b.Components, append(m.Mentions, b.notifies()...), m.Edits+1
	s.dispatch("MESSAGE_UPDATE", m.json(s, c.guild))
	return answer{status: 200, body: m.json(s, c.guild)}
}

// begun begins a thread under a message. The caller holds mu.
func (s *Server) begun(c *channel, m *Message, body []byte) answer {
	var asked struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(body, &asked)
	switch n := len([]rune(asked.Name)); {
	case n < 1 || n > 100:
		return refused(400, 50035)
	case c.guild == "" || c.parent != "":
		return refused(400, 50024)
	case s.channels[m.ID] != nil:
		return refused(400, 160004)
	}
	thread := &channel{ID: m.ID, guild: c.guild, parent: c.ID, name: asked.Name}
	s.channels[thread.ID] = thread
	s.dispatch("THREAD_CREATE", thread.json())
	return answer{status: 201, body: thread.json()}
}
