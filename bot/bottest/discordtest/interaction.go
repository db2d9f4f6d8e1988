package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// interaction is something that a person did with the app. The server's mu guards it.
type interaction struct {
	id, token, user, channel string
	typ                      int
	message                  string // it is about; "" for a command
	began                    time.Time
	first                    int // the type of the first answer; 0 for none
	answered                 time.Time
	form                     *Form
	offers                   []string
	expired                  bool
}

// Form is a modal.
type Form struct {
	Interaction string
	ID          string      `json:"custom_id"`
	Title       string      `json:"title"`
	Components  []Component `json:"components"`
}

// Inputs are the inputs of a form.
func (f Form) Inputs() (out []Component) {
	for _, c := range f.Components {
		if c.Component != nil {
			out = append(out, *c.Component)
		}
	}
	return out
}

// Input is the input or menu of a form with a label; it has no id when there is none.
func (f Form) Input(label string) Component {
	for _, c := range f.Components {
		if c.Label == label && c.Component != nil {
			return *c.Component
		}
	}
	return Component{}
}

// ReadForm reads a form as Discord does; ok is false for one that it would refuse.
func ReadForm(data []byte) (f Form, ok bool) {
	ok = json.Unmarshal(data, &f) == nil && !f.faulty()
	return f, ok
}

// faulty reports whether Discord would refuse a form.
func (f Form) faulty() bool {
	between := func(n, least, most int) bool { return n >= least && n <= most }
	length := utf8.RuneCountInString
	if !between(length(f.ID), 1, 100) || !between(length(f.Title), 1, 45) || !between(len(f.Components), 1, 5) {
		return true
	}
	ids := map[string]bool{}
	for _, c := range f.Components {
		in := c.Component
		switch {
		case c.Type == 10 && between(length(c.Content), 1, 4000):
			continue
		case c.Type != 18 || in == nil, !between(length(c.Label), 1, 45), length(c.Hint) > 100, !between(length(in.ID), 1, 100), ids[in.ID]:
			return true
		case in.Type == 4 && (length(in.Value) > 4000 || in.Style != 1 && in.Style != 2 || in.Style == 1 && strings.Contains(in.Value, "\n")):
			return true
		case in.Type == 3 && !between(len(in.Options), 1, 25), in.Type != 3 && in.Type != 4:
			return true
		case in.Least != nil && (!between(*in.Least, 0, 25) || in.Required && *in.Least == 0):
			return true
		}
		ids[in.ID] = true
		chosen, most := 0, 1
		if in.Most != nil {
			most = *in.Most
		}
		if in.Type == 3 && !between(most, 1, len(in.Options)) {
			return true
		}
		for _, o := range in.Options {
			if o.Default {
				chosen++
			}
			if !between(length(o.Label), 1, 100) || !between(length(o.Value), 1, 100) || chosen > most {
				return true
			}
		}
	}
	return false
}

// Click lets a person press a button of a message by its custom id, as the message stands or stood first. It returns the
// interaction, and the number of the event about it. It panics when there is no such button.
func (s *Server) Click(user, in, id, button string) (interaction string, event int) {
	return s.act(user, in, id, button, nil)
}

// Choose lets a person choose an entry of a menu, like [Server.Click].
func (s *Server) Choose(user, in, id, menu, value string) (interaction string, event int) {
	return s.act(user, in, id, menu, []string{value})
}

func (s *Server) act(user, in, id, button string, values []string) (string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(in, id)
	for _, c := range m.FirstButtons() {
		if c.ID == button {
			return s.interact(user, m, 3, map[string]any{"custom_id": button, "component_type": c.Type, "values": values})
		}
	}
	panic(fmt.Sprintf("discordtest: the message %s has no button %s", id, button))
}

func (s *Server) find(in, id string) *Message {
	if c := s.channels[in]; c != nil {
		for _, m := range c.messages {
			if m.ID == id {
				return m
			}
		}
	}
	panic(fmt.Sprintf("discordtest: there is no message %s in %s", id, in))
}

// interact tells the app of an interaction. The caller holds mu.
func (s *Server) interact(user string, m *Message, typ int, data any) (string, int) {
	return s.interactIn(user, m.Channel, m, typ, data)
}

func (s *Server) interactIn(user, in string, m *Message, typ int, data any) (string, int) {
	i := &interaction{id: s.newID(), user: user, channel: in, typ: typ, began: time.Now()}
	i.token = "token-" + i.id
	s.interactions[i.id] = i
	c := s.channels[in]
	event := map[string]any{
		"id": i.id, "application_id": App, "type": typ, "token": i.token, "version": 1, "data": data, "channel_id": in, "channel": c.json(), "locale": "de",
	}
	if m != nil {
		i.message = m.ID
		event["message"] = m.json(s, "")
	}
	if c.guild == "" {
		event["user"], event["context"] = s.user(user), 1
	} else {
		event["guild_id"], event["member"], event["context"] = c.guild, map[string]any{"user": s.user(user)}, 0
	}
	return i.id, s.dispatch("INTERACTION_CREATE", event)
}

// Slash lets a person give the slash command, in a channel.
func (s *Server) Slash(user, in, words string) (interaction string, event int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in == DM(user) {
		s.dm(user)
	}
	options := []any{}
	if words != "" {
		options = append(options, map[string]any{"name": "words", "type": 3, "value": words})
	}
	return s.interactIn(user, in, nil, 2, map[string]any{"id": "1", "name": "nudge", "type": 1, "options": options})
}

