package slack

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
)

// inbox is a receiver that notes what it is given. It knows repeats by their keys.
type inbox struct {
	mu      sync.Mutex
	events  []bot.Event
	seen    map[string]bool
	cards   map[string]agent.Reply // those that wait
	fail    error
	held    chan struct{} // closed when events may be taken; nil when they may
	refused agent.PersonID
	schemas map[string]string                  // of tools
	objects func(e bot.Event) *agent.Objection // what speaks against a click; nil for nothing

	declined  bool // Stops are not for those who press them
	overviews map[agent.PersonID]bot.Overview
	renewed   []agent.Person
}

func (b *inbox) Receive(ctx context.Context, e bot.Event) (bot.Admission, error) {
	b.mu.Lock()
	held := b.held
	b.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return 0, b.fail
	}
	if e.From.ID == b.refused {
		return bot.Refused, nil
	}
	if e.Stop && b.declined {
		return bot.Declined, nil
	}
	fresh := true
	for _, key := range e.Keys {
		if b.seen == nil {
			b.seen = map[string]bool{}
		}
		fresh = fresh && !b.seen[key]
		b.seen[key] = true
	}
	if !fresh {
		return bot.Repeat, nil
	}
	b.events = append(b.events, e)
	return bot.Taken, nil
}

func (b *inbox) Card(_ context.Context, id string) (agent.Reply, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	card, ok := b.cards[id]
	return card, ok, nil
}

func (b *inbox) Schema(tool string) json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return json.RawMessage(b.schemas[tool])
}

func (b *inbox) Weigh(_ context.Context, e bot.Event) (*agent.Objection, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.objects == nil {
		return nil, nil
	}
	return b.objects(e), nil
}

func (b *inbox) Overview(_ context.Context, of agent.Person, standing bot.Standing) (bot.Overview, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.overviews[of.ID], b.fail
}

func (b *inbox) Complete(context.Context, agent.Person, string) ([]bot.Completion, error) {
	return nil, nil
}

func (b *inbox) Kept(context.Context, string) (map[string]string, error) { return nil, nil }

func (b *inbox) Keep(context.Context, string, map[string]string) error { return nil }

func (b *inbox) Renew(_ context.Context, p agent.Person) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renewed = append(b.renewed, p)
	return b.fail
}

func (b *inbox) all() []bot.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

func (b *inbox) texts() []string {
	var out []string
	for _, e := range b.all() {
		out = append(out, e.Text)
	}
	return out
}

// desk is an adapter that listens to a fake Slack and gives what it hears to an inbox.
type desk struct {
	*testing.T
	server *slacktest.Server
	slack  *Slack
	in     *inbox
	stop   func() error // ends Listen and gives its error
}

func newDesk(t *testing.T, timing Timing) *desk {
	t.Helper()
	d := newClosedDesk(t, timing)
	d.listen()
	d.linked()
	return d
}

// newClosedDesk is a desk that does not listen yet.
func newClosedDesk(t *testing.T, timing Timing) *desk {
	t.Helper()
	server := newServer(t)
	return &desk{T: t, server: server, slack: newSlack(t, server, timing), in: &inbox{cards: map[string]agent.Reply{}}}
}

// listen lets the adapter listen until the test ends.
func (d *desk) listen() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	s := d.slack
	go func() { ended <- s.Listen(ctx, d.in) }()
	d.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	d.Cleanup(func() { _ = d.stop() })
}

func (d *desk) linked() {
	d.Helper()
	d.until("there is a link", func() bool { return d.server.Linked() > 0 })
}

func (d *desk) until(what string, so func() bool) {
	d.Helper()
	if !d.server.Await(patience, so) {
		d.Fatalf("waited in vain until %s", what)
	}
}

// acked waits until deliveries were acknowledged.
func (d *desk) acked(deliveries ...string) {
	d.Helper()
	d.until("all is acknowledged", func() bool {
		return !slices.ContainsFunc(deliveries, func(id string) bool { n, _ := d.server.Acked(id); return n == 0 })
	})
}

// say lets Ann write and waits until that was acknowledged.
func (d *desk) say(said slacktest.Said) (ts string) {
	d.Helper()
	if said.User == "" {
		said.User = "U0ANN"
	}
	if said.Channel == "" {
		said.Channel = slacktest.DM(said.User)
	}
	ts, deliveries := d.server.Say(said)
	d.acked(deliveries...)
	return ts
}

// tell lets the adapter say something, which must succeed.
func (d *desk) tell(key string, r agent.Reply) string {
	d.Helper()
	receipt, err := d.slack.Say(d.Context(), bot.Delivery{Reply: r, Key: key})
	if err != nil {
		d.Fatalf("say %q: %v", key, err)
	}
	return receipt
}

const annsDM = "slack:T0TEST:dm:U0ANN"
