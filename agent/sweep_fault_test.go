package agent_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/compact"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/memorytest"
)

// happening is one thing that happened outside the program, which no death of it undoes.
type happening struct {
	What    string       `json:"what"`
	Tool    string       `json:"tool,omitempty"`
	X       string       `json:"x,omitempty"`
	Key     string       `json:"key,omitempty"` // of a call, or of a cue
	Parcel  uint64       `json:"parcel,omitempty"`
	Reply   *agent.Reply `json:"reply,omitempty"`
	Address string       `json:"address,omitempty"`
	Text    string       `json:"text,omitempty"`
	Count   int          `json:"count,omitempty"` // of points
}

// What happens outside.
const (
	wasAsked  = "asked"  // the provider got a request
	wasWarned = "warned" // a request told of a parked call whose outcome is unknown
	wasRun    = "ran"    // a tool was run
	wasRuled  = "ruled"  // a hook was asked
	wasHeard  = "heard"  // a reply was delivered
	wasPassed = "passed" // a cue was acknowledged
	wasWrong  = "wrong"  // something that must never be
	wasOver   = "ended"  // the conversation is over
)

// outside keeps what happened outside the program. With a file it outlives the process.
type outside struct {
	mu   sync.Mutex
	all  []happening
	file *os.File
}

// openOutside goes on with what a file has.
func openOutside(path string) (*outside, error) {
	o := &outside{}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var h happening
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		o.all = append(o.all, h)
	}
	o.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return o, errors.Join(err, lines.Err())
}

func (o *outside) note(h happening) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, h)
	if o.file == nil {
		return
	}
	line, err := json.Marshal(h)
	if err == nil {
		_, err = o.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("note what happened: %v", err))
	}
}

// of are the happenings of a kind.
func (o *outside) of(what string) []happening {
	o.mu.Lock()
	defer o.mu.Unlock()
	var of []happening
	for _, h := range o.all {
		if h.What == what {
			of = append(of, h)
		}
	}
	return of
}

// has reports whether a cue was acknowledged.
func (o *outside) has(cue string) bool {
	return slices.ContainsFunc(o.of(wasPassed), func(h happening) bool { return h.Key == cue })
}

// replies are those that were delivered, each once, in the order in which they were said.
func (o *outside) replies() []agent.Reply {
	byParcel := map[uint64]agent.Reply{}
	for _, h := range o.of(wasHeard) {
		byParcel[h.Parcel] = *h.Reply
	}
	var replies []agent.Reply
	for _, id := range slices.Sorted(maps.Keys(byParcel)) {
		replies = append(replies, byParcel[id])
	}
	return replies
}

// mishap is where one life of the program ends: before or after its at-th point. 0 means nowhere.
type mishap struct {
	at    int
	after bool
}

func (m mishap) String() string {
	if m.after {
		return fmt.Sprintf("death after point %d", m.at)
	}
	return fmt.Sprintf("death before point %d", m.at)
}

// point is one commit of the program or one thing that it does outside itself, as it begins or ends.
type point struct {
	n       int // counted from 1 in a life
	ends    bool
	what    string
	entries []noted // of a commit that ends, what it put into journals
}

// noted is a journal entry that was committed.
type noted struct {
	session string
	seq     uint64 // once it was read back
	kind    string
	entryLine
}

// entryLine has the fields of entries that the sweep looks at.
type entryLine struct {
	Turn    string       `json:"turn"`
	Call    string       `json:"call"`
	Tool    string       `json:"tool"`
	Card    string       `json:"card"`
	Effect  agent.Effect `json:"effect"`
	IDs     []string     `json:"ids"`
	Text    string       `json:"text"`
	Step    int          `json:"step"`
	Summary bool         `json:"summary"`
	Unsent  bool         `json:"unsent"`
	Unknown bool         `json:"unknown"`
	Reserve agent.Money  `json:"reserve"`
	Cost    agent.Money  `json:"cost"`
	Charge  agent.Money  `json:"charge"`
	Calls   []model.Call `json:"calls"`

	Reason agent.StopReason `json:"reason"` // of a run that ended
}

