package compact_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"nudge/agent/compact"
	"nudge/agent/model"
)

// session is a turn of many steps as the core runs it: compacted if needed before each request, and billed.
type session struct {
	history
	count   compact.Counter
	window  int
	reserve int
	forget  func(s *session) // instead of compaction, if set

	sent        []model.Message // of the request before
	input       int             // tokens of all requests
	cached      int             // of those, the ones that the request before began with
	compactions int
	stuck       int
}

const sessionSystem = "You are an agent. Work with tools and say only what you know from them."

// request sends what there is, and gives the output of the compaction before.
func (s *session) request() compact.Output {
	in := compact.Input{Count: s.count, Messages: s.messages, Marks: s.marks, Window: s.window, Reserve: s.reserve, Stuck: s.stuck}
	in.Used = compact.Tokens(s.count, sessionSystem, nil, s.messages)
	out, changed := compact.Compact(in)
	if s.forget != nil {
		out, changed = compact.Output{}, false
		s.forget(s)
	}
	if changed {
		s.compactions++
		s.take(out)
	}
	s.stuck = out.Stuck
	same := 0
	for same < min(len(s.sent), len(s.messages)) && reflect.DeepEqual(s.sent[same], s.messages[same]) {
		same++
	}
	s.cached += compact.Tokens(s.count, sessionSystem, nil, s.messages[:same])
	s.input += compact.Tokens(s.count, sessionSystem, nil, s.messages)
	s.sent = s.messages[:len(s.messages):len(s.messages)]
	return out
}

// dollars is what the input costs at $2 per million tokens and a tenth of that for cached ones.
func (s *session) dollars() float64 { return float64(s.input-s.cached)*2e-6 + float64(s.cached)*2e-7 }

// distinct runs so many steps, each of which reads something else of some size.
func (s *session) distinct(steps, tokens int) {
	s.user("Go through the orders from 10000 on and tell me which are late.")
	s.marks[0].Pinned = true
	for i := range steps {
		s.request()
		s.step("read_file", true, fmt.Sprintf("order %d: %s", 10000+i, text("goods and dates", tokens)))
	}
	s.request()
}

// slide keeps the newest steps that fit in half of the window, as a sliding window does at every step.
func slide(s *session) {
	for len(s.messages) > 3 && compact.Tokens(s.count, sessionSystem, nil, s.messages) > (s.window-s.reserve)/2 {
		s.messages = append([]model.Message{s.messages[0]}, s.messages[3:]...)
		s.marks = append([]compact.Mark{s.marks[0]}, s.marks[3:]...)
	}
}

// TestInputTokens: what compaction makes of the input tokens of long turns, in the window that is assumed, and that
// it is cheaper than a sliding window also where providers' caches are.
func TestInputTokens(t *testing.T) {
	t.Log("steps  compaction  tokens ÷ none  dollars ÷ none  compactions")
	for _, test := range []struct {
		steps int
		most  float64
	}{{100, 0.45}, {400, 0.13}} {
		runs := map[string]*session{}
		for _, name := range []string{"none", "sliding", "ours"} {
			s := &session{count: estimate, window: compact.AssumedWindow, reserve: 4096}
			switch name {
			case "none":
				s.forget = func(*session) {}
			case "sliding":
				s.forget = slide
			}
			s.distinct(test.steps, 1000)
			runs[name] = s
			none := runs["none"]
			t.Logf("%5d  %-10s  %13.3f  %14.3f  %11d", test.steps, name, float64(s.input)/float64(none.input), s.dollars()/none.dollars(), s.compactions)
		}
		ours, none, sliding := runs["ours"], runs["none"], runs["sliding"]
		if ratio := float64(ours.input) / float64(none.input); ratio > test.most {
			t.Errorf("%d steps: %.3f of the input tokens, at most %.2f", test.steps, ratio, test.most)
		}
		if ours.dollars() >= none.dollars() || ours.dollars() >= sliding.dollars() {
			t.Errorf("%d steps: $%.4f, $%.4f without and $%.4f with a sliding window", test.steps, ours.dollars(), none.dollars(), sliding.dollars())
		}
	}
}

