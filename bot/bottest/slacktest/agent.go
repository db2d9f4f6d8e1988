package slacktest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Slack's limits on what an agent shows.
const (
	streamText   = 12_000
	sessionTitle = 200
	mostPrompts  = 4
	mostLoading  = 10
	// statusFor is how long a status stands that nothing follows.
	statusFor = 2 * time.Minute
)

// spot is a thread of a channel.
type spot struct{ channel, thread string }

// status is the line under a thread that says what the bot does.
type status struct {
	text string
	at   time.Time
}

// session is an agent session, with the native Stop button while it is processing.
type session struct{ status, title string }

// Task is a line of a streamed message that tells of one thing that is done.
type Task struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
	Text   string `json:"text"` // of a chunk of Markdown
}

// Prompt is a suggestion of what to say.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// Prompts are what was suggested in a thread; "" for the bot's messages as a whole.
func (s *Server) Prompts(channel, thread string) []Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.prompts[spot{channel, thread}])
}

// Title is the title that the bot gave a thread.
func (s *Server) Title(channel, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.titles[spot{channel, thread}]
}

// Status is the line that Slack shows under a thread at present; "" when there is none, as after two minutes.
func (s *Server) Status(channel, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := s.statuses[spot{channel, thread}]
	if s.options.Now().Sub(shown.at) >= statusFor {
		return ""
	}
	return shown.text
}

// Session gives the status and the title of the agent session of a thread; "" when there is none.
func (s *Server) Session(channel, thread string) (status, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.sessions[spot{channel, thread}]
	return of.status, of.title
}

// PressStop lets a person press the Stop button that Slack shows while a session is processing. Slack ends the streams of
// that thread itself. It returns the id of the delivery, and panics when there is no such button.
func (s *Server) PressStop(user, channel, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[spot{channel, thread}].status != "processing" || s.options.Unsubscribed {
		panic("slacktest: there is no Stop button in " + channel)
	}
	halted := []string{}
	for _, m := range s.channels[channel].messages {
		if m.Streaming && m.Thread == thread {
			m.Streaming = false
			halted = append(halted, m.TS)
		}
	}
	return s.event(map[string]any{
		"type": "agent_session_stopped", "channel": channel, "thread_ts": thread, "user": user, "streaming_message_ts": halted, "event_ts": s.nextTS(),
	})
}

// OpenPane lets a person begin a thread with the bot in the pane of an app that is declared as an assistant. It returns the
// thread and the id of the delivery.
func (s *Server) OpenPane(user string) (thread, delivery string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.openDM(user)
	thread = s.nextTS()
	c.messages = append(c.messages, &Message{Channel: c.id, TS: thread, Thread: thread, User: BotUser, Text: "New Assistant Thread"})
	return thread, s.event(map[string]any{
		"type": "assistant_thread_started", "event_ts": s.nextTS(),
		"assistant_thread": map[string]any{"user_id": user, "channel_id": c.id, "thread_ts": thread, "context": map[string]any{}},
	})
}

// thread finds the thread of a call that names it by channel_id and thread_ts.
func (s *Server) thread(c Call) (*channel, spot, string) {
	at := spot{c.Form.Get("channel_id"), c.Form.Get("thread_ts")}
	ch := s.channels[at.channel]
	switch {
	case ch == nil:
		return nil, at, "channel_not_found"
	case !ch.members[BotUser]:
		return nil, at, "not_in_channel"
	case at.thread != "" && ch.unknownThread(at.thread):
		return nil, at, "invalid_thread_ts"
	}
	return ch, at, ""
}

func (s *Server) setStatus(c Call) answer {
	_, at, refusal := s.thread(c)
	switch {
	case refusal != "":
		return failure(refusal)
	case at.thread == "":
		return failure("invalid_arguments")
	case strings.Count(c.Form.Get("loading_messages"), ",") >= mostLoading:
		return failure("invalid_arguments")
	}
	s.statuses[at] = status{c.Form.Get("status"), s.options.Now()}
	return answer{}
}

func (s *Server) setSession(c Call) answer {
	ch, at, refusal := s.thread(c)
	word, title, initiator := c.Form.Get("status"), c.Form.Get("title"), c.Form.Get("initiator_user_id")
	switch {
	case !s.options.Agent:
		return failure("access_denied")
	case refusal != "":
		return failure(refusal)
	case at.thread == "", !slices.Contains([]string{"active", "processing", "suspended", "closed"}, word), size(title) > sessionTitle:
		return failure("invalid_arguments")
	case initiator != "" && !ch.members[initiator]:
		return failure("user_not_in_channel")
	}
	of, known := s.sessions[at]
	if !known {
		of.title = title
	}
	of.status = word
	s.sessions[at] = of
	out := answer{"status": word, "agent_status": word, "title": of.title}
	if s.options.Unsubscribed && word == "processing" {
		out["warning"] = "missing_agent_session_stopped_event_subscription"
	}
	return out
}

