package web

import (
	"context"
	"errors"
	"strings"
	"sync"

	"nudge/agent"
	"nudge/bot"
)

// adapter is one of the two platforms that speak through a server.
type adapter struct {
	server   *Server
	platform string

	mu      sync.Mutex
	in      bot.Receiver                                                  // nil while nobody listens
	receive func(ctx context.Context, e bot.Event) (bot.Admission, error) // nil while nobody listens
	busy    sync.WaitGroup
}

var _ bot.Adapter = (*adapter)(nil)

// errDeaf is the error of what arrives before the agent listens, or after.
var errDeaf = errors.New("nudge is starting or ending; try again in a moment")

// Platform is "web" or "api".
func (a *adapter) Platform() string { return a.platform }

// Serves is true for the direct conversations of the person at the browser, and for all of programs.
func (a *adapter) Serves(address string) bool {
	if a == a.server.programs {
		return strings.HasPrefix(address, "api:local:dm:")
	}
	home := a.server.Person.ID.Home()
	return address == home || strings.HasPrefix(address, home+":")
}

// Abilities says that the page shows cards with buttons and changes them, and receipts; programs get lines.
func (a *adapter) Abilities() bot.Abilities {
	if a == a.server.programs {
		return bot.Abilities{Slash: "/"}
	}
	return bot.Abilities{Buttons: true, Edits: true, Reactions: true, Private: true, Slash: "/"}
}

// Listen lets requests through to in until ctx ends.
func (a *adapter) Listen(ctx context.Context, in bot.Receiver) error {
	a.mu.Lock()
	a.in = in
	a.receive = func(request context.Context, e bot.Event) (bot.Admission, error) {
		request, cancel := context.WithCancel(request)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		if err := unfitting(request, in, e); err != nil {
			return 0, err
		}
		return in.Receive(request, e)
	}
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.in, a.receive = nil, nil
	a.mu.Unlock()
	a.busy.Wait()
	return nil
}

// unfit is the error of an edit whose arguments can be mended where they were written.
type unfit struct{ agent.Objection }

func (u *unfit) Error() string { return u.Text }

// unfitting says what does not fit of an edit. All other objections are told in the conversation.
func unfitting(ctx context.Context, in bot.Receiver, e bot.Event) error {
	if e.Click == nil || e.Click.Verdict != agent.Edit {
		return nil
	}
	o, err := in.Weigh(ctx, e)
	if err != nil || o == nil || o.Final {
		return err
	}
	return &unfit{*o}
}

// pass gives an event to whoever listens.
func (a *adapter) pass(ctx context.Context, e bot.Event) (bot.Admission, error) {
	a.mu.Lock()
	receive := a.receive
	if receive == nil {
		a.mu.Unlock()
		return 0, errDeaf
	}
	a.busy.Add(1)
	a.mu.Unlock()
	defer a.busy.Done()
	return receive(ctx, e)
}

// Say shows a reply in every tab of its conversation, or gives it to the requests that wait there. It waits for
// none of them. What the store's record does not tell, and no tab sees now, is kept for the next one.
func (a *adapter) Say(ctx context.Context, d bot.Delivery) (string, error) {
	c, leave := a.server.enter(d.Address)
	defer leave()
	c.gate.Lock()
	defer c.gate.Unlock()
	if a == a.server.browser && isKept(d.Reply) && !c.watched() {
		if err := a.server.keep(ctx, c, d); err != nil {
			return "", err
		}
	}
	return "", c.publish(lineOf(d.Reply, d.Key))
}