// TestRunaway: twice the steps are about 3.8 times the input when nothing is compacted, and about twice with it.
func TestRunaway(t *testing.T) {
	t.Log("compaction  50 steps  100 steps  ratio")
	for _, test := range []struct {
		name        string
		window      int
		least, most float64
	}{{"off", 1 << 30, 3.6, 4}, {"on", compact.AssumedWindow, 1.8, 2.5}} {
		var input [2]int
		for i, steps := range []int{50, 100} {
			s := &session{count: compact.NewCounter(compact.O200k), window: test.window, reserve: 4096}
			s.distinct(steps, 900)
			input[i] = s.input
		}
		ratio := float64(input[1]) / float64(input[0])
		t.Logf("%-10s  %8d  %9d  %5.2f", test.name, input[0], input[1], ratio)
		if ratio < test.least || ratio > test.most {
			t.Errorf("compaction %s: %.2f", test.name, ratio)
		}
	}
}

// TestLongSession: two hundred steps of every kind in a window of 8k; every request fits and is valid, keeps the
// request and the skill, and begins with the one before unless there was a compaction.
func TestLongSession(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := &session{count: compact.NewCounter(compact.O200k), window: 8192, reserve: 1024}
	s.user("Sort out the invoices in in/box of 2026.")
	s.marks[0].Pinned = true
	s.step("load_skill", false, "Skill: "+strings.Repeat("compare each line with the order. ", 30))
	s.marks[2].Pinned = true
	first, skill, last := s.messages[0].Text, s.messages[2].Text, s.messages[0].Text
	for i := range 200 {
		before := s.messages
		out := s.request()
		used := compact.Tokens(s.count, sessionSystem, nil, s.messages)
		why := fault(s.messages)
		switch {
		case used > s.window-s.reserve || why != "":
			t.Fatalf("step %d: %d tokens, %s: %s", i, used, why, out.Note)
		case !has(s.messages, first) || !has(s.messages, skill) || !has(s.messages, last):
			t.Fatalf("step %d: what must stay is gone: %s", i, out.Note)
		case out.Level == compact.Untouched && !reflect.DeepEqual(s.messages, before):
			t.Fatalf("step %d: changed without a word", i)
		case out.Stuck > 0:
			t.Fatalf("step %d: %s", i, out.Note)
		}
		switch n := random.IntN(20); {
		case n == 0:
			last = fmt.Sprintf("and mind order %d", i)
			s.add(model.Message{Role: model.User, Text: last}, compact.Mark{})
		case n == 1:
			s.says("That one is done.")
			last = fmt.Sprintf("Now number %d.", i)
			s.user(last)
		case n == 2:
			s.step("fetch_page", false, strings.Repeat("a page with some words ", 1400))
		case n < 8:
			s.step("write_file", false, "written")
		default:
			s.step("read_file", true, fmt.Sprint(i, strings.Repeat(" some line", random.IntN(600))), fmt.Sprint(i, strings.Repeat(" more", random.IntN(300))))
		}
	}
	t.Logf("%d compactions, %.0f %% of the input was cached", s.compactions, 100*float64(s.cached)/float64(s.input))
	if s.compactions < 5 || s.compactions > 100 {
		t.Errorf("%d compactions in 200 steps", s.compactions)
	}
}

// BenchmarkSteps tells what the steps of a long turn cost, compaction and counting alone, and the ratios to none.
func BenchmarkSteps(b *testing.B) {
	for _, steps := range []int{100, 400} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			none := &session{count: estimate, window: 1 << 30}
			none.distinct(steps, 1000)
			var s *session
			for b.Loop() {
				s = &session{count: estimate, window: compact.AssumedWindow, reserve: 4096}
				s.distinct(steps, 1000)
			}
			b.ReportMetric(float64(s.input)/float64(none.input), "tokens/none")
			b.ReportMetric(s.dollars()/none.dollars(), "dollars/none")
		})
	}
}
