package bottest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/bot"
	"nudge/memory/bolt"
)

// patience is how long something may take that takes milliseconds on an idle machine.
const patience = 30 * time.Second

// world is a program around one adapter, and its platform.
type world struct {
	*testing.T
	rig   Rig
	who   People
	store *gate
	model *agenttest.Model
	tools *tools
	asked int    // times that Ann asked whether that is all
	slash string // what stands before a command in a direct conversation
	doubt bot.Doubt
	edits bool // what was said can be changed

	grace  time.Duration // of the hub's end; 0 for the usual
	hub    *bot.Hub
	agent  *agent.Agent
	stop   context.CancelFunc
	served chan error
}

// begin opens a platform and starts the program.
func begin(t *testing.T, open func(t *testing.T) Rig) *world {
	store, err := bolt.Open(filepath.Join(t.TempDir(), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	w := &world{T: t, store: &gate{Store: store}, tools: newTools()}
	w.rig = open(t)
	w.who = w.rig.People()
	w.model = &agenttest.Model{T: t, Script: script}
	w.start()
	t.Cleanup(w.end)
	return w
}

// start wires the program anew over the same store and platform.
func (w *world) start() {
	w.Helper()
	allow := []string{string(w.who.Ann.ID)}
	if w.who.Bob.ID != "" {
		allow = append(allow, string(w.who.Bob.ID))
	}
	w.hub = bot.NewHub(bot.Config{Store: w.store, Allow: allow, Model: "scripted", FirstWait: time.Millisecond, Grace: w.grace})
	ag, err := agent.New(agent.Config{
		Store: w.store, Model: w.model, Spec: agent.ModelSpec{Name: "scripted", Window: 100_000, MaxOutput: 1000},
		Tools: append(w.tools.all(), w.readFile()), Fetch: w.hub.Fetch, Limits: agent.Limits{Steps: 20, ToolCalls: 50, Errors: 3},
		Outgoing: w.hub.Outgoing, Live: w.hub.Live,
	})
	if err != nil {
		w.Fatal(err)
	}
	w.agent = ag
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	adapter := w.rig.Adapter(Program{Store: w.store, Rest: w.rest})
	w.doubt, w.edits = adapter.Abilities().Doubt, adapter.Abilities().Edits
	if w.slash = adapter.Abilities().Slash; w.slash == "" {
		w.slash = "nudge "
	}
	if err := ag.Resume(ctx, func(string) bool { return true }); err != nil {
		w.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.hub.Serve(ctx, ag, adapter) }()
	w.served = served
}

func (w *world) rest(ctx context.Context) error {
	return errors.Join(w.agent.WaitIdle(ctx, nil), w.hub.Drain(ctx, nil))
}

// silence ends the adapter, while the agent goes on.
func (w *world) silence() {
	w.Helper()
	if w.stop == nil {
		return
	}
	w.stop()
	w.stop = nil
	select {
	case err := <-w.served:
		if err != nil {
			w.Errorf("the adapter ended with: %v", err)
		}
	case <-time.After(patience):
		w.Fatal("the adapter still listens long after it was told to end")
	}
}

// end ends everything, cutting off what runs.
func (w *world) end() {
	w.silence()
	if w.agent != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		w.agent.Close(ended)
		w.agent = nil
	}
}

// restart ends the program and starts it again.
func (w *world) restart() {
	w.Helper()
	w.end()
	w.start()
}

// await waits until something is so. It looks again and again, because a platform's people are not told either.
func (w *world) await(what string, so func() bool) {
	w.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for !so() {
		select {
		case <-look.C:
		case <-deadline.C:
			w.Fatalf("waited in vain until %s; Ann sees\n%s", what, w.view())
		}
	}
}

// signalled waits for a signal.
func (w *world) signalled(what string, signal <-chan struct{}) {
	w.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		w.Fatalf("waited in vain until %s; Ann sees\n%s", what, w.view())
	}
}

// settle waits until nothing runs and everything was said.
func (w *world) settle() {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.rest(ctx); err != nil {
		w.Fatalf("waited in vain for rest: %v; Ann sees\n%s", err, w.view())
	}
}

