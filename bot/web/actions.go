package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
	"nudge/schedule"
)

// actID is the form of the ids that the page gives to what a person does. The same id twice is done once.
var actID = regexp.MustCompile(`^[A-Za-z0-9_-]{8,64}$`)

// act is what every request of the page has.
type act struct {
	ID           string `json:"id"`
	Conversation string `json:"conversation"` // its name; "" for the person's own
}

// event begins the event of an act, or answers what is wrong with it.
func (s *Server) event(w http.ResponseWriter, a act) (bot.Event, bool) {
	address, ok := s.addressOf(a.Conversation)
	if !ok || !actID.MatchString(a.ID) {
		refuse(w, http.StatusBadRequest, "an id has 8 to 64 letters, digits, - or _, and a conversation's name no spaces and no : or ~")
		return bot.Event{}, false
	}
	return bot.Event{Keys: []string{"web-" + a.ID}, From: s.Person, Address: address, ID: a.ID, At: time.Now()}, true
}

// say takes words or a command. A quiet one is a button's: it is not shown as said.
func (s *Server) say(w http.ResponseWriter, r *http.Request) {
	var body struct {
		act
		Text  string `json:"text"`
		Quiet bool   `json:"quiet"`
	}
	if !readBody(w, r, &body) {
		return
	}
	e, ok := s.event(w, body.act)
	if !ok {
		return
	}
	if strings.TrimSpace(body.Text) == "" {
		refuse(w, http.StatusBadRequest, "there is nothing in the message")
		return
	}
	e.Text = body.Text
	s.admit(w, r, e, !body.Quiet)
}

// stop takes the Stop button.
func (s *Server) stop(w http.ResponseWriter, r *http.Request) {
	var body act
	if !readBody(w, r, &body) {
		return
	}
	if e, ok := s.event(w, body); ok {
		e.Stop = true
		s.admit(w, r, e, false)
	}
}

// decide takes a button of a card.
func (s *Server) decide(w http.ResponseWriter, r *http.Request) {
	var body struct {
		act
		Card      string        `json:"card"`
		Verdict   agent.Verdict `json:"verdict"`
		Text      string        `json:"text"`
		Arguments string        `json:"arguments"` // of an edit: JSON as it was typed
		Open      []string      `json:"open"`      // of always: the names of what is left open
		Batch     bool          `json:"batch"`     // it is about all cards of which this is the last
	}
	if !readBody(w, r, &body) {
		return
	}
	e, ok := s.event(w, body.act)
	if !ok {
		return
	}
	if body.Card == "" || len(body.Card) > memory.MaxID {
		refuse(w, http.StatusBadRequest, "say which card is decided")
		return
	}
	e.Click, e.Batch = &agent.Decision{Card: body.Card, Verdict: body.Verdict, Text: body.Text, Open: body.Open}, body.Batch
	switch body.Verdict {
	case agent.Approve, agent.Deny, agent.Always:
	case agent.AnswerIt:
		if strings.TrimSpace(body.Text) == "" {
			refuse(w, http.StatusBadRequest, "there is nothing in the answer")
			return
		}
	case agent.Edit:
		if fault := argumentsFault(body.Arguments); fault != "" {
			refuse(w, http.StatusUnprocessableEntity, "%s", fault)
			return
		}
		e.Click.Arguments = json.RawMessage(body.Arguments)
	default:
		refuse(w, http.StatusBadRequest, "a card is decided by approve, always, deny, edit or answer")
		return
	}
	s.admit(w, r, e, false)
}

// judge takes a button of a notify card.
func (s *Server) judge(w http.ResponseWriter, r *http.Request) {
	var body struct {
		act
		Card string            `json:"card"`
		Said schedule.Feedback `json:"said"`
		Span schedule.Span     `json:"span"` // of a snooze
	}
	if !readBody(w, r, &body) {
		return
	}
	e, ok := s.event(w, body.act)
	if !ok {
		return
	}
	if body.Card == "" || len(body.Card) > memory.MaxID {
		refuse(w, http.StatusBadRequest, "say which message is meant")
		return
	}
	if err := body.Said.Check(body.Span); err != nil {
		refuse(w, http.StatusBadRequest, "%s", err)
		return
	}
	e.Feedback = &bot.Feedback{Card: body.Card, Said: body.Said, Span: body.Span}
	s.admit(w, r, e, false)
}

// argumentsFault says what keeps a text from being a JSON object; "" when it is one.
func argumentsFault(text string) string {
	var object map[string]json.RawMessage
	err := json.Unmarshal([]byte(text), &object)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		line, column := placeOf(text, int(syntax.Offset))
		return "This is not JSON, at line " + line + ", column " + column + ": " + syntax.Error() + "."
	case err != nil || object == nil:
		return `The arguments are an object: {"name": "value"}.`
	}
	return ""
}

// admit gives an event to the agent, and what was said to every tab.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, e bot.Event, echo bool) {
	c, leave := s.enter(e.Address)
	defer leave()
	c.gate.Lock()
	defer c.gate.Unlock()
	before := s.sessionOf(r.Context(), e.Address)
	admission, err := s.browser.pass(r.Context(), e)
	var wrong *unfit
	switch {
	case errors.As(err, &wrong):
		answer(w, http.StatusUnprocessableEntity, map[string]any{"error": "Nothing was decided: " + wrong.Text, "fields": wrong.Fields})
		return
	case errors.Is(err, errDeaf):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "%s", errDeaf)
		return
	case err != nil:
		s.Log.Error("what was done in the browser could not be kept", "error", err)
		refuse(w, http.StatusServiceUnavailable, "this could not be kept, so nothing was done; try again (nudge's log says why)")
		return
	case admission == bot.Refused:
		refuse(w, http.StatusForbidden, "you are not allowed to talk here")
		return
	}
	if admission == bot.Taken {
		s.show(r.Context(), c, e, before, echo)
	}
	answer(w, http.StatusOK, map[string]bool{"repeat": admission == bot.Repeat})
}

// show tells every tab what was said, and that the conversation has another session if the words have changed that.
func (s *Server) show(ctx context.Context, c *conversation, e bot.Event, before string, echo bool) {
	s.forgetKept(context.WithoutCancel(ctx), c)
	if e.Text != "" && echo {
		at := e.At.UTC()
		said := lineOf(agent.Reply{Kind: agent.Said, Session: before, ID: e.ID, By: string(e.From.ID), Text: e.Text}, "")
		said.At = &at
		if err := c.publish(said); err != nil {
			s.Log.Error("what was said could not be shown", "error", err)
		}
	}
	if after := s.sessionOf(context.WithoutCancel(ctx), c.address); after != before {
		if err := c.publish(line{Reply: agent.Reply{Kind: reload, Session: after}}); err != nil {
			s.Log.Error("the other session could not be shown", "error", err)
		}
	}
}

// sessionOf is the present session of a conversation; what cannot be read counts as the first.
func (s *Server) sessionOf(ctx context.Context, address string) string {
	session := address
	err := s.Store.View(ctx, func(tx memory.Tx) (err error) {
		session, err = agent.SessionOf(tx, address)
		return err
	})
	if err != nil {
		s.Log.Warn("cannot look up the present session", "conversation", address, "error", err)
	}
	return session
}
