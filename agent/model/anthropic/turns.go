package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf8"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// What is put where the provider wants something to stand and nothing does.
const (
	userStandIn   = "(The conversation goes on.)"
	goOn          = "(Go on.)"
	missingResult = "(There is no result.)"
)

// takeTurns writes a conversation as messages of a user and an assistant in turn, beginning and ending with the user.
// Every text of a user survives, in order. Results without their call are left out: as anything but a result they
// would speak with a person's voice. Calls without their result get one that says so.
//
// Only what comes from an index on is written: 0, or that of an answer before which something was sent. Sent are the ids
// that were given out when the conversation was last written. StoodIn says whether the last message is made up for want
// of one.
func takeTurns(ctx context.Context, in []model.Message, from int, sent *ids, name string) (out []message, stoodIn bool, err error) {
	sent.takeBack(from)
	c := &conversation{ctx: ctx, model: name, ids: sent}
	if from > 0 {
		c.before = roleUser
	}
	for i := from; i < len(in); i++ {
		c.at = i
		switch m := &in[i]; m.Role {
		case model.User:
			if strings.TrimSpace(m.Text) != "" {
				c.said = append(c.said, textBlock(m.Text))
			}
		case model.Assistant:
			c.answer(m)
		case model.ToolRole:
			c.result(m)
		default:
			return nil, false, fmt.Errorf("encode message %d: unknown role %q", i, m.Role)
		}
	}
	c.endUserTurn()
	if c.last() == roleUser {
		return c.out, false, nil
	}
	return append(c.out, message{Role: roleUser, Content: []block{textBlock(goOn)}}), true, nil
}

// conversation is one that is being written. The user's turn, which is not yet in out, has the results of the open
// calls first and then what people said, in one message.
type conversation struct {
	ctx    context.Context
	model  string
	before string // who spoke before out; "" if nobody did
	at     int    // the message that is being written
	out    []message
	open   []openCall // of the last answer
	said   []block    // by the user, since then
	ids    *ids
}

// last returns who spoke last; "" if nobody did.
func (c *conversation) last() string {
	if n := len(c.out); n > 0 {
		return c.out[n-1].Role
	}
	return c.before
}

// openCall is a call whose result has yet to be sent.
type openCall struct {
	id       string // as the conversation has it
	sent     string // as it is sent
	answered bool
	result   string
}

// answer takes in what an assistant said; nothing, if it said nothing.
func (c *conversation) answer(m *model.Message) {
	if !wire.Speaks(m) {
		return
	}
	c.endUserTurn()
	blocks := c.answerBlocks(m)
	switch c.last() {
	case roleAssistant:
		last := &c.out[len(c.out)-1]
		last.Content = append(last.Content, blocks...)
		return
	case "":
		c.out = append(c.out, message{Role: roleUser, Content: []block{textBlock(userStandIn)}})
	}
	c.out = append(c.out, message{Role: roleAssistant, Content: blocks, begins: c.at})
}

// answerBlocks writes an answer in the order in which it came: thoughts, text, calls, with the later thoughts where
// they stood. An answer must not end in a thought.
func (c *conversation) answerBlocks(m *model.Message) []block {
	var out []block
	text, calls := 0, 0
	upTo := func(t, n int) {
		t, n = min(max(t, text), len(m.Text)), min(max(n, calls), len(m.Calls))
		if t < len(m.Text) && !utf8.RuneStart(m.Text[t]) {
			t = text
		}
		piece := m.Text[text:t]
		if text > 0 {
			piece = strings.TrimLeft(piece, "\n")
		}
		if strings.TrimSpace(piece) != "" {
			out = append(out, textBlock(piece))
		}
		for _, call := range m.Calls[calls:n] {
			out = append(out, c.call(call))
		}
		text, calls = t, n
	}
	for _, t := range unpackThoughts(m.Reasoning, c.model) {
		upTo(t.AfterText, t.AfterCalls)
		if text < len(m.Text) || calls < len(m.Calls) {
			out = append(out, t.block())
		}
	}
	upTo(len(m.Text), len(m.Calls))
	return out
}

// call writes a call and opens it. One whose arguments are no object is sent without any: the provider would refuse
// the whole conversation for it.
func (c *conversation) call(call model.Call) block {
	id := c.ids.unique(call.ID, c.at)
	c.open = append(c.open, openCall{id: call.ID, sent: id})
	input := json.RawMessage("{}")
	if wire.IsObject(call.Arguments) {
		input = json.RawMessage(call.Arguments)
	}
	return block{Type: kindCall, ID: id, Name: plain(call.Name, maxName), Input: input}
}

// result takes in the result of a call.
func (c *conversation) result(m *model.Message) {
	for i := range c.open {
		if call := &c.open[i]; call.id == m.CallID && !call.answered {
			call.answered, call.result = true, m.Text
			return
		}
	}
	slog.WarnContext(c.ctx, "a tool result without its call was not sent to the model", "call", m.CallID)
}

// endUserTurn writes what the user's turn has, if it has anything.
func (c *conversation) endUserTurn() {
	var content []block
	for _, call := range c.open {
		b := block{Type: kindResult, ToolUseID: call.sent, Content: call.result}
		switch {
		case !call.answered:
			b.Content = missingResult
		case strings.TrimSpace(call.result) == "":
			b.Content = "" // left out: a blank one is refused
		}
		content = append(content, b)
	}
	content = append(content, c.said...)
	c.open, c.said = nil, nil
	if len(content) > 0 {
		c.out = append(c.out, message{Role: roleUser, Content: content})
	}
}

// The bytes that ids and names may have.
const (
	maxID   = 64
	maxName = 128
)

// ids are the ids that a conversation's calls were sent with. The zero value has none.
type ids struct {
	taken map[string]int
	trail []counted
}

// counted is an id that was counted for a message, once.
type counted struct {
	id      string
	message int
}

// unique returns an id as the provider takes it, for a call in a message: other providers' ids have other characters,
// and may come again.
func (s *ids) unique(id string, message int) string {
	const room = 8 // for the number
	base := plain(id, maxID-room)
	id = base
	for s.taken[id] > 0 {
		s.count(base, message)
		id = base + "_" + strconv.Itoa(s.taken[base])
	}
	s.count(id, message)
	return id
}

func (s *ids) count(id string, message int) {
	if s.taken == nil {
		s.taken = map[string]int{}
	}
	s.taken[id]++
	s.trail = append(s.trail, counted{id, message})
}

// takeBack forgets the ids of the calls from a message on.
func (s *ids) takeBack(from int) {
	n := len(s.trail)
	for ; n > 0 && s.trail[n-1].message >= from; n-- {
		id := s.trail[n-1].id
		if s.taken[id]--; s.taken[id] == 0 {
			delete(s.taken, id)
		}
	}
	if s.trail = s.trail[:n]; n == 0 {
		*s = ids{}
	}
}

// size returns about how many bytes of memory the ids hold.
func (s *ids) size() int {
	const ofTrail, ofTaken = 24, 48 // a map has room for more than is in it
	n := cap(s.trail)*ofTrail + len(s.taken)*ofTaken
	for id := range s.taken {
		n += len(id)
	}
	return n
}

// plain returns a text with nothing but letters, digits, _ and - in it, not empty and not too long.
func plain(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, s)
	if s == "" {
		return "_"
	}
	return s[:min(len(s), limit)]
}
