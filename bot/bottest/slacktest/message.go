package slacktest

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// channel is a channel or somebody's direct messages.
type channel struct {
	id       string
	members  map[string]bool
	archived bool
	messages []*Message
}

// Message is a message as it stands now.
type Message struct {
	Channel   string
	TS        string
	Thread    string // thread_ts; "" outside threads
	User      string
	Text      string
	Blocks    []Block
	Metadata  map[string]any
	Reactions []string // the bot's, in the order in which they were put there
	Files     []File
	For       string // of an ephemeral message: who sees it
	Edited    bool
	Parse     string // how it is to be parsed, as it was asked for when it was posted or edited; "" for Slack's own way
	Streaming bool   // it grows
	Tasks     []Task // that were streamed into it
	// First are the blocks that the message had when it was posted.
	First []Block
}

// File is a file that a message shares.
type File struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Block is a block of Block Kit, as far as tests look into it.
type Block struct {
	Type     string    `json:"type"`
	BlockID  string    `json:"block_id"`
	Text     *Text     `json:"text"`
	Elements []Element `json:"elements"`
	Element  *Element  `json:"element"` // of an input
	Label    *Text     `json:"label"`
	Hint     *Text     `json:"hint"`
	Optional bool      `json:"optional"`
}

// Element is what stands in a row or an input. In a context block it may be a text, whose Text is not an object.
type Element struct {
	Type      string          `json:"type"`
	ActionID  string          `json:"action_id"`
	Value     string          `json:"value"`
	Raw       json.RawMessage `json:"text"`
	Initial   string          `json:"initial_value"`
	MaxLength int             `json:"max_length"`
	Multiline bool            `json:"multiline"`
	Holder    *Text           `json:"placeholder"` // of a menu
	Parts     []Element       `json:"elements"`    // of rich text
	Verbatim  bool            `json:"verbatim"`    // of a text in a context block
	Style     json.RawMessage `json:"style"`       // of a button its name
	// Of a number:
	Decimal bool   `json:"is_decimal_allowed"`
	Min     string `json:"min_value"`
	Max     string `json:"max_value"`
	// Of a menu or of radio buttons:
	Options  []Option `json:"options"`
	Selected *Option  `json:"initial_option"`
	Several  []Option `json:"initial_options"` // of checkboxes
}

// Option is one thing to choose.
type Option struct {
	Text  Text   `json:"text"`
	Value string `json:"value"`
}

// Label is the text of an element.
func (e Element) Label() string {
	var t Text
	if json.Unmarshal(e.Raw, &t) == nil && t.Text != "" {
		return t.Text
	}
	var plain string
	_ = json.Unmarshal(e.Raw, &plain)
	return plain
}

// Text is a text object.
type Text struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Verbatim bool   `json:"verbatim"`
}

// Buttons are the buttons of a message.
func (m Message) Buttons() []Element { return buttons(m.Blocks) }

func buttons(blocks []Block) []Element {
	var out []Element
	for _, b := range blocks {
		for _, e := range b.Elements {
			if e.Type == "button" {
				out = append(out, e)
			}
		}
	}
	return out
}

// Menu is the menu of a message under which a placeholder stands.
func (m Message) Menu(placeholder string) (Element, bool) {
	for _, b := range m.Blocks {
		for _, e := range b.Elements {
			if e.Holder != nil && e.Holder.Text == placeholder {
				return e, true
			}
		}
	}
	return Element{}, false
}

// Shown is what the blocks of a message say, one after the other.
func (m Message) Shown() string {
	var out []string
	for _, b := range m.Blocks {
		out = append(out, b.shown()...)
	}
	return strings.Join(out, "\n")
}

// shown is what a block says, without what is entered into it.
func (b Block) shown() (out []string) {
	for _, t := range []*Text{b.Text, b.Label} {
		if t != nil {
			out = append(out, t.Text)
		}
	}
	for _, e := range b.Elements {
		text := e.Label()
		for _, part := range e.Parts {
			text += part.Label()
		}
		out = append(out, text)
	}
	return out
}

