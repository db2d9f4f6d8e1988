package web

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest"
)

func TestContract(t *testing.T) {
	bottest.Run(t, func(t *testing.T) bottest.Rig { return newRig(t) })
}

// rig is a browser with one tab.
type rig struct {
	t     *testing.T
	tab   *tab
	acts  chan deed
	ended chan struct{}

	mu       sync.Mutex
	accepted int
	last     deed
	pending  sync.WaitGroup
}

// deed is a request that a button makes.
type deed struct {
	path string
	body map[string]any
}

var me = agent.Person{ID: "web:me", Name: "ann", Zone: "Europe/Berlin"}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, tab: openTab(t, nil), acts: make(chan deed, 100), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for a := range r.acts {
			r.do(a)
			r.pending.Done()
		}
	}()
	t.Cleanup(func() {
		close(r.acts)
		<-r.ended
	})
	return r
}

func (r *rig) do(a deed) {
	status, _ := r.tab.post(a.path, a.body)
	if status == 200 {
		r.mu.Lock()
		r.accepted++
		r.mu.Unlock()
	}
}

func (r *rig) enqueue(path string, body map[string]any) string {
	id := r.tab.newID()
	body["id"] = id
	r.mu.Lock()
	r.last = deed{path, body}
	r.mu.Unlock()
	r.pending.Add(1)
	r.acts <- deed{path, body}
	return id
}

// served lets the server answer while its adapter listens.
type served struct {
	bot.Adapter
	server *Server
}

func (s served) Listen(ctx context.Context, in bot.Receiver) error {
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(ctx) }()
	err := s.Adapter.Listen(ctx, in)
	if failed := <-ended; failed != nil {
		return failed
	}
	return err
}

func (r *rig) Adapter(p bottest.Program) bot.Adapter {
	s, err := New(Config{Listen: "127.0.0.1:0", Store: p.Store, Person: me, Token: "t"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.tab.at(s)
	return served{s.browser, s}
}

func (r *rig) People() bottest.People { return bottest.People{Ann: me} }

func (r *rig) Say(_ agent.Person, _ bottest.Place, text string) string {
	return r.enqueue("/api/say", map[string]any{"text": text})
}

func (r *rig) Press(_ agent.Person, _ bottest.Place, d agent.Decision) {
	r.enqueue("/api/decide", map[string]any{"card": d.Card, "verdict": d.Verdict, "text": d.Text, "arguments": string(d.Arguments), "open": d.Open})
}

func (r *rig) PressAll(_ agent.Person, _ bottest.Place, cards []string, verdict agent.Verdict) {
	r.enqueue("/api/decide", map[string]any{"card": cards[len(cards)-1], "verdict": verdict, "batch": true})
}

func (r *rig) Judge(_ agent.Person, _ bottest.Place, _ string, f bot.Feedback) {
	r.enqueue("/api/judge", map[string]any{"card": f.Card, "said": f.Said, "span": f.Span})
}

func (r *rig) Stop(agent.Person, bottest.Place) { r.enqueue("/api/stop", map[string]any{}) }

func (r *rig) Redeliver() {
	r.pending.Wait()
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	r.do(last)
}

func (r *rig) Acknowledged() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted
}

func (r *rig) Receipt(message string) string {
	state := ""
	for _, l := range r.tab.shown(agent.Said, agent.SteerMark) { // a snapshot tells it with the words
		if l.ID == message && l.State != "" {
			state = l.State
		}
	}
	return state
}

func (r *rig) DropLink() { r.tab.drop() }

// Shown is what the page shows of the bot's words: marks stand on the cards that they are about.
func (r *rig) Shown(agent.Person, bottest.Place) []bottest.Line {
	var lines []bottest.Line
	for _, l := range r.tab.shown() {
		switch l.Kind {
		case agent.Notify:
			lines = append(lines, bottest.Line{Text: l.Text, Card: &bottest.Card{ID: l.ID, Open: l.ID != ""}})
		case agent.Final, agent.Notice, agent.Fault:
			lines = append(lines, bottest.Line{Text: l.Text})
		case agent.Approval, agent.Ask:
			text := strings.Join(slices.Concat([]string{l.Tool, l.Why, l.Shown, l.Text, l.Together}, l.Labels, l.TogetherLabels), "\n")
			lines = append(lines, bottest.Line{Text: text, Card: &bottest.Card{ID: l.ID, Open: true}})
		case agent.DecidedMark:
			for _, line := range lines {
				if line.Card != nil && line.Card.ID == l.ID {
					line.Card.Open, line.Card.Outcome = false, string(l.Decision)+" by "+l.By+"\n"+l.Told
					if len(l.Open) > 0 {
						line.Card.Outcome += "\nwith " + agent.OpenText(l.Open)
					}
					if l.IsFeedback() {
						line.Card.Outcome = l.Text
					}
				}
			}
		}
	}
	return lines
}
