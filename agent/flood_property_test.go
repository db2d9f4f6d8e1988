package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/memorytest"
)

// faults collects what is wrong, so that a property can fail after its bubble has ended.
type faults struct {
	testing.TB
	mu    sync.Mutex
	found []string
}

// fatal ends the play that met it.
type fatal struct{}

func (f *faults) Helper() {}

func (f *faults) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found = append(f.found, fmt.Sprintf(format, args...))
}

func (f *faults) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(fatal{})
}

func (f *faults) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

// inBubble plays in fake time and fails the property with what was found.
func inBubble(t *testing.T, rt *rapid.T, play func(f *faults)) {
	t.Helper()
	f := &faults{}
	synctest.Test(t, func(t *testing.T) {
		f.TB = t
		defer func() {
			if p := recover(); p != nil && p != (fatal{}) {
				f.Errorf("panic: %v", p)
			}
		}()
		play(f)
	})
	if len(f.found) > 0 {
		rt.Fatalf("%s", strings.Join(f.found, "\n"))
	}
}

// asking is one request as the model got it, with the step whose it is.
type asking struct {
	turn     string
	step     int
	req      model.Request
	usage    model.Usage
	answered bool
}

// has reports whether the request carries words verbatim: said by the person, or as the answer to a question.
func (a asking) has(text string) bool {
	for _, m := range a.req.Messages {
		if strings.Contains(m.Text, text) && (m.Role == model.User || m.Role == model.ToolRole && strings.Contains(m.Text, " answered: ")) {
			return true
		}
	}
	return false
}

// witness is a model that follows a script and notes which step each request belongs to.
type witness struct {
	f       *faults
	store   memory.Store // beneath whatever crashes
	session string
	script  agenttest.Script
	latency time.Duration

	mu   sync.Mutex
	seen []asking
	busy bool
}