// Messages are the messages of a channel, as they stand now, in the order in which they were posted; ephemeral ones too.
func (s *Server) Messages(id string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	if c == nil {
		return nil
	}
	var out []Message
	for _, m := range c.messages {
		one := *m
		one.Reactions = slices.Clone(m.Reactions)
		one.Tasks = slices.Clone(m.Tasks)
		out = append(out, one)
	}
	return out
}

// ByBot are the messages of a channel that the bot wrote.
func (s *Server) ByBot(id string) []Message {
	return slices.DeleteFunc(s.Messages(id), func(m Message) bool { return m.User != BotUser })
}

// Message is one message as it stands now.
func (s *Server) Message(id, ts string) (Message, bool) {
	for _, m := range s.Messages(id) {
		if m.TS == ts {
			return m, true
		}
	}
	return Message{}, false
}

// find gives a message of a channel. The caller holds mu.
func (c *channel) find(ts string) *Message {
	for _, m := range c.messages {
		if m.TS == ts && m.For == "" {
			return m
		}
	}
	return nil
}

// unknownThread reports whether a thread_ts is not that of the first message of a thread.
func (c *channel) unknownThread(ts string) bool {
	if ts == "" {
		return false
	}
	m := c.find(ts)
	return m == nil || m.Thread != "" && m.Thread != m.TS
}

// json is a message as the API gives it.
func (m *Message) json(metadata bool) map[string]any {
	out := map[string]any{"type": "message", "ts": m.TS, "user": m.User, "text": m.Text}
	if m.Thread != "" {
		out["thread_ts"] = m.Thread
	}
	if m.User == BotUser {
		out["bot_id"] = BotID
	}
	if metadata && m.Metadata != nil {
		out["metadata"] = m.Metadata
	}
	if m.Files != nil {
		out["files"] = m.Files
	}
	return out
}

// Said is a message that a test lets a person write.
type Said struct {
	User    string
	Channel string // DM(User) for direct messages
	Text    string // as Slack sends it: escaped, mentions as <@U0BOT>
	Thread  string
	// MentionFirst lets the app_mention of a mention come before the message instead of after it.
	MentionFirst bool
	Files        []string       // ids of files that are attached
	BareMention  bool           // the app_mention does not tell of the files
	More         map[string]any // further fields of the event
}

// Say lets a person write a message. It is delivered as Slack would: a mention in a channel twice, with different events.
// It returns the message's ts and the ids of the deliveries.
func (s *Server) Say(said Said) (ts string, deliveries []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "channel"
	c := s.channels[said.Channel]
	if strings.HasPrefix(said.Channel, "D") {
		kind, c = "im", s.openDM(said.User)
	}
	if c == nil {
		panic("slacktest: there is no channel " + said.Channel)
	}
	ts = s.nextTS()
	c.messages = append(c.messages, &Message{Channel: c.id, TS: ts, Thread: said.Thread, User: said.User, Text: said.Text})
	event := func(typ string) map[string]any {
		e := map[string]any{
			"type": typ, "channel": c.id, "user": said.User, "text": said.Text, "ts": ts, "event_ts": ts,
			"team": cmp.Or(s.users[said.User].Team, Team),
		}
		if typ == "message" {
			e["channel_type"], e["client_msg_id"] = kind, "client-"+ts
		}
		if said.Thread != "" {
			e["thread_ts"] = said.Thread
		}
		if len(said.Files) > 0 && (typ == "message" || !said.BareMention) {
			var files []any
			for _, id := range said.Files {
				files = append(files, s.shared(id))
			}
			e["files"], e["upload"], e["display_as_bot"] = files, false, false
			if typ == "message" {
				e["subtype"] = "file_share"
				delete(e, "team") // https://github.com/slackapi/slack-api-specs/issues/62
			}
		}
		for k, v := range said.More {
			e[k] = v
		}
		return e
	}
	kinds := []string{"message"}
	if kind == "channel" && strings.Contains(said.Text, "<@"+BotUser+">") {
		kinds = []string{"message", "app_mention"}
		if said.MentionFirst {
			slices.Reverse(kinds)
		}
	}
	for _, k := range kinds {
		deliveries = append(deliveries, s.event(event(k)))
	}
	return ts, deliveries
}