// view is what Ann sees, for messages.
func (w *world) view() string {
	var b strings.Builder
	for _, at := range w.places() {
		for _, line := range w.rig.Shown(w.who.Ann, at) {
			fmt.Fprintf(&b, "  %s: %.300q", at, line.Text)
			if line.Card != nil {
				fmt.Fprintf(&b, " %+v", *line.Card)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (w *world) places() []Place {
	if w.who.Bob.ID == "" {
		return []Place{Direct}
	}
	return []Place{Direct, Shared}
}

// greet is a first exchange, after which nothing is under way.
func (w *world) greet() {
	w.Helper()
	w.say("hello")
	w.seen("you said so: hello")
	w.settle()
}

// able greets, and gives the platform as one that can do something besides. Where it cannot, that is logged.
func able[P any](w *world, cannot string) (platform P, may bool) {
	w.Helper()
	w.greet()
	if platform, may = w.rig.(P); !may {
		w.Log(cannot)
	}
	return platform, may
}

// say lets Ann say something in her direct conversation.
func (w *world) say(text string) (message string) { return w.rig.Say(w.who.Ann, Direct, text) }

// count is how many lines that a person sees hold a text.
func (w *world) count(to agent.Person, at Place, text string) int {
	n := 0
	for _, line := range w.rig.Shown(to, at) {
		if strings.Contains(line.Text, text) {
			n++
		}
	}
	return n
}

// seen waits until Ann sees a text in her direct conversation.
func (w *world) seen(text string) {
	w.Helper()
	w.await(fmt.Sprintf("Ann sees %q", text), func() bool { return w.count(w.who.Ann, Direct, text) > 0 })
}

// once checks that Ann sees a text just once, after another message was answered too, so that nothing is under way.
func (w *world) once(text string) {
	w.Helper()
	w.seen(text)
	w.asked++
	w.say(fmt.Sprintf("is that all, %d?", w.asked))
	w.seen(fmt.Sprintf("that is all, %d.", w.asked))
	w.settle()
	if n := w.count(w.who.Ann, Direct, text); n != 1 {
		w.Errorf("Ann sees %q %d times:\n%s", text, n, w.view())
	}
}

// card waits for an open card of Ann's that holds a text.
func (w *world) card(at Place, text string) (line Line) {
	w.Helper()
	w.await(fmt.Sprintf("Ann sees an open card with %q", text), func() bool {
		for _, l := range w.rig.Shown(w.who.Ann, at) {
			if l.Card != nil && l.Card.Open && strings.Contains(l.Text, text) {
				line = l
				return true
			}
		}
		return false
	})
	return line
}

// find is a card as it stands now.
func (w *world) find(at Place, id string) Card {
	for _, l := range w.rig.Shown(w.who.Ann, at) {
		if l.Card != nil && l.Card.ID == id {
			return *l.Card
		}
	}
	return Card{}
}

// settled waits until a card is settled by a person.
func (w *world) settled(at Place, id string, by agent.Person) {
	w.Helper()
	w.await("the card is settled and names "+string(by.ID), func() bool {
		card := w.find(at, id)
		return card.ID == id && !card.Open && names(card.Outcome, by)
	})
}

// names reports whether a text names a person, in the way of some platform.
func names(text string, p agent.Person) bool {
	id := string(p.ID)
	return strings.Contains(text, id) || p.Name != "" && strings.Contains(text, p.Name) ||
		strings.Contains(text, id[strings.LastIndexByte(id, ':')+1:])
}

// heard is how many requests have a text as what was said last.
func (w *world) heard(text string) int {
	n := 0
	for _, req := range w.model.Requests() {
		if strings.HasSuffix(agenttest.LastUser(req), text) && len(agenttest.Results(req)) == 0 {
			n++
		}
	}
	return n
}

// result is the newest result of a call that the model was sent; "" if there is none.
func (w *world) result(call string) string {
	requests := w.model.Requests()
	text := ""
	for _, req := range requests {
		for _, msg := range req.Messages {
			if msg.Role == model.ToolRole && msg.CallID == call {
				text = msg.Text
			}
		}
	}
	return text
}

// bare is a text without its blanks, which platforms may move when they split it.
func bare(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}