func (s *Server) suggest(c Call) answer {
	_, at, refusal := s.thread(c)
	var prompts []Prompt
	switch {
	case refusal != "":
		return failure(refusal)
	case at.thread == "" && !s.options.Agent:
		return failure("invalid_arguments")
	case json.Unmarshal([]byte(c.Form.Get("prompts")), &prompts) != nil, len(prompts) == 0, len(prompts) > mostPrompts:
		return failure("invalid_arguments")
	}
	for _, p := range prompts {
		if p.Title == "" || p.Message == "" {
			return failure("invalid_arguments")
		}
	}
	s.prompts[at] = prompts
	return answer{}
}

func (s *Server) setTitle(c Call) answer {
	_, at, refusal := s.thread(c)
	switch title := c.Form.Get("title"); {
	case refusal != "":
		return failure(refusal)
	case at.thread == "" || title == "":
		return failure("invalid_arguments")
	default:
		s.titles[at] = title
	}
	return answer{}
}

// startStream begins a message that grows. In a channel Slack wants to know for whom.
func (s *Server) startStream(c Call) answer {
	ch, refusal := s.place(c)
	if refusal != "" {
		return failure(refusal)
	}
	thread, isDM := c.Form.Get("thread_ts"), strings.HasPrefix(ch.id, "D")
	switch mode := c.Form.Get("task_display_mode"); {
	case isDM && thread == "", mode != "" && mode != "timeline" && mode != "plan":
		return failure("invalid_arguments")
	case ch.unknownThread(thread):
		return failure("thread_not_found")
	case !isDM && !ch.members[c.Form.Get("recipient_user_id")]:
		return failure("missing_recipient_user_id")
	case !isDM && c.Form.Get("recipient_team_id") == "":
		return failure("missing_recipient_team_id")
	}
	m := &Message{Channel: ch.id, TS: s.nextTS(), Thread: thread, User: BotUser, Streaming: true}
	if refusal := m.grow(c); refusal != "" {
		return failure(refusal)
	}
	ch.messages = append(ch.messages, m)
	delete(s.statuses, spot{ch.id, thread})
	return answer{"channel": ch.id, "ts": m.TS}
}

// stream finds the streamed message of a call.
func (s *Server) stream(c Call) (*Message, string) {
	ch, refusal := s.place(c)
	if refusal != "" {
		return nil, refusal
	}
	m := ch.find(c.Form.Get("ts"))
	switch {
	case m == nil:
		return nil, "message_not_found"
	case m.User != BotUser:
		return nil, "message_not_owned_by_app"
	case !m.Streaming:
		return nil, "message_not_in_streaming_state"
	}
	return m, ""
}

func (s *Server) appendStream(c Call) answer {
	m, refusal := s.stream(c)
	if refusal == "" && c.Form.Get("markdown_text") == "" && c.Form.Get("chunks") == "" {
		refusal = "no_text"
	}
	if refusal == "" {
		refusal = m.grow(c)
	}
	if refusal != "" {
		return failure(refusal)
	}
	return answer{"channel": m.Channel, "ts": m.TS}
}

func (s *Server) stopStream(c Call) answer {
	m, refusal := s.stream(c)
	if refusal == "" {
		refusal = m.grow(c)
	}
	if refusal != "" {
		return failure(refusal)
	}
	m.Streaming = false
	return answer{"channel": m.Channel, "ts": m.TS}
}

// grow adds what a call brings to a streamed message, and says with which error Slack would refuse it.
func (m *Message) grow(c Call) (refusal string) {
	text, raw := c.Form.Get("markdown_text"), c.Form.Get("chunks")
	if text != "" && (c.Form.Get("text") != "" || c.Form.Get("blocks") != "") {
		return "markdown_text_conflict"
	}
	var chunks []Task
	if raw != "" && json.Unmarshal([]byte(raw), &chunks) != nil {
		return "invalid_chunks"
	}
	length := size(text)
	for _, chunk := range chunks {
		length += size(chunk.Title) + size(chunk.Text)
		known := slices.Contains([]string{"markdown_text", "task_update", "plan_update", "blocks"}, chunk.Type)
		if !known || chunk.Type == "task_update" && (chunk.ID == "" || chunk.Title == "") {
			return "invalid_chunks"
		}
	}
	if length > streamText {
		return "msg_too_long"
	}
	m.Text += text
	for _, chunk := range chunks {
		switch at := slices.IndexFunc(m.Tasks, func(t Task) bool { return t.ID == chunk.ID }); {
		case chunk.Type == "markdown_text":
			m.Text += chunk.Text
		case chunk.Type != "task_update":
		case at >= 0:
			m.Tasks[at] = chunk
		default:
			m.Tasks = append(m.Tasks, chunk)
		}
	}
	return ""
}
