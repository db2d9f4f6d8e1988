package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// channel is a channel, a thread or somebody's direct messages. The server's mu guards it.
type channel struct {
	ID       string
	guild    string // "" for direct messages
	parent   string // of a thread
	name     string
	user     string // whose direct messages
	archived bool
	locked   bool
	shut     int // the code with which messages are refused; 0 for none
	messages []*Message
	typing   int
}

func (c *channel) json() map[string]any {
	out := map[string]any{"id": c.ID, "type": 0, "name": c.name}
	switch {
	case c.parent != "":
		out["type"], out["parent_id"], out["owner_id"] = 11, c.parent, Bot
		out["thread_metadata"] = map[string]any{"archived": c.archived, "locked": c.locked}
	case c.guild == "":
		out["type"] = 1
	}
	if c.guild != "" {
		out["guild_id"] = c.guild
	}
	return out
}

// Message is a message as it stands.
type Message struct {
	ID, Channel, Author string
	Text                string
	First               []Component // as they stood in the beginning
	Components          []Component
	Nonce               string
	RefersTo            string
	For                 string // the one person who sees it
	Reactions           []string
	Mentions            []string // whom it may notify
	Edits               int
	Files               []File
	At                  time.Time
}

// File is what is attached to a message.
type File struct{ ID, Name, Type, Content string }

// Component is a row, a button, a menu, an input or a text.
type Component struct {
	Type       int         `json:"type"`
	ID         string      `json:"custom_id"`
	Label      string      `json:"label"`
	Hint       string      `json:"description"`
	Style      int         `json:"style"`
	Content    string      `json:"content"`
	Value      string      `json:"value"`
	Required   bool        `json:"required"`
	Components []Component `json:"components"`
	Component  *Component  `json:"component"`
	Options    []Option    `json:"options"`
	// Of a menu: how many are to be chosen.
	Least *int `json:"min_values"`
	Most  *int `json:"max_values"`
}

// Option is an entry of a menu.
type Option struct {
	Label   string `json:"label"`
	Value   string `json:"value"`
	Default bool   `json:"default"`
}

// Holds is what an input of a form holds, or what is chosen in a menu, before anybody touches it.
func (c Component) Holds() string {
	for _, o := range c.Options {
		if o.Default {
			return o.Value
		}
	}
	return c.Value
}

// Buttons are the buttons and menus of a message.
func (m Message) Buttons() []Component { return parts(m.Components) }

// FirstButtons are those that it had in the beginning.
func (m Message) FirstButtons() []Component { return parts(m.First) }

func parts(components []Component) (out []Component) {
	for _, row := range components {
		out = append(out, row.Components...)
	}
	return out
}

// Read is a text as people read it: without the signs that take the meaning of marks, and without what is bold.
func Read(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "```") {
		if i%2 == 1 {
			b.WriteString(part)
			continue
		}
		for j := 0; j < len(part); j++ {
			if part[j] == '\\' && j+1 < len(part) && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", part[j+1]) >= 0 {
				j++
			} else if strings.HasPrefix(part[j:], "**") {
				j++
				continue
			}
			b.WriteByte(part[j])
		}
	}
	return b.String()
}

func (m *Message) json(s *Server, guild string) map[string]any {
	out := map[string]any{
		"id": m.ID, "channel_id": m.Channel, "type": 0, "content": m.Text, "author": s.user(m.Author), "mentions": []any{}, "attachments": []any{},
		"embeds": []any{}, "timestamp": m.At.UTC().Format(time.RFC3339Nano), "edited_timestamp": nil, "components": m.Components,
	}
	if guild != "" {
		out["guild_id"] = guild
	}
	if m.Files != nil {
		var files []any
		for _, f := range m.Files {
			files = append(files, map[string]any{"id": f.ID, "filename": f.Name, "content_type": f.Type, "size": len(f.Content), "url": s.http.URL + "/files/" + f.ID})
		}
		out["attachments"] = files
	}
	if m.RefersTo != "" {
		out["message_reference"] = map[string]any{"message_id": m.RefersTo, "channel_id": m.Channel}
	}
	var mentions []any
	for id := range s.users {
		if strings.Contains(m.Text, "<@"+id+">") {
			mentions = append(mentions, s.user(id))
		}
	}
	if strings.Contains(m.Text, "<@"+Bot+">") {
		mentions = append(mentions, s.user(Bot))
	}
	if mentions != nil {
		out["mentions"] = mentions
	}
	return out
}

// DM is the channel of a person's direct messages with the bot. It need not be there.
func DM(user string) string { return "700" + user }

// dm gives the channel of a person's direct messages, and makes it. The caller holds mu.
func (s *Server) dm(user string) *channel {
	c := s.channels[DM(user)]
	if c == nil {
		c = &channel{ID: DM(user), user: user}
		s.channels[c.ID] = c
	}
	return c
}