// Type lets a person type the slash command, of which these are the words so far.
func (s *Server) Type(user, in, words string) (interaction string, event int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in == DM(user) {
		s.dm(user)
	}
	typed := map[string]any{"name": "words", "type": 3, "value": words, "focused": true}
	return s.interactIn(user, in, nil, 4, map[string]any{"id": "1", "name": "nudge", "type": 1, "options": []any{typed}})
}

// Offers are what was offered while the slash command was typed, as it would be entered.
func (s *Server) Offers(interaction string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.interactions[interaction].offers)
}

// Point lets a person choose the app's command in the menu of a message.
func (s *Server) Point(user, in, id string) (interaction string, event int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(in, id)
	return s.interactIn(user, in, nil, 2, map[string]any{
		"id": "2", "name": "Ask Nudge about this", "type": 3, "target_id": id, "resolved": map[string]any{"messages": map[string]any{id: m.json(s, "")}},
	})
}

// Form is the form that was opened for an interaction.
func (s *Server) Form(interaction string) (Form, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.interactions[interaction]; i != nil && i.form != nil {
		return *i.form, true
	}
	return Form{}, false
}

// Submit lets a person send a form with what they entered, by input; what they chose in a menu is the values, on a line
// each. Inputs that are not named hold what they held first. message is the one whose button opened the form; "" for a
// form of a command.
func (s *Server) Submit(user string, f Form, in, message string, values map[string]string) (interaction string, event int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var components []any
	for _, c := range f.Components {
		if c.Component == nil {
			components = append(components, map[string]any{"type": c.Type})
			continue
		}
		value, changed := values[c.Component.ID]
		if !changed {
			value = c.Component.Holds()
		}
		entered := map[string]any{"type": c.Component.Type, "custom_id": c.Component.ID}
		if c.Component.Type == 3 {
			entered["values"] = strings.FieldsFunc(value, func(r rune) bool { return r == '\n' })
		} else {
			entered["value"] = value
		}
		components = append(components, map[string]any{"type": 18, "component": entered})
	}
	data := map[string]any{"custom_id": f.ID, "components": components}
	if message == "" {
		return s.interactIn(user, in, nil, 5, data)
	}
	return s.interact(user, s.find(in, message), 5, data)
}

// Answered is the type of the first answer to an interaction, and how long it took; 0 when there was none.
func (s *Server) Answered(interaction string) (typ int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.interactions[interaction]
	if i == nil || i.first == 0 {
		return 0, 0
	}
	return i.first, i.answered.Sub(i.began)
}

// Expire lets an interaction be one that is too old to be answered further.
func (s *Server) Expire(interaction string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interactions[interaction].expired = true
}

// Commands are the slash commands that the app has made known.
func (s *Server) Commands() []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]json.RawMessage(nil), s.commands...)
}

// answer takes the first answer to an interaction. The caller holds mu.
func (s *Server) answer(id, token string, body []byte) answer {
	i := s.interactions[id]
	switch {
	case i == nil || i.token != token || i.first == 0 && time.Since(i.began) > s.options.Answer:
		return refused(404, 10062)
	case i.first != 0:
		return refused(400, 40060)
	}
	var said struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(body, &said) != nil || said.Type < 4 || said.Type > 9 {
		return refused(400, 50035)
	}
	if said.Type == 9 {
		f := &Form{Interaction: id}
		if json.Unmarshal(said.Data, f) != nil || f.faulty() {
			return refused(400, 50035)
		}
		i.form = f
	}
	if (i.typ == 4) != (said.Type == 8) || said.Type == 6 && i.message == "" {
		return refused(400, 50035)
	}
	if said.Type == 8 && !i.offer(said.Data) {
		return refused(400, 50035)
	}
	i.first, i.answered = said.Type, time.Now()
	return answer{status: 204}
}

// offer takes what is offered while a command is typed, and reports whether Discord would.
func (i *interaction) offer(data json.RawMessage) bool {
	var offered struct {
		Choices []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"choices"`
	}
	if json.Unmarshal(data, &offered) != nil || offered.Choices == nil || len(offered.Choices) > 25 {
		return false
	}
	for _, c := range offered.Choices {
		if n := utf8.RuneCountInString(c.Name); n < 1 || n > 100 || utf8.RuneCountInString(c.Value) > 100 {
			return false
		}
		i.offers = append(i.offers, c.Value)
	}
	return true
}

// followUp takes a further answer to an interaction. The caller holds mu.
func (s *Server) followUp(route, token string, body []byte) answer {
	var i *interaction
	for _, other := range s.interactions {
		if other.token == token {
			i = other
		}
	}
	switch {
	case i == nil:
		return refused(404, 10015)
	case i.expired || time.Since(i.began) > s.options.Token:
		return refused(401, 50027)
	case i.first == 0:
		return refused(404, 10015)
	}
	b, ok := readSent(body)
	if !ok {
		return refused(400, 50109)
	}
	if status, code := b.fault(); status > 0 {
		return refused(status, code)
	}
	m := &Message{ID: s.newID(), Channel: i.channel, Author: Bot, Text: *b.Content, Mentions: b.notifies(), At: time.Now()}
	if b.Flags&(1<<6) != 0 || route == "followup.edit" {
		m.For = i.user
	}
	c := s.channels[i.channel]
	c.messages = append(c.messages, m)
	return answer{status: 200, body: m.json(s, "")}
}
