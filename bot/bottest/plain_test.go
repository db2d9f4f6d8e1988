package bottest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
)

var annHere = agent.Person{ID: "plain:local:ann", Name: "ann"}

// TestSuite runs the suite on the plainest of platforms, for each of the ways in which an adapter can be in doubt.
func TestSuite(t *testing.T) {
	for name, doubt := range map[string]bot.Doubt{"no doubt": bot.NoDoubt, "finds out": bot.FindsOut, "cannot tell": bot.CannotTell} {
		t.Run(name, func(t *testing.T) {
			Run(t, func(t *testing.T) Rig {
				p := &plain{T: t, doubt: doubt, keys: map[string]bool{}}
				if doubt == bot.NoDoubt {
					return p
				}
				return forgetful{p}
			})
		})
	}
}

// plain is a platform of one person that shows text and takes commands.
type plain struct {
	*testing.T
	doubt bot.Doubt
	heard chan bot.Event // of the adapter that listens

	mu     sync.Mutex
	number int
	lines  []Line
	keys   map[string]bool // of what is shown
	faults []func(show func()) error
}

// forgetful is a plain platform whose answers can be lost.
type forgetful struct{ *plain }

func (p forgetful) LoseAnswers(n int) {
	p.fail(n, func(show func()) error {
		show()
		return errors.New("the link was cut")
	})
}

func (p *plain) fail(n int, fault func(show func()) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range n {
		p.faults = append(p.faults, fault)
	}
}

func (p *plain) FailSends(n int) {
	p.fail(n, func(func()) error { return &bot.SendError{Err: errors.New("down")} })
}

func (p *plain) LimitSends(n int) {
	p.fail(n, func(func()) error { return &bot.SendError{RetryAfter: time.Millisecond, Err: errors.New("too many")} })
}

func (p *plain) RefuseSends(n int) {
	p.fail(n, func(func()) error { return &bot.SendError{Gone: true, Err: errors.New("no such place")} })
}

func (p *plain) People() People { return People{Ann: annHere} }

func (p *plain) Say(from agent.Person, _ Place, text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	id := fmt.Sprint("said-", p.number)
	p.heard <- bot.Event{Keys: []string{id}, From: from, Address: from.ID.Home(), ID: id, Text: text}
	return id
}

func (p *plain) Press(from agent.Person, at Place, d agent.Decision) {
	words := d.Text
	switch d.Verdict {
	case agent.Edit:
		words = string(d.Arguments)
	case agent.Always:
		d.Verdict, words = agent.Approve, AlwaysWords(d)
	}
	p.Say(from, at, strings.TrimSpace(fmt.Sprintf("/%s %s %s", d.Verdict, d.Card, words)))
}

func (p *plain) PressAll(from agent.Person, at Place, cards []string, verdict agent.Verdict) {
	p.Say(from, at, fmt.Sprintf("/%s %s", verdict, strings.Join(cards, " ")))
}

func (p *plain) Judge(from agent.Person, at Place, heartbeat string, f bot.Feedback) {
	p.Say(from, at, "/"+Judgement(heartbeat, f))
}

func (p *plain) Stop(from agent.Person, at Place) { p.Say(from, at, "stop") }

func (p *plain) Shown(agent.Person, Place) []Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := make([]Line, len(p.lines))
	for i, l := range p.lines {
		if l.Card != nil {
			card := *l.Card
			l.Card = &card
		}
		lines[i] = l
	}
	return lines
}

// show lets a reply stand there. The caller holds mu.
func (p *plain) show(d bot.Delivery) {
	p.keys[d.Key] = true
	switch d.Kind {
	case agent.Approval, agent.Ask:
		p.lines = append(p.lines, Line{Text: bot.CardText(d.Reply, "/"), Card: &Card{ID: d.ID, Open: true}})
	case agent.Notify:
		p.lines = append(p.lines, Line{Text: d.Text, Card: &Card{ID: d.ID, Open: true}})
	case agent.DecidedMark:
		for _, l := range p.lines {
			if l.Card != nil && l.Card.ID == d.ID {
				l.Card.Open, l.Card.Outcome = false, bot.DecidedText(d.Reply)
			}
		}
	case agent.Final, agent.Notice, agent.Fault:
		p.lines = append(p.lines, Line{Text: d.Text})
	}
}

// Adapter gives an adapter whose inbox is the platform's until the next is made.
func (p *plain) Adapter(Program) bot.Adapter {
	p.heard = make(chan bot.Event, 100)
	return &plainAdapter{p, p.heard}
}

type plainAdapter struct {
	*plain
	heard chan bot.Event
}

func (a *plainAdapter) Platform() string         { return "plain" }
func (a *plainAdapter) Serves(string) bool       { return true }
func (a *plainAdapter) Abilities() bot.Abilities { return bot.Abilities{Slash: "/", Doubt: a.doubt} }

func (a *plainAdapter) Listen(ctx context.Context, in bot.Receiver) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-a.heard:
			if _, err := in.Receive(ctx, e); err != nil && ctx.Err() == nil {
				a.Errorf("receive %q: %v", e.Text, err)
			}
		}
	}
}

func (a *plainAdapter) Say(_ context.Context, d bot.Delivery) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !d.Doubtful.IsZero() && a.doubt == bot.FindsOut && a.keys[d.Key] {
		return "", nil
	}
	if len(a.faults) > 0 && d.Key != "" {
		fault := a.faults[0]
		a.faults = a.faults[1:]
		return "", fault(func() { a.show(d) })
	}
	a.show(d)
	return "", nil
}