// Say lets a person write in a channel, a thread, or [DM]. It returns the message and the number of the event about it.
func (s *Server) Say(user, in, text string) (id string, event int) {
	return s.Attach(user, in, text)
}

// Attach is Say with files, whose ids it gives.
func (s *Server) Attach(user, in, text string, files ...File) (id string, event int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in == DM(user) {
		s.dm(user)
	}
	c := s.channels[in]
	if c == nil {
		panic(fmt.Sprintf("discordtest: there is no channel %s", in))
	}
	m := &Message{ID: s.newID(), Channel: in, Author: user, Text: text, Files: files, At: time.Now()}
	for i := range files {
		files[i].ID = s.newID()
	}
	c.messages = append(c.messages, m)
	return m.ID, s.dispatch("MESSAGE_CREATE", m.json(s, c.guild))
}

// Messages are the messages of a channel, oldest first.
func (s *Server) Messages(in string) (out []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[in]; c != nil {
		for _, m := range c.messages {
			seen := *m
			seen.Reactions, seen.Mentions = slices.Clone(m.Reactions), slices.Clone(m.Mentions)
			out = append(out, seen)
		}
	}
	return out
}

// ByBot are those of the bot's.
func (s *Server) ByBot(in string) (out []Message) {
	for _, m := range s.Messages(in) {
		if m.Author == Bot {
			out = append(out, m)
		}
	}
	return out
}

// Threads are the threads under messages of a channel.
func (s *Server) Threads(in string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.channels {
		if c.parent == in {
			ids = append(ids, id)
		}
	}
	return ids
}

// Archive archives a thread, and locks it if that is asked for.
func (s *Server) Archive(thread string, lock bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[thread].archived, s.channels[thread].locked = true, lock
}

// Archived reports whether a thread is archived.
func (s *Server) Archived(thread string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[thread].archived
}

// ShutDM lets a person take no direct messages from the bot, with the code that says why; 0 lets them take some again.
func (s *Server) ShutDM(user string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dm(user).shut = code
}

// Typed is how often the bot was seen typing in a channel.
func (s *Server) Typed(in string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[in]; c != nil {
		return c.typing
	}
	return 0
}

// sent is the body of a message that is created or changed.
type sent struct {
	Content    *string     `json:"content"`
	Components []Component `json:"components"`
	Nonce      string      `json:"nonce"`
	Enforce    bool        `json:"enforce_nonce"`
	Flags      int         `json:"flags"`
	Mentions   *struct {
		Parse []string `json:"parse"`
	} `json:"allowed_mentions"`
	Reference *struct {
		Message string `json:"message_id"`
	} `json:"message_reference"`
}

// fault is why Discord would refuse a message; 0 if it does not.
func (b sent) fault() (status, code int) {
	text := ""
	if b.Content != nil {
		text = strings.TrimSpace(*b.Content)
	}
	switch {
	case text == "" && len(b.Components) == 0:
		return 400, 50006
	case utf8.RuneCountInString(text) > 2000, len(b.Nonce) > 25, faulty(b.Components):
		return 400, 50035
	}
	return 0, 0
}

// faulty reports whether Discord refuses components.
func faulty(components []Component) bool {
	ids := map[string]bool{}
	for _, row := range components {
		if row.Type != 1 || len(row.Components) == 0 || len(row.Components) > 5 {
			return true
		}
		for _, c := range row.Components {
			n := utf8.RuneCountInString(c.ID)
			if n < 1 || n > 100 || ids[c.ID] || c.Type != 2 && c.Type != 3 {
				return true
			}
			ids[c.ID] = true
			switch {
			case c.Type == 2 && (c.Label == "" || utf8.RuneCountInString(c.Label) > 80):
				return true
			case c.Type == 3 && (len(row.Components) > 1 || len(c.Options) == 0 || len(c.Options) > 25):
				return true
			}
			for _, o := range c.Options {
				if o.Label == "" || utf8.RuneCountInString(o.Label) > 100 || o.Value == "" || len(o.Value) > 100 {
					return true
				}
			}
		}
	}
	return len(components) > 5
}

// notifies are those whom a message may notify: unless that is said otherwise, everybody whom it names.
func (b sent) notifies() (who []string) {
	if b.Content == nil || b.Mentions != nil && len(b.Mentions.Parse) == 0 {
		return nil
	}
	for _, mark := range []string{"@everyone", "@here", "<@"} {
		if strings.Contains(*b.Content, mark) {
			who = append(who, mark)
		}
	}
	return who
}

func readSent(body json.RawMessage) (b sent, ok bool) {
	ok = json.Unmarshal(body, &b) == nil
	return b, ok
}
