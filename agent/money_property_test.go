package agent_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
	"nudge/memory/memorytest"
)

// ledger is a provider: it counts a token for every few bytes, keeps to the output limit, and charges for every
// answer that it began, whether it arrived or not.
type ledger struct {
	f       *faults
	store   memory.Store
	price   agent.ModelSpec
	bytes   int // of a token, 3 to 5
	latency time.Duration
	zone    *time.Location

	mu     sync.Mutex
	calls  int
	fails  map[int]bool // calls that break off after the answer began
	silent bool         // reports no usage
	steps  int          // with tools, of each turn
	size   int          // bytes of what the answers say
	turns  map[string]agent.Money
	days   map[string]agent.Money
}

// Answer charges for the request and asks for tools a few times, then says something.
func (l *ledger) Answer(ctx context.Context, req model.Request, _ func(string)) (model.Answer, error) {
	if req.MaxOutput < 64 {
		l.f.Errorf("an answer of %d tokens was asked for", req.MaxOutput)
	}
	answer := l.compose(req)
	usage := model.Usage{In: l.input(req), Out: min(outBytes(answer)/l.bytes+8, req.MaxOutput), Known: true}
	cost, turn := agent.Money(usage.In)*l.price.PriceIn+agent.Money(usage.Out)*l.price.PriceOut, l.turnOf(req)
	l.mu.Lock()
	l.calls++
	fails := l.fails[l.calls]
	l.turns[turn] += cost
	l.days[time.Now().In(l.zone).Format(time.DateOnly)] += cost
	if !l.silent {
		answer.Usage = usage
	}
	l.mu.Unlock()
	timer := time.NewTimer(l.latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return model.Answer{}, context.Cause(ctx)
	}
	if fails {
		return model.Answer{}, &model.Error{Fault: model.FaultPassing, Began: true, Say: "the line dropped"}
	}
	return answer, nil
}

// input is how many tokens a request has: its words, some for each message and call, and the tools.
func (l *ledger) input(req model.Request) int {
	bytes := len(req.System)
	for _, t := range req.Tools {
		bytes += len(t.Name) + len(t.Description) + len(t.Schema) + 30
	}
	for _, m := range req.Messages {
		bytes += len(m.Text) + len(m.Reasoning) + 12
		for _, c := range m.Calls {
			bytes += len(c.Name) + len(c.Arguments) + 40
		}
	}
	return bytes / l.bytes
}

func outBytes(a model.Answer) int {
	n := len(a.Text) + len(a.Reasoning)
	for _, c := range a.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}

var saidAt = regexp.MustCompile(`\bat (\S+)!`)

// turnOf is the turn that a request belongs to: the open one of the session that the last words of its person name, as in
// "at NAME!". A note of a compaction may follow them.
func (l *ledger) turnOf(req model.Request) (turn string) {
	session := ""
	for _, m := range req.Messages {
		if said := saidAt.FindStringSubmatch(m.Text); m.Role == model.User && said != nil {
			session = said[1]
		}
	}
	err := l.store.View(context.Background(), func(tx memory.Tx) (err error) {
		turn, err = agent.OpenTurn(tx, session)
		return err
	})
	if err != nil || turn == "" {
		l.f.Errorf("no turn is open in %q: %v", session, err)
	}
	return turn
}

func (l *ledger) compose(req model.Request) model.Answer {
	depth := 0
	for _, m := range req.Messages {
		switch m.Role {
		case model.User:
			depth = 0
		case model.Assistant:
			depth++
		}
	}
	text := strings.Repeat("word ", l.size/5)
	if limit := max(req.MaxOutput-8, 0) * l.bytes; len(text) > limit {
		text = text[:limit]
	}
	if depth >= l.steps {
		return agenttest.Say(text + "!")
	}
	id := fmt.Sprintf("c%d", len(req.Messages))
	switch depth % 3 {
	case 0:
		return agenttest.Do(model.Call{ID: id, Name: "plan", Arguments: fmt.Sprintf(`{"items":[{"text":%q,"done":false}]}`, text)})
	case 1:
		return agenttest.Do(model.Call{ID: id, Name: "write", Arguments: fmt.Sprintf(`{"x":%q}`, text)})
	}
	answer := agenttest.Do(model.Call{ID: id, Name: "read", Arguments: `{}`})
	answer.Reasoning = text
	return answer
}

// spending is what a person does with the limits set.
type spending struct {
	f        *faults
	store    memory.Store
	faulty   *memorytest.Faulty
	world    *agenttest.World
	provider *ledger
}

func (s *spending) start(limits agent.Limits, result int) {
	fill := func(name string, size int) agent.Tool {
		return agenttest.Tool(name, agent.Effectful, "", func(context.Context, agent.Invocation) (agent.Result, error) {
			return agent.Result{Text: strings.Repeat("seen ", size/5)}, nil
		})
	}
	s.world = &agenttest.World{T: s.f, Outbox: s.store, Config: agent.Config{
		Store: s.faulty, Model: s.provider, Spec: s.provider.price, Limits: limits,
		Tools: []agent.Tool{fill("read", result), fill("write", 40)},
	}}
	s.world.Restart()
}

