package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/memory"
)

// call is a request of a program, and what is known of what becomes of it.
type call struct {
	event bot.Event
	// earlier is the turn that was under way when the message was received, and old the last parcel that was in the outbox
	// by then: what it said does not answer this message, unless the agent says that the turn has taken it in.
	earlier string
	old     uint64
	session string // in which the message was said

	stored bool // it came during a turn and waits to be taken in
	mine   bool // the next end of a turn is that of the turn that has it
	last   *agent.Reply
}

// message answers POST /api/messages: one message or command of a program.
func (s *Server) message(w http.ResponseWriter, r *http.Request) {
	var body struct {
		User    string `json:"user"`
		Session string `json:"session"`
		Text    string `json:"text"`
	}
	if !readBody(w, r, &body) {
		return
	}
	e, err := s.programEvent(body.User, body.Session, body.Text)
	if err != nil {
		refuse(w, http.StatusBadRequest, "%s", err)
		return
	}
	leave, ok := place(w, s.calls)
	if !ok {
		return
	}
	defer leave()
	c, leaveConversation := s.enter(e.Address)
	defer leaveConversation()
	from := c.follow()
	defer from.stop()
	run := &call{event: e}
	if !s.begin(w, r, c, run) {
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		s.streamAnswer(w, r, from, run)
		return
	}
	s.lastAnswer(w, r, from, run)
}

func (s *Server) programEvent(user, session, text string) (bot.Event, error) {
	switch {
	case !named(user):
		return bot.Event{}, errors.New("user: give a name without spaces and without : or ~, of at most 64 characters")
	case session != "" && !named(session):
		return bot.Event{}, errors.New("session: a name has no spaces and no : or ~, and at most 64 characters")
	case strings.TrimSpace(text) == "":
		return bot.Event{}, errors.New("text: there is nothing in the message")
	}
	person := agent.Person{ID: agent.PersonID("api:" + user), Name: user, Zone: s.Person.Zone}
	address := person.ID.Home()
	if session != "" {
		address += ":" + session
	}
	id := "api-" + rand.Text()
	return bot.Event{Keys: []string{id}, From: person, Address: address, ID: id, At: time.Now(), Text: text}, nil
}

// begin gives the message to the agent. Nothing is said in the conversation meanwhile, so what comes next comes after.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, c *conversation, run *call) bool {
	c.gate.Lock()
	defer c.gate.Unlock()
	err := s.Store.View(r.Context(), func(tx memory.Tx) error {
		var err error
		if run.session, err = agent.SessionOf(tx, c.address); err != nil {
			return err
		}
		if run.earlier, err = agent.OpenTurn(tx, run.session); err != nil {
			return err
		}
		run.old, err = tx.Outbox().Last()
		return err
	})
	var admission bot.Admission
	if err == nil {
		// Who goes away after the message is kept has still said it.
		admission, err = s.programs.pass(r.Context(), run.event)
	}
	switch {
	case errors.Is(err, errDeaf):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "%s", errDeaf)
	case err != nil:
		s.Log.Error("a program's message could not be kept", "error", err)
		refuse(w, http.StatusServiceUnavailable, "the message could not be kept, so nothing was done; try again (nudge's log says why)")
	case admission == bot.Refused:
		refuse(w, http.StatusForbidden, "%s is not on the allow list", run.event.From.ID)
	}
	return err == nil && admission == bot.Taken
}

// lastAnswer answers with the last thing said once the turn is settled or waits.
func (s *Server) lastAnswer(w http.ResponseWriter, r *http.Request, from *reader, run *call) {
	err := s.await(r.Context(), from, run, func(agent.Reply) error { return nil }, nil)
	switch {
	case err != nil && r.Context().Err() != nil: // nobody is there to be answered
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, "%s; the message is kept and will be worked on", err)
	default:
		answer(w, http.StatusOK, run.last)
	}
}

// streamAnswer sends each line as it is said.
func (s *Server) streamAnswer(w http.ResponseWriter, r *http.Request, from *reader, run *call) {
	out, err := begin(w)
	if err != nil {
		return
	}
	_ = s.await(r.Context(), from, run, func(r agent.Reply) error {
		data, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode a %s: %w", r.Kind, err)
		}
		return out.send("data: " + string(data) + "\n\n")
	}, func() error { return out.send(": still here\n\n") })
}

// await gives each line to said until the message's turn is settled or waits. alive is called now and then.
func (s *Server) await(ctx context.Context, from *reader, run *call, said func(agent.Reply) error, alive func() error) error {
	life := time.NewTicker(beat)
	defer life.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return errors.New("nudge is ending")
		case <-life.C:
			if alive == nil {
				continue
			}
			if err := alive(); err != nil {
				return err
			}
		case <-from.wake:
			lines, err := from.next()
			if err != nil {
				return err
			}
			for _, h := range lines {
				if n, isParcel := parcelNumber(h.line.Parcel); isParcel && n <= run.old {
					continue
				}
				if err := said(h.line.Reply); err != nil {
					return err
				}
				if run.take(h.line.Reply) {
					return nil
				}
			}
		}
	}
}

// take takes note of a line and reports whether it is the last that this message brings.
func (c *call) take(r agent.Reply) (done bool) {
	command := strings.HasPrefix(strings.TrimSpace(c.event.Text), "/") || strings.EqualFold(strings.TrimSpace(c.event.Text), "stop")
	switch r.Kind {
	case agent.Final, agent.Ask, agent.Approval, agent.Notify:
		c.last = &r
	case agent.Notice, agent.Fault:
		c.last = &r
		return command && (r.Turn == "" || r.ID != "")
	case agent.DecidedMark:
		if r.Turn != "" && r.Session != c.session {
			// What follows a decision about another session's card is said there, and not here.
			c.last = &r
			return command && (r.By == string(c.event.From.ID) || slices.Contains(strings.Fields(c.event.Text), r.ID))
		}
		c.mine = c.mine || !r.IsFeedback()
	case agent.SteerMark:
		if r.ID == c.event.ID {
			c.stored = true
			c.mine = c.mine || r.State != agent.Stored
		}
	case agent.SettledMark, agent.WaitingMark:
		if c.last == nil {
			c.last = &r
		}
		return c.mine || !c.stored && (command || r.Turn != c.earlier)
	}
	return false
}