func noteEntry(session string, e memory.Entry) noted {
	n := noted{session: session, seq: e.Seq, kind: e.Kind}
	_ = json.Unmarshal(e.Data, &n.entryLine) // some kinds use a name for something else
	return n
}

// stage is the program on a store, with everybody around it: provider, tools, hooks, the people and the platform that
// carries their words. It plays a life of the program, from its start to its death or the end of the conversation.
type stage struct {
	program
	out   *outside
	dir   string
	disk  memory.Store // what outlives the program
	store memory.Store // the program's own way to it
	die   func()
	dead  func() <-chan struct{}

	agent *agent.Agent

	mu     sync.Mutex
	mishap mishap // of this life
	count  int    // of points begun in it
	points []point
}

// newStage sets a stage over a store that crashes at the mishap of a life. spoil, if not nil, plants a fault.
func newStage(p program, out *outside, dir string, disk memory.Store, spoil func(memory.Store) memory.Store) (*stage, *memorytest.Faulty) {
	faulty := memorytest.NewFaulty(disk)
	s := &stage{program: p, out: out, dir: dir, disk: disk, die: faulty.Crash, dead: faulty.Crashed}
	s.store = pointed{faulty, s}
	if spoil != nil {
		s.store = spoil(s.store)
	}
	return s, faulty
}

func (s *stage) isDead() bool {
	select {
	case <-s.dead():
		return true
	default:
		return false
	}
}

// point is gone through wherever the program commits or acts outside itself; do is what it does there. It reports
// false when the program has died: nothing that comes after may be done by it.
func (s *stage) point(what string, do func() []noted) (alive bool) {
	if s.isDead() {
		return false
	}
	s.mu.Lock()
	s.count++
	n, m := s.count, s.mishap
	s.points = append(s.points, point{n: n, what: what})
	s.mu.Unlock()
	if n == m.at && !m.after {
		s.die()
		return false
	}
	entries := do()
	s.mu.Lock()
	s.points = append(s.points, point{n: n, ends: true, what: what, entries: entries})
	s.mu.Unlock()
	if n == m.at && m.after {
		s.die()
	}
	return !s.isDead()
}

// at tells what happens at a point of this life.
func (s *stage) at(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := "nothing"
	for _, p := range s.points {
		if p.n != n {
			continue
		}
		what = p.what
		for _, e := range p.entries {
			what += " " + e.kind
		}
	}
	return what
}

// pointed is a store each commit of which is a point.
type pointed struct {
	memory.Store
	stage *stage
}

// Update is a point.
func (p pointed) Update(ctx context.Context, fn func(memory.Tx) error) error {
	err := memorytest.ErrCrash
	alive := p.stage.point("commit", func() (entries []noted) {
		err = p.Store.Update(ctx, func(tx memory.Tx) error {
			entries = nil
			return fn(tapped{Tx: tx, journal: appends{tx.Journal(), func(session string, lines []memory.Entry) []memory.Entry {
				for _, line := range lines {
					entries = append(entries, noteEntry(session, line))
				}
				return lines
			}}, outbox: tx.Outbox()})
		})
		return entries
	})
	if !alive {
		return memorytest.ErrCrash
	}
	return err
}

// tapped is a transaction with another journal and outbox.
type tapped struct {
	memory.Tx
	journal memory.Journal
	outbox  memory.Outbox
}

// Journal is the other journal.
func (t tapped) Journal() memory.Journal { return t.journal }

// Outbox is the other outbox.
func (t tapped) Outbox() memory.Outbox { return t.outbox }

// appends is a journal that appends what instead makes of the entries.
type appends struct {
	memory.Journal
	instead func(session string, entries []memory.Entry) []memory.Entry
}