// Answer follows the script.
func (w *witness) Answer(ctx context.Context, req model.Request, _ func(string)) (model.Answer, error) {
	// What a request without a price leaves in the journal is there a moment later.
	began, moment := time.Now(), 5*time.Millisecond
	time.Sleep(moment)
	a := asking{req: req}
	a.req.Messages = slices.Clone(req.Messages)
	for _, line := range journal(w.f, w.store, w.session) {
		if line.Kind == "model_asked" && line.at.Equal(began) { // or a crash has kept it out
			a.turn, a.step = line.Turn, line.Step
		}
	}
	if fault := agenttest.Pairs(req.Messages); fault != "" {
		w.f.Errorf("the request of step %d: %s", a.step, fault)
	}
	w.mu.Lock()
	if w.busy {
		w.f.Errorf("two runs of one session ask at once")
	}
	w.busy = true
	n := len(w.seen)
	w.seen = append(w.seen, a)
	w.mu.Unlock()
	timer := time.NewTimer(max(w.latency-moment, 0))
	defer timer.Stop()
	cut := false
	select {
	case <-timer.C:
	case <-ctx.Done():
		cut = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	if cut {
		return model.Answer{}, context.Cause(ctx)
	}
	answer := w.script(req)
	answer.Usage = model.Usage{In: 50 + 7*len(req.Messages), Out: 5 + len(answer.Text), Known: true}
	w.seen[n].usage, w.seen[n].answered = answer.Usage, true
	return answer, nil
}

func (w *witness) all() []asking {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// journalLine has the fields of entries that the properties look at.
type journalLine struct {
	at     time.Time
	Kind   string
	Turn   string           `json:"turn"`
	Step   int              `json:"step"`
	Call   string           `json:"call"`
	Text   string           `json:"text"`
	Why    string           `json:"why"`
	Unsent bool             `json:"unsent"`
	Reason agent.StopReason `json:"reason"`
	IDs    []string         `json:"ids"`
	Calls  []model.Call     `json:"calls"`
	Usage  model.Usage      `json:"usage"`
	Charge agent.Money      `json:"charge"`
}

// journal reads a session's journal.
func journal(t testing.TB, store memory.Store, session string) []journalLine {
	t.Helper()
	var lines []journalLine
	err := store.View(context.Background(), func(tx memory.Tx) error {
		lines = nil
		return tx.Journal().Read(session, 0, func(e memory.Entry) error {
			line := journalLine{}
			_ = json.Unmarshal(e.Data, &line) // some kinds use a name for something else
			line.Kind, line.at = e.Kind, e.At
			lines = append(lines, line)
			return nil
		})
	})
	if err != nil {
		t.Errorf("read the journal of %s: %v", session, err)
	}
	return lines
}

// ran is one beginning of a tool.
type ran struct {
	tool, key string
	in        agent.Invocation
}

// flood is a conversation disturbed at random.
type flood struct {
	f       *faults
	store   memory.Store
	faulty  *memorytest.Faulty
	world   *agenttest.World
	model   *witness
	address string
	people  []agent.Person

	said []string // the ids of what was accepted; text is id and a full stop

	mu  sync.Mutex
	ran []ran
}

// tool takes a while and notes that it began.
func (p *flood) tool(name string, effect agent.Effect, policy agent.Policy, takes time.Duration) agent.Tool {
	return agenttest.Tool(name, effect, policy, func(ctx context.Context, in agent.Invocation) (agent.Result, error) {
		p.mu.Lock()
		p.ran = append(p.ran, ran{name, in.Key, in})
		p.mu.Unlock()
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-timer.C:
			return agent.Result{Text: name + " done"}, nil
		case <-ctx.Done():
			return agent.Result{}, ctx.Err()
		}
	})
}

func hashOf(parts ...any) int {
	h := fnv.New32a()
	fmt.Fprint(h, parts...)
	return int(h.Sum32() >> 4)
}

// floodScript decides by what was said last how many steps it takes and what it calls in each.
func floodScript(req model.Request) model.Answer {
	last, depth := 0, 0
	for i, m := range req.Messages {
		switch m.Role {
		case model.User:
			last, depth = i, 0
		case model.Assistant:
			depth++
		}
	}
	said := req.Messages[last].Text
	if _, words, dated := strings.Cut(said, "]\n"); dated {
		said = words
	}
	if strings.Contains(said, "end.") || depth >= hashOf(said)%4 {
		return agenttest.Say(fmt.Sprintf("answer after %d steps", depth+1))
	}
	tools := []string{"read", "read", "write", "upsert", "del", "write", "ask_person"}
	var calls []model.Call
	for i := range 1 + hashOf(said, "n", depth)%4 {
		c := model.Call{ID: fmt.Sprintf("c%d-%d", len(req.Messages), i), Name: tools[hashOf(said, depth, i)%len(tools)]}
		c.Arguments = fmt.Sprintf(`{"x":%q}`, c.ID)
		if c.Name == "ask_person" {
			c.Arguments = `{"question":"which?"}`
		}
		calls = append(calls, c)
	}
	return agenttest.Do(calls...)
}

func newFlood(f *faults, shared bool) *flood {
	p := &flood{f: f, store: open(f), address: agenttest.Home, people: []agent.Person{agenttest.Ann}}
	if shared {
		p.address = "slack:T1:C1:1796032800.000100"
		p.people = []agent.Person{{ID: "slack:T1:U1", Name: "ann"}, {ID: "slack:T1:U2", Name: "bob"}}
	}
	p.faulty = memorytest.NewFaulty(p.store)
	p.model = &witness{f: f, store: p.store, session: p.address, script: floodScript, latency: time.Second}
	p.world = &agenttest.World{T: f, Outbox: p.store, Config: agent.Config{
		Store: p.faulty, Model: p.model, Spec: agent.ModelSpec{MaxOutput: 1000},
		Limits: agent.Limits{Steps: 5, ToolCalls: 9, Errors: 3},
		Tools: []agent.Tool{
			p.tool("read", agent.Read, "", 300*time.Millisecond), p.tool("write", agent.Effectful, "", 700*time.Millisecond),
			p.tool("upsert", agent.Idempotent, "", 200*time.Millisecond), p.tool("del", agent.Effectful, agent.PolicyAsk, 100*time.Millisecond),
		},
	}}
	p.world.Restart()
	return p
}

// move is one disturbance, and how long nothing else comes after it.
type move struct {
	Kind  string
	Who   int
	Wait  time.Duration
	At    int  // of a crash: which commit from now on
	After bool // of a crash: after that commit, not before
}

func drawMoves(rt *rapid.T) []move {
	one := rapid.Custom(func(rt *rapid.T) move {
		return move{
			Kind:  rapid.SampledFrom([]string{"say", "say", "say", "say", "stop", "approve", "approve", "deny", "restart", "crash", "crash"}).Draw(rt, "kind"),
			Who:   rapid.IntRange(0, 1).Draw(rt, "who"),
			Wait:  time.Duration(rapid.SampledFrom([]int{0, 0, 0, 50, 150, 400, 999, 1000, 1001, 1300, 1700, 5000}).Draw(rt, "ms")) * time.Millisecond,
			At:    rapid.IntRange(1, 5).Draw(rt, "at"),
			After: rapid.Bool().Draw(rt, "after"),
		}
	})
	return rapid.SliceOfN(one, 1, 14).Draw(rt, "moves")
}

// pass gives a message to the agent as a platform does: again and again until it is acknowledged.
func (p *flood) pass(m agent.Message, key string) {
	m.Keys, m.Address, m.At = []string{key}, p.address, time.Now()
	for try := 0; try < 4; try++ {
		_, err := p.world.Pass(m)
		p.revive()
		if err == nil {
			return
		}
	}
	p.f.Fatalf("%s was never acknowledged", key)
}

// revive starts the agent again if it crashed.
func (p *flood) revive() {
	select {
	case <-p.faulty.Crashed():
		p.world.Kill()
		p.faulty.Revive()
		p.world.Restart()
	default:
	}
}

func (p *flood) say(who int, id string) {
	p.said = append(p.said, id)
	p.pass(agent.Message{Provenance: agent.Human, From: p.people[who%len(p.people)], ID: id, Text: id + "."}, id)
}

// waiting are the cards that await a decision, oldest first.
func (p *flood) waiting() []agent.WaitingCard {
	var cards []agent.WaitingCard
	err := p.store.View(context.Background(), func(tx memory.Tx) error {
		cards = nil
		return agent.WaitingCards(tx, func(w agent.WaitingCard) error { cards = append(cards, w); return nil })
	})
	if err != nil {
		p.f.Fatalf("list the cards: %v", err)
	}
	return cards
}

func (p *flood) decide(n int, verdict agent.Verdict) {
	cards := p.waiting()
	if len(cards) == 0 {
		return
	}
	card := cards[0]
	switch {
	case card.Reply.Kind == agent.Ask && verdict == agent.Approve:
		verdict = agent.AnswerIt
	case len(card.Reply.Choices) > 1 && card.Reply.Kind == agent.Notice:
		verdict = agent.Deny // whether to run again what may have run
	}
	p.pass(agent.Message{
		Provenance: agent.Decided, From: agent.Person{ID: card.Person, Name: "ann"},
		Decision: &agent.Decision{Card: card.Reply.ID, Verdict: verdict, Text: "because"},
	}, fmt.Sprint("decision-", n))
}

func (p *flood) play(moves []move) {
	defer func() { p.world.Kill() }()
	for n, m := range moves {
		switch m.Kind {
		case "say":
			p.say(m.Who, fmt.Sprintf("w%03d", n))
		case "stop":
			p.pass(agent.Message{Provenance: agent.Human, From: p.people[m.Who%len(p.people)], Stop: true}, fmt.Sprint("stop-", n))
		case "approve", "deny":
			p.decide(n, agent.Verdict(m.Kind))
		case "restart":
			p.world.Restart()
		case "crash":
			p.faulty.FailAt(p.faulty.Count()+m.At, m.After)
		}
		time.Sleep(m.Wait)
		p.revive()
	}
	p.calm(len(moves))
	p.check()
}

// calm lets everything come to its end, and says one more thing, whose request must carry all that was said.
func (p *flood) calm(n int) {
	p.faulty.FailAt(0, false)
	p.world.Rest()
	p.revive()
	p.world.Rest()
	for range 20 {
		if len(p.waiting()) == 0 {
			break
		}
		p.decide(n, agent.Deny)
		p.world.Rest()
		n++
	}
	p.say(0, "end")
	p.world.Rest()
	p.world.Rest()
}

func (p *flood) check() {
	lines := journal(p.f, p.store, p.address)
	p.checkNothingOpen(lines)
	p.checkWords(lines)
	p.checkReceipts(lines)
	p.checkTurns(lines)
	p.checkTools()
	if len(p.f.found) > 0 {
		var b strings.Builder
		for _, l := range lines {
			fmt.Fprintf(&b, "%s %s step %d call %s ids %v %s %q\n", l.Kind, l.Turn, l.Step, l.Call, l.IDs, l.Reason, l.Text)
		}
		p.f.Errorf("said:\n%sjournal:\n%s", agenttest.Lines(p.world.Said()), b.String())
	}
}

func (p *flood) checkNothingOpen(lines []journalLine) {
	err := p.store.View(context.Background(), func(tx memory.Tx) error {
		turn, err := agent.OpenTurn(tx, p.address)
		if err != nil {
			return err
		}
		mail, err := tx.Inbox().List(p.address)
		if turn != "" || len(mail) > 0 {
			p.f.Errorf("at the end turn %q is open and %d messages lie in the inbox", turn, len(mail))
		}
		return err
	})
	if err != nil {
		p.f.Errorf("look at what is open: %v", err)
	}
	if len(lines) == 0 {
		p.f.Errorf("the journal is empty")
	}
}

// checkWords holds that every text is in the last request verbatim, and was taken up exactly once.
func (p *flood) checkWords(lines []journalLine) {
	asked := p.model.all()
	if len(asked) == 0 {
		p.f.Errorf("the model was never asked")
		return
	}
	last := asked[len(asked)-1]
	for _, id := range p.said {
		taken := 0
		for _, l := range lines {
			if l.Kind == "message" && slices.Contains(l.IDs, id) || l.Kind == "question_answered" && l.Text == id+"." {
				taken++
			}
		}
		if taken != 1 || !last.has(id+".") {
			p.f.Errorf("%s was taken up %d times; it is in the last request: %v", id, taken, last.has(id+"."))
		}
	}
}

// checkReceipts is rule 5: what was stored is either seen, at the step whose request carries it, or begins a turn.
func (p *flood) checkReceipts(lines []journalLine) {
	type receipt struct {
		stored, taken []agent.Reply
	}
	receipts := map[string]*receipt{}
	for _, r := range p.world.Said(agent.SteerMark) {
		of := receipts[r.ID]
		if of == nil {
			of = &receipt{}
			receipts[r.ID] = of
		}
		switch {
		case r.State == agent.Stored:
			of.stored = append(of.stored, r)
		case len(of.stored) == 0:
			p.f.Errorf("%s is %s before it was stored", r.ID, r.State)
		default:
			of.taken = append(of.taken, r)
		}
	}
	for id, of := range receipts {
		if len(of.stored) != 1 || len(of.taken) != 1 {
			p.f.Errorf("%s was stored %d times and taken %d times", id, len(of.stored), len(of.taken))
			continue
		}
		if taken := of.taken[0]; taken.State == agent.SeenAt {
			p.checkSeen(lines, taken)
		} else {
			p.checkNext(of.stored[0])
		}
	}
}

func (p *flood) checkSeen(lines []journalLine, r agent.Reply) {
	if !slices.ContainsFunc(lines, func(l journalLine) bool { return l.Kind == "model_asked" && l.Turn == r.Turn && l.Step == r.Step }) {
		p.f.Errorf("%s was seen at step %d of %s, which never was", r.ID, r.Step, r.Turn)
	}
	for _, a := range p.model.all() {
		switch carries := a.has(r.ID + "."); {
		case a.turn == r.Turn && a.step == r.Step && !carries:
			p.f.Errorf("%s was seen at step %d of %s, whose request does not carry it", r.ID, r.Step, r.Turn)
		case a.turn == r.Turn && a.step < r.Step && carries:
			p.f.Errorf("%s was seen at step %d of %s, but step %d carried it", r.ID, r.Step, r.Turn, a.step)
		}
	}
}

func (p *flood) checkNext(stored agent.Reply) {
	for _, a := range p.model.all() {
		if stored.Turn != "" && a.turn == stored.Turn && a.has(stored.ID+".") {
			p.f.Errorf("%s became the next turn, but step %d of the one before carried it", stored.ID, a.step)
		}
	}
}

// checkTurns holds that every turn is answered and settled once, and again when it was let go on, and that its totals
// are what was reported.
func (p *flood) checkTurns(lines []journalLine) {
	answered, settled := map[string]int{}, map[string][]agent.Reply{}
	for _, r := range p.world.Said() {
		switch r.Kind {
		case agent.Final:
			answered[r.Turn]++
		case agent.Notice:
			if r.Turn != "" && !strings.HasPrefix(r.Text, "I was interrupted") && (r.ID == "" || r.Choices != nil) {
				answered[r.Turn]++
			}
		case agent.SettledMark:
			settled[r.Turn] = append(settled[r.Turn], r)
		}
	}
	ends := map[string]int{} // once, and once more for each time that it was let go on
	for _, l := range lines {
		if l.Kind == "turn_started" || l.Kind == "run_started" && l.Why == "continue" {
			ends[l.Turn]++
		}
	}
	for turn, n := range ends {
		if answered[turn] != n || len(settled[turn]) != n {
			p.f.Errorf("turn %s was answered %d times and settled %d times, want %d", turn, answered[turn], len(settled[turn]), n)
			continue
		}
		p.checkTotals(lines, settled[turn][n-1])
	}
}

func (p *flood) checkTotals(lines []journalLine, settled agent.Reply) {
	want := agent.Totals{Reason: settled.Reason, Unknown: settled.Unknown}
	for _, l := range lines {
		if l.Turn != settled.Turn {
			continue
		}
		switch l.Kind {
		case "model_asked":
			want.Steps++
		case "model_lost":
			if l.Unsent {
				want.Steps-- // a Stop came before the request went out
			} else if !settled.Unknown {
				p.f.Errorf("a model call of %s was lost, and the totals do not say so", l.Turn)
			}
		case "model_call":
			want.ToolCalls += len(l.Calls)
			want.TokensIn += l.Usage.In
			want.TokensOut += l.Usage.Out
			reported := slices.ContainsFunc(p.model.all(), func(a asking) bool {
				return a.turn == l.Turn && a.step == l.Step && a.answered && a.usage == l.Usage
			})
			if !reported {
				p.f.Errorf("step %d of %s has the usage %+v, which the model never reported", l.Step, l.Turn, l.Usage)
			}
		}
	}
	if *settled.Totals != want {
		p.f.Errorf("the totals of %s are %+v, want %+v", settled.Turn, *settled.Totals, want)
	}
}

// checkTools is rule 2, and the order of a batch.
func (p *flood) checkTools() {
	approved := map[string]bool{} // by turn and argument
	cards := map[string]agent.Reply{}
	for _, r := range p.world.Said(agent.Approval, agent.DecidedMark) {
		if r.Kind == agent.Approval {
			cards[r.ID] = r
		} else if card := cards[r.ID]; r.Decision == agent.Approve {
			approved[card.Turn+string(card.Arguments)] = true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	times, reached := map[string]int{}, map[string]string{}
	for _, r := range p.ran {
		step, call, _ := strings.Cut(strings.TrimPrefix(r.key, r.in.Turn+"/"), "/")
		step = r.in.Turn + "/" + step
		times[r.key]++
		switch r.tool {
		case "read":
			continue
		case "del":
			if !approved[r.in.Turn+string(r.in.Arguments)] {
				p.f.Errorf("%s %s ran without an approval", r.tool, r.key)
			}
		}
		if r.tool != "upsert" && times[r.key] > 1 {
			p.f.Errorf("%s %s ran %d times", r.tool, r.key, times[r.key])
		}
		if reached[step] > call {
			p.f.Errorf("%s began after %s of the same batch", call, reached[step])
		}
		reached[step] = call
	}
}

// Rules 1, 2, 3 and 5 through floods of messages, stops, decisions, restarts and crashes at any instant.
func TestFloodsLoseNothingAndRepeatNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shared, moves := rapid.Bool().Draw(rt, "shared"), drawMoves(rt)
		inBubble(t, rt, func(f *faults) { newFlood(f, shared).play(moves) })
	})
}
