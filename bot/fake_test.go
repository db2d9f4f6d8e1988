package bot_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/bot"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/diary"
	"nudge/memory/memorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an adapter that keeps what it is to say.
type fake struct {
	platform string
	slash    string
	edits    bool
	doubt    bot.Doubt
	reacts   bool
	home     string                                           // if set, the only conversation that it serves
	fail     func(d bot.Delivery, try int) error              // if set, may refuse the nth try of a delivery
	hold     func(d bot.Delivery)                             // if set, may let a delivery take its time
	hear     func(ctx context.Context, in bot.Receiver) error // if set, listens
	listens  chan struct{}                                    // closed when it listens
	once     sync.Once

	mu    sync.Mutex
	said  []bot.Delivery
	tries map[string]int
}

func newFake() *fake {
	return &fake{platform: "chat", slash: "/", listens: make(chan struct{}), tries: map[string]int{}}
}

func (f *fake) Platform() string { return f.platform }

func (f *fake) Serves(address string) bool { return f.home == "" || address == f.home }

func (f *fake) Abilities() bot.Abilities {
	return bot.Abilities{Slash: f.slash, Edits: f.edits, Doubt: f.doubt, Reactions: f.reacts}
}

func (f *fake) Listen(ctx context.Context, in bot.Receiver) error {
	f.once.Do(func() { close(f.listens) })
	if f.hear != nil {
		return f.hear(ctx, in)
	}
	<-ctx.Done()
	return nil
}

func (f *fake) Say(_ context.Context, d bot.Delivery) (string, error) {
	if f.hold != nil {
		f.hold(d)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries[d.Text]++
	if f.fail != nil {
		if err := f.fail(d, f.tries[d.Text]); err != nil {
			return "", err
		}
	}
	f.said = append(f.said, d)
	return "receipt-" + strconv.Itoa(len(f.said)), nil
}

func (f *fake) all() []bot.Delivery {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]bot.Delivery(nil), f.said...)
}

// texts are the words said in a conversation, in order.
func (f *fake) texts(address string) string {
	var texts []string
	for _, d := range f.all() {
		if d.Address == address && d.Text != "" && d.Kind != agent.SteerMark {
			texts = append(texts, d.Text)
		}
	}
	return strings.Join(texts, "|")
}

// stage is a hub and an agent with fake adapters.
type stage struct {
	*testing.T
	store  memory.Store
	hub    *bot.Hub
	agent  *agent.Agent
	model  *agenttest.Model
	diary  *diary.Diary
	stop   context.CancelFunc
	served chan error
	keys   int
}

// echo says again what was said, or does what its first word says.
func echo(req model.Request) model.Answer {
	said := agenttest.LastUser(req)
	if at := strings.LastIndexByte(said, '\n'); at >= 0 {
		said = said[at+1:]
	}
	if name, _, _ := strings.Cut(said, " "); name == "erase" || name == "ask_person" {
		if result, done := agenttest.Results(req)[name+"-1"]; done {
			return agenttest.Say("then: " + result)
		}
		arguments := `{"x":"notes"}`
		if name == "ask_person" {
			arguments = `{"question":"Which?"}`
		}
		return agenttest.Do(agenttest.Call(1, name, arguments))
	}
	return agenttest.Say("echo " + said)
}

func openStore(t *testing.T) memory.Store {
	store, err := bolt.Open(filepath.Join(memorytest.Dir(t), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// serve starts a hub over a store.
func serve(t *testing.T, store memory.Store, c bot.Config, adapters ...bot.Adapter) *stage {
	s := &stage{T: t, store: store, model: &agenttest.Model{T: t, Script: echo}}
	c.Store = store
	if c.Model == "" {
		c.Model = "scripted"
	}
	s.diary = c.Diary
	s.hub = bot.NewHub(c)
	erase := agenttest.Tool("erase", agent.Effectful, agent.PolicyAsk, func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: "erased"}, nil
	})
	erase.Open = func(agent.Invocation) ([]agent.Opening, string) {
		return []agent.Opening{{Name: "x", Within: "that is a word"}}, ""
	}
	ag, err := agent.New(agent.Config{
		Store: store, Model: s.model, Spec: agent.ModelSpec{MaxOutput: 1000}, Outgoing: s.hub.Outgoing, Live: s.hub.Live, Owners: c.Owners,
		Tools: []agent.Tool{erase},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.agent = ag
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.served = make(chan error, 1)
	go func() { s.served <- s.hub.Serve(ctx, ag, adapters...) }()
	for _, a := range adapters {
		if f, ok := a.(*fake); ok {
			<-f.listens
		}
	}
	t.Cleanup(s.end)
	return s
}

// end ends the hub and the agent.
func (s *stage) end() {
	if s.stop == nil {
		return
	}
	s.stop()
	s.stop = nil
	if err := <-s.served; err != nil {
		s.Errorf("serve: %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s.agent.Close(ended)
}

var (
	ann = agent.Person{ID: "chat:ann", Name: "ann", Zone: "Europe/Berlin"}
	bob = agent.Person{ID: "chat:bob", Name: "bob"}
)

const (
	annHome = "chat:local:dm:ann"
	bobHome = "chat:local:dm:bob"
)

// event is something that Ann says, with a key of its own.
func (s *stage) event(text string) bot.Event {
	s.keys++
	key := "key-" + strconv.Itoa(s.keys)
	return bot.Event{Keys: []string{key}, ID: key, From: ann, Address: annHome, Text: text}
}

// receive gives an event to the hub and waits until everything that comes of it was said.
func (s *stage) receive(e bot.Event) bot.Admission {
	s.Helper()
	admission, err := s.hub.Receive(context.Background(), e)
	if err != nil {
		s.Fatalf("receive %q: %v", e.Text, err)
	}
	s.rest()
	return admission
}

func (s *stage) rest() {
	s.Helper()
	if err := errors.Join(s.agent.WaitIdle(context.Background(), nil), s.hub.Drain(context.Background(), nil)); err != nil {
		s.Fatal(err)
	}
}

// put puts final replies into the outbox.
func (s *stage) put(address string, texts ...string) {
	s.Helper()
	replies := make([]agent.Reply, len(texts))
	for i, text := range texts {
		replies[i] = agent.Reply{Kind: agent.Final, Text: text, Address: address}
	}
	send(s.T, s.store, replies...)
	s.hub.Outgoing()
}

func send(t *testing.T, store memory.Store, replies ...agent.Reply) {
	t.Helper()
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		for _, r := range replies {
			if err := agent.Send(tx, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// deadLetters are those that are kept.
func deadLetters(t *testing.T, store memory.Store) (total int, letters []bot.DeadLetter) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) (err error) {
		total, letters, err = bot.DeadLetters(tx, 10_000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return total, letters
}

// outbox is what lies in the outbox, with its state.
func outbox(t *testing.T, store memory.Store) string {
	t.Helper()
	var lines []string
	err := store.View(context.Background(), func(tx memory.Tx) error {
		lines = nil
		return tx.Outbox().List(0, func(p memory.Parcel) error {
			r, err := agent.ReadReply(p)
			lines = append(lines, strings.TrimSpace(r.Text+" "+p.State))
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "|")
}