// Append appends what instead says.
func (a appends) Append(session string, entries ...memory.Entry) (uint64, error) {
	if entries = a.instead(session, entries); len(entries) == 0 {
		return a.Last(session)
	}
	return a.Journal.Append(session, entries...)
}

// tokens counts as the agent does before it has learned something, so that a restart forgets nothing.
var tokens = compact.NewCounter(compact.Estimate)

// Answer is the provider's. A program that is dead hears no more of it.
func (s *stage) Answer(ctx context.Context, req model.Request, _ func(string)) (model.Answer, error) {
	var answer model.Answer
	alive := s.point("model", func() []noted {
		s.out.note(happening{What: wasAsked})
		if fault := agenttest.Pairs(req.Messages); fault != "" {
			s.out.note(happening{What: wasWrong, Text: "a request cannot be sent: " + fault})
		}
		for _, m := range req.Messages {
			if m.Role == model.User && strings.Contains(m.Text, "that waited (card") && strings.Contains(m.Text, "outcome unknown") {
				s.out.note(happening{What: wasWarned, Text: m.Text})
			}
		}
		timer := time.NewTimer(s.latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		answer = s.script(req)
		answer.Usage = model.Usage{In: compact.Tokens(tokens, req.System, req.Tools, req.Messages), Out: 10, Known: true}
		return nil
	})
	if !alive {
		<-ctx.Done()
	}
	return answer, context.Cause(ctx)
}

// tool is a tool whose runs are points, with what people do during them.
func (s *stage) tool(tool agent.Tool) agent.Tool {
	run := tool.Run
	tool.Run = func(ctx context.Context, in agent.Invocation) (result agent.Result, err error) {
		call := tool.Name + " " + xOf(in.Arguments)
		alive := s.point("tool "+call, func() []noted {
			s.out.note(happening{What: wasRun, Tool: tool.Name, X: xOf(in.Arguments), Key: in.Key})
			s.meanwhile(call)
			result, err = run(ctx, in)
			return nil
		})
		if !alive {
			<-ctx.Done()
			return agent.Result{}, ctx.Err()
		}
		return result, err
	}
	return tool
}

func (s *stage) hook(at agent.HookPoint) agent.Hook {
	return agent.Hook{Name: "hook " + string(at), At: at, Rule: func(ctx context.Context, q agent.HookQuestion) (r agent.Ruling, err error) {
		alive := s.point("hook "+string(at), func() []noted {
			s.out.note(happening{What: wasRuled, Tool: string(at)})
			r = ruled(q)
			return nil
		})
		if !alive {
			<-ctx.Done()
			return r, ctx.Err()
		}
		return r, nil
	}}
}

// log takes what the program has to complain about while it lives, which is nothing.
func (s *stage) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(complaints{s}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type complaints struct{ stage *stage }

// Write notes a complaint.
func (c complaints) Write(line []byte) (int, error) {
	if !c.stage.isDead() {
		c.stage.out.note(happening{What: wasWrong, Text: "logged: " + string(line)})
	}
	return len(line), nil
}

// live plays one life of the program and reports whether the conversation is over. Words that were not acknowledged are
// said again before the program takes up what lay there.
func (s *stage) live() (over bool) {
	s.mu.Lock()
	s.count, s.points = 0, nil
	s.mu.Unlock()
	ag, err := agent.New(s.config(s))
	if err != nil {
		s.out.note(happening{What: wasWrong, Text: err.Error()})
		return true
	}
	s.agent = ag
	defer func() {
		at, cancel := context.WithCancel(context.Background())
		cancel()
		ag.Close(at)
	}()
	for _, h := range s.out.of(wasRun) {
		s.meanwhile(h.Tool + " " + h.X)
	}
	if err := ag.Resume(context.Background(), func(string) bool { return true }); err != nil && !s.isDead() {
		s.out.note(happening{What: wasWrong, Text: err.Error()})
	}
	for s.rest() && s.deliver() {
		next, found := s.next()
		if !found {
			return true
		}
		if !s.pass(next) {
			break
		}
	}
	return false
}

// meanwhile does what is done while a call runs, once.
func (s *stage) meanwhile(call string) {
	for _, c := range s.cues() {
		if c.during == call && !s.out.has(c.key) {
			s.pass(c)
		}
	}
}

// rest waits until the program does nothing. It reports false when it has died.
func (s *stage) rest() (alive bool) {
	ctx, cancel := context.WithCancel(context.Background())
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-s.dead():
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = s.agent.WaitIdle(ctx, nil)
	cancel()
	<-watching
	return !s.isDead()
}

// deliver carries what was said to the people, each reply once at least, and takes it out of the outbox.
func (s *stage) deliver() (alive bool) {
	var parcels []memory.Parcel
	err := s.store.View(context.Background(), func(tx memory.Tx) error {
		parcels = nil
		return tx.Outbox().List(0, func(p memory.Parcel) error { parcels = append(parcels, p); return nil })
	})
	var ids []uint64
	for _, p := range parcels {
		r, err := agent.ReadReply(p)
		if err != nil {
			s.out.note(happening{What: wasWrong, Text: err.Error()})
		}
		if !s.point("delivery", func() []noted {
			s.out.note(happening{What: wasHeard, Parcel: p.ID, Reply: &r, Address: p.Conversation})
			return nil
		}) {
			return false
		}
		ids = append(ids, p.ID)
	}
	if len(ids) > 0 {
		err = s.store.Update(context.Background(), func(tx memory.Tx) error { return tx.Outbox().Remove(ids...) })
	}
	if err != nil && !s.isDead() {
		s.out.note(happening{What: wasWrong, Text: "deliver: " + err.Error()})
	}
	return !s.isDead()
}

// asksAgain reports whether a reply asks about a call whose outcome is unknown.
func asksAgain(r agent.Reply) bool {
	return r.Kind == agent.Notice && slices.Equal(r.Choices, []string{agent.ChoiceAgain, agent.ChoiceLeave})
}

// next is what is done now that all is at rest: a call whose outcome is unknown is decided about first.
func (s *stage) next() (next cue, found bool) {
	choice := agent.ChoiceLeave
	if s.again {
		choice = agent.ChoiceAgain
	}
	for _, r := range s.out.replies() {
		if asksAgain(r) && !s.out.has("unknown "+r.ID) {
			return cue{key: "unknown " + r.ID, message: agent.Message{
				Provenance: agent.Decided, From: agenttest.Ann, Decision: &agent.Decision{Card: r.ID, Verdict: agent.AnswerIt, Text: choice},
			}}, true
		}
	}
	for _, c := range s.cues() {
		if s.out.has(c.key) {
			continue
		}
		if c.during != "" {
			s.out.note(happening{What: wasWrong, Text: c.key + " was never due"})
		}
		return c, true
	}
	return cue{}, false
}

// pass gives a cue to the program. It reports false when that has died: then it is given again in the next life.
func (s *stage) pass(c cue) (alive bool) {
	var err error
	if c.wake != nil {
		err = s.wake(*c.wake)
	} else {
		m := c.message
		m.Keys, m.At = []string{c.key}, time.Now()
		if m.Address == "" {
			m.Address = agenttest.Home
		}
		m.Session = m.Address
		if c.decides != "" {
			m.Decision = &agent.Decision{Card: s.card(c.decides), Verdict: m.Decision.Verdict}
		}
		_, err = s.agent.Receive(context.Background(), m)
	}
	switch {
	case s.isDead():
		return false
	case err != nil:
		s.out.note(happening{What: wasWrong, Text: fmt.Sprintf("%s was not taken: %v", c.key, err)})
	}
	s.out.note(happening{What: wasPassed, Key: c.key})
	return true
}

// wake does what the clock does: it waits for the run to end, or goes down with the program.
func (s *stage) wake(w agent.Wake) error {
	ag, done := s.agent, make(chan error, 1)
	go func() {
		_, err := ag.Wake(context.Background(), agenttest.Ann.ID, w)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-s.dead():
		return memorytest.ErrCrash
	}
}

// card is the newest card that was shown for a call, given as "tool x".
func (s *stage) card(call string) string {
	for _, r := range slices.Backward(s.out.replies()) {
		if r.Kind == agent.Approval && r.Tool+" "+xOf(r.Arguments) == call {
			return r.ID
		}
	}
	return "none"
}

// The faults that are planted to see that the sweep finds them. They cannot be planted in the program itself without
// hooks there, so each is a store that makes of what is written what a program with the fault would have written.

// lateReplies is a store for which replies are put into the outbox in a commit of their own, after that of what they tell.
type lateReplies struct{ memory.Store }

// Update makes two commits where there are replies.
func (l lateReplies) Update(ctx context.Context, fn func(memory.Tx) error) error {
	var held []memory.Parcel
	err := l.Store.Update(ctx, func(tx memory.Tx) error {
		held = nil
		return fn(tapped{Tx: tx, journal: tx.Journal(), outbox: holding{tx.Outbox(), &held}})
	})
	if err != nil || len(held) == 0 {
		return err
	}
	return l.Store.Update(ctx, func(tx memory.Tx) error {
		for _, p := range held {
			if _, err := tx.Outbox().Put(p.Conversation, p.Data); err != nil {
				return err
			}
		}
		return nil
	})
}

// holding is an outbox that holds back what is put into it.
type holding struct {
	memory.Outbox
	held *[]memory.Parcel
}

// Put holds a parcel back.
func (h holding) Put(conversation string, data []byte) (uint64, error) {
	*h.held = append(*h.held, memory.Parcel{Conversation: conversation, Data: data})
	return 0, nil
}

// rewritten is a store whose journals get what instead makes of the entries.
type rewritten struct {
	memory.Store
	instead func(session string, entries []memory.Entry) []memory.Entry
}

// Update is the store's, with other entries.
func (r rewritten) Update(ctx context.Context, fn func(memory.Tx) error) error {
	return r.Store.Update(ctx, func(tx memory.Tx) error {
		return fn(tapped{Tx: tx, journal: appends{tx.Journal(), r.instead}, outbox: tx.Outbox()})
	})
}

// forgottenCalling leaves out that calls begin.
func forgottenCalling(store memory.Store) memory.Store {
	return rewritten{store, func(_ string, entries []memory.Entry) []memory.Entry {
		return slices.DeleteFunc(slices.Clone(entries), func(e memory.Entry) bool { return e.Kind == "tool_call" })
	}}
}

// earlyResults journals with the beginning of a call with effects that it is done.
func earlyResults(store memory.Store) memory.Store {
	var mu sync.Mutex
	arguments := map[string]string{} // of calls, by turn and id
	return rewritten{store, func(session string, entries []memory.Entry) []memory.Entry {
		mu.Lock()
		defer mu.Unlock()
		var all []memory.Entry
		for _, e := range entries {
			all = append(all, e)
			n := noteEntry(session, e)
			for _, c := range n.Calls {
				arguments[n.Turn+c.ID] = c.Arguments
			}
			if e.Kind != "tool_call" || n.Effect != agent.Effectful {
				continue
			}
			text := n.Tool + " done " + xOf([]byte(arguments[n.Turn+n.Call]))
			data, err := json.Marshal(map[string]any{"turn": n.Turn, "call": n.Call, "tool": n.Tool, "card": n.Card, "text": text, "ran": true})
			if err != nil {
				panic(err)
			}
			all = append(all, memory.Entry{Kind: "tool_result", At: e.At, Data: data})
		}
		return all
	}}
}