func (s *spending) revive() {
	select {
	case <-s.faulty.Crashed():
		s.world.Kill()
		s.faulty.Revive()
		s.world.Restart()
	default:
	}
}

// say says something in one of the person's conversations.
func (s *spending) say(n, where, size int) {
	address := agenttest.Home
	if where > 0 {
		address += fmt.Sprint(":thread", where)
	}
	m := agent.Message{
		Keys: []string{fmt.Sprint("key", n)}, ID: fmt.Sprint(n), Provenance: agent.Human, Address: address,
		Text: fmt.Sprintf("at %s! %s", address, strings.Repeat("please ", size/7)),
	}
	for range 3 {
		_, err := s.world.Pass(m)
		s.revive()
		if err == nil {
			return
		}
	}
}

// check compares what the provider charged with the caps.
func (s *spending) check(limits agent.Limits) {
	s.provider.mu.Lock()
	turns, days := maps.Clone(s.provider.turns), maps.Clone(s.provider.days)
	s.provider.mu.Unlock()
	for turn, spent := range turns {
		if limits.Cost > 0 && spent > limits.Cost {
			s.f.Errorf("turn %s cost $%.6f of $%.6f", turn, spent.USD(), limits.Cost.USD())
		}
	}
	for day, spent := range days {
		if limits.DailyCost > 0 && spent > limits.DailyCost {
			s.f.Errorf("on %s $%.6f of $%.6f were spent", day, spent.USD(), limits.DailyCost.USD())
		}
	}
	for _, r := range s.world.Said(agent.SettledMark) {
		if limits.Cost > 0 && r.CostUSD > limits.Cost.USD() {
			s.f.Errorf("turn %s says that it cost $%.6f of $%.6f", r.Turn, r.CostUSD, limits.Cost.USD())
		}
	}
}

// Rule 9: a cap is never passed while the provider keeps to the output limit, over restarts, dropped lines, dates and
// conversations side by side.
func TestTheSpendNeverPassesACap(t *testing.T) {
	type act struct {
		kind              string
		where, size, wait int
	}
	rapid.Check(t, func(rt *rapid.T) {
		limits := agent.Limits{
			Cost:      agent.USD(float64(rapid.IntRange(0, 60).Draw(rt, "cents")) / 1000),
			DailyCost: agent.USD(float64(rapid.IntRange(0, 100).Draw(rt, "daily cents")) / 1000),
			Steps:     12, TurnTimeout: 24 * time.Hour,
		}
		spec := agent.ModelSpec{
			MaxOutput: rapid.SampledFrom([]int{64, 300, 2000}).Draw(rt, "max output"),
			PriceIn:   agent.PerMillion(float64(rapid.IntRange(0, 5).Draw(rt, "in"))), PriceOut: agent.PerMillion(float64(rapid.IntRange(1, 15).Draw(rt, "out"))),
		}
		bytes, steps := rapid.IntRange(3, 5).Draw(rt, "bytes a token"), rapid.IntRange(0, 8).Draw(rt, "steps")
		size, result := rapid.IntRange(0, 6000).Draw(rt, "answer"), rapid.IntRange(0, 8000).Draw(rt, "result")
		silent := rapid.Bool().Draw(rt, "no usage")
		latency := time.Duration(rapid.SampledFrom([]int{1, 3600}).Draw(rt, "latency")) * time.Second
		fails := map[int]bool{}
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 20), 0, 6).Draw(rt, "dropped") {
			fails[n] = true
		}
		acts := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) act {
			return act{
				rapid.SampledFrom([]string{"say", "say", "say", "kill", "crash"}).Draw(rt, "kind"), rapid.IntRange(0, 2).Draw(rt, "where"),
				rapid.IntRange(0, 4000).Draw(rt, "size"), rapid.SampledFrom([]int{0, 0, 1, 2, 5, 3600, 7 * 3600}).Draw(rt, "wait"),
			}
		}), 1, 10).Draw(rt, "acts")
		inBubble(t, rt, func(f *faults) {
			s := &spending{f: f, store: open(f)}
			s.faulty = memorytest.NewFaulty(s.store)
			zone, _ := time.LoadLocation(agenttest.Ann.Zone)
			s.provider = &ledger{
				f: f, store: s.store, price: spec, bytes: bytes, latency: latency, zone: zone, fails: fails, silent: silent,
				steps: steps, size: size, turns: map[string]agent.Money{}, days: map[string]agent.Money{},
			}
			s.start(limits, result)
			defer func() { s.world.Kill() }()
			for n, a := range acts {
				switch a.kind {
				case "say":
					s.say(n, a.where, a.size)
				case "kill":
					s.world.Restart()
				case "crash":
					s.faulty.FailAt(s.faulty.Count()+1+a.size%5, a.size%2 == 0)
				}
				time.Sleep(time.Duration(a.wait) * time.Second)
				s.revive()
			}
			s.faulty.FailAt(0, false)
			s.world.Rest()
			s.revive()
			s.world.Rest()
			s.check(limits)
		})
	})
}
