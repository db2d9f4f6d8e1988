package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/agent/secret"
	"nudge/memory"
)

// harbour is a tool that lets some of its arguments be left open, and what it is about.
type harbour struct {
	agent.Tool
	d *deeds
	// In words and in a pattern, what is declared of the values of arguments; of the others nothing is.
	within  map[string]string
	pattern map[string]string
	// hangs are values on which something hangs, and depends all else on which a call does.
	hangs   map[string]bool
	depends string
}

func newHarbour(d *deeds) *harbour {
	h := &harbour{
		d: d, within: map[string]string{"version": "that matches v[0-9.]+", "env": "of staging, production"},
		pattern: map[string]string{"version": `\Av[0-9.]+\z`, "env": `\A(staging|production)\z`}, hangs: map[string]bool{}, depends: "one",
	}
	h.Tool = d.tool("ship", agent.Effectful, agent.PolicyAsk)
	h.Schema = json.RawMessage(`{"type":"object","properties":{"env":{"type":"string"},"version":{"type":"string"},"note":{"type":"string"}},"additionalProperties":false}`)
	h.Digest = func(in agent.Invocation) string { return h.depends }
	h.Open = h.opens
	return h
}

func (h *harbour) opens(in agent.Invocation) (open []agent.Opening, depends string) {
	var given map[string]string
	if in.Decode(&given) != nil {
		return nil, ""
	}
	for _, name := range []string{"version", "env"} { // the core puts them in order
		if value, ok := given[name]; ok && h.within[name] != "" && !h.hangs[value] && regexp.MustCompile(h.pattern[name]).MatchString(value) {
			open = append(open, agent.Opening{Name: name, Within: h.within[name]})
		}
	}
	return open, h.depends
}

// allow decides a card with always, leaving arguments open.
func allow(t testing.TB, w *agenttest.World, card string, open ...string) {
	t.Helper()
	if _, err := w.Pass(agent.Message{
		Keys: []string{"allow " + card + strings.Join(open, " ")}, Provenance: agent.Decided,
		Decision: &agent.Decision{Card: card, Verdict: agent.Always, Open: open},
	}); err != nil {
		t.Fatal(err)
	}
}

// allowedOpen says words and decides the card with always, leaving arguments open.
func allowedOpen(t testing.TB, w *agenttest.World, words string, open ...string) agent.Reply {
	t.Helper()
	card := asks(w, words)
	if card == "" {
		t.Fatalf("nobody is asked about %q", words)
	}
	allow(t, w, card, open...)
	said := w.Rest()
	marks := agenttest.Only(said, agent.DecidedMark)
	if len(marks) != 1 || marks[0].Decision != agent.Always || marks[0].Rule == "" || len(marks[0].Open) != len(open) {
		t.Fatalf("decided always with %q open, it says %s", open, agenttest.Lines(said))
	}
	return marks[0]
}

// isAsked says words, and reports whether a card came of it rather than the call having run. The card is denied.
func (h *harbour) isAsked(t testing.TB, w *agenttest.World, words string) bool {
	t.Helper()
	ran := h.d.count("ship")
	card := asks(w, words)
	if (card == "") != (h.d.count("ship") == ran+1) {
		t.Fatalf("%s: the card is %q, and it ran %d times", words, card, h.d.count("ship")-ran)
	}
	if card != "" {
		w.Decide(card, agent.Deny, "")
		w.Rest()
	}
	return card != ""
}

func (h *harbour) expect(t testing.TB, w *agenttest.World, asked bool, words ...string) {
	t.Helper()
	for _, call := range words {
		if h.isAsked(t, w, call) != asked {
			t.Errorf("somebody is asked about %s: %v", call, !asked)
		}
	}
}

func TestARuleLeavesOpenWhatWasChosen(t *testing.T) {
	h := newHarbour(&deeds{})
	w, _ := fresh(t, asked, h.Tool)
	w.Say(`ship {"env":"staging","version":"v1.2","note":"<now>"}`)
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	if want := []agent.Opening{{Name: "env", Within: "of staging, production"}, {Name: "version", Within: "that matches v[0-9.]+"}}; !slices.Equal(card.Open, want) {
		t.Fatalf("the card lets be open %+v", card.Open)
	}
	allow(t, w, card.ID, "version")
	mark := agenttest.Only(w.Rest(), agent.DecidedMark)[0]
	open := []agent.Opening{{Name: "version", Within: "that matches v[0-9.]+"}}
	if h.d.count("ship") != 1 || !slices.Equal(mark.Open, open) || !mark.Always.Equal(*card.Always) {
		t.Fatalf("it ran %d times, and the mark is %+v", h.d.count("ship"), mark)
	}
	rules := rulesOf(t, w.Config.Store, agenttest.Ann.ID)
	if len(rules) != 1 || string(rules[0].Arguments) != `{"env":"staging","note":"<now>"}` || !slices.Equal(rules[0].Open, open) ||
		rules[0].Text() != `ship {"env":"staging","note":"<now>"} with any version that matches v[0-9.]+` {
		t.Fatalf("the rules are %+v", rules)
	}
	free := []string{`ship {"env":"staging","version":"v1.2","note":"<now>"}`, `ship {"note":"<now>","version":"v...","env":"staging"}`}
	bound := []string{
		`ship {"env":"production","version":"v1.2","note":"<now>"}`, `ship {"env":"staging","version":"1.2","note":"<now>"}`,
		`ship {"env":"staging","version":"v1.2\n","note":"<now>"}`, `ship {"env":"staging","version":"v1.2","note":"<Now>"}`,
		`ship {"env":"staging","version":"v1.2"}`, `ship {"env":"staging","note":"<now>"}`, `ship {"version":"v1.2"}`,
		`ship {"env":"staging","version":"","note":"<now>"}`, `ship {"env":"staging","version":"v١","note":"<now>"}`,
	}
	h.expect(t, w, false, free...)
	h.expect(t, w, true, bound...)
	w.Restart()
	h.expect(t, w, false, free...)
	h.expect(t, w, true, bound...)
	consistent(t, w.Config.Store)
	audit := auditText(t, w.Config.Store)
	for _, want := range []string{`"rule":"` + mark.Rule + `","shown":{"env":"staging","note":"<now>","version":"v1.2"},"open":[{"name":"version","within":"that matches v[0-9.]+"}]`, `"rule":"` + mark.Rule + `","left":{"version":"v..."}`} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit lacks %s:\n%s", want, audit)
		}
	}
	decided := eventsOf(t, w.Config.Store, "approval_decided")
	if !strings.HasSuffix(decided[0].Reason, " with any version that matches v[0-9.]+") {
		t.Errorf("the trace says %q", decided[0].Reason)
	}
	w.Decide(card.ID, agent.Approve, "")
	if said := agenttest.Lines(w.Rest()); !strings.Contains(said, "allowed from then on with any version that matches v[0-9.]+") {
		t.Errorf("who comes late is told %s", said)
	}
	exported := exportText(t, w.Config.Store)
	for _, want := range []string{"{\"env\":\"staging\",\"note\":\"<now>\"} with any version that matches v[0-9.]+\n", "allowed from then on with any version that matches v[0-9.]+\n"} {
		if !strings.Contains(exported, want) {
			t.Errorf("the export lacks %s:\n%s", want, exported)
		}
	}
}

func auditText(t testing.TB, store memory.Store) string {
	t.Helper()
	var text strings.Builder
	err := store.View(context.Background(), func(tx memory.Tx) error {
		lines, err := agent.Audit(tx)
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		for _, line := range lines {
			if err := encoder.Encode(line); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func exportText(t testing.TB, store memory.Store) string {
	t.Helper()
	var text string
	err := store.View(context.Background(), func(tx memory.Tx) error {
		p, err := agent.ExportPerson(tx, agenttest.Ann.ID, func(session string) bool { return session == agenttest.Home })
		text = p.Markdown(time.UTC)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestNothingIsLeftOpenUnasked decides always without names, and with more than one.
func TestNothingIsLeftOpenUnasked(t *testing.T) {
	h := newHarbour(&deeds{})
	w, _ := fresh(t, asked, h.Tool)
	allowedOpen(t, w, `ship {"env":"staging","version":"v1"}`)
	h.expect(t, w, false, `ship {"env":"staging","version":"v1"}`)
	h.expect(t, w, true, `ship {"env":"staging","version":"v2"}`, `ship {"env":"production","version":"v1"}`)
	allowedOpen(t, w, `ship {"env":"production","version":"v9"}`, "version", "env")
	h.expect(t, w, false, `ship {"env":"staging","version":"v2"}`, `ship {"env":"production","version":"v1"}`)
	h.expect(t, w, true, `ship {"env":"moon","version":"v2"}`, `ship {"version":"v2"}`, `ship {"env":"staging"}`, `ship {}`)
	consistent(t, w.Config.Store)
	for later, want := range []int{0, 2} {
		err := w.Config.Store.Update(t.Context(), func(tx memory.Tx) error {
			removed, err := agent.SweepRules(tx, time.Now().Add(time.Duration(later)*(agent.RuleTime+time.Hour)), 10)
			if removed != want {
				t.Errorf("%d rules are swept, want %d", removed, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	h.expect(t, w, true, `ship {"env":"staging","version":"v1"}`)
	consistent(t, w.Config.Store)
}

// TestOnlyWhatACardOffersIsLeftOpen asks for more than a card says may be left open: nothing is decided then.
func TestOnlyWhatACardOffersIsLeftOpen(t *testing.T) {
	h := newHarbour(&deeds{})
	h.hangs["v7"] = true
	w, _ := fresh(t, asked, h.Tool, h.d.tool("delete", agent.Effectful, agent.PolicyAsk))
	long := strings.Repeat("ü", 500)
	for _, c := range []struct {
		call, want string
		open       []string
	}{
		{`ship {"env":"staging","version":"v1","note":"x"}`, `"note" cannot be left open; what can be is env, version.`, []string{"note"}},
		{`ship {"env":"staging","version":"v1"}`, `"Version" cannot be left open; what can be is env, version.`, []string{"version", "Version"}},
		{`ship {"env":"staging","version":"v1"}`, `"" cannot be left open`, []string{""}},
		{`ship {"env":"staging"}`, `"version" cannot be left open; what can be is env.`, []string{"version"}},
		{`ship {"env":"staging","version":"v7"}`, `"version" cannot be left open; what can be is env.`, []string{"version"}},
		{`ship {"note":"x"}`, `Nothing in this call can be left open, so "note" cannot be either`, []string{"note"}},
		{`delete {"x":"a"}`, `Nothing in this call can be left open, so "x" cannot be either`, []string{"x"}},
		{`ship {"env":"staging"}`, `cannot be left open; what can be is env.`, []string{long}},
	} {
		card := asks(w, c.call)
		o, err := w.Agent.Weigh(t.Context(), agenttest.Ann, agent.Decision{Card: card, Verdict: agent.Always, Open: c.open})
		if err != nil || o == nil || !strings.Contains(o.Text, c.want) {
			t.Errorf("%s with %q open is weighed %+v, error %v", c.call, c.open, o, err)
		}
		allow(t, w, card, c.open...)
		said := w.Rest()
		faults := agenttest.Only(said, agent.Fault)
		if len(faults) != 1 || !strings.Contains(faults[0].Text, c.want) || !strings.HasSuffix(faults[0].Text, " Nothing was decided.") || len(faults[0].Text) > 300 {
			t.Errorf("%s with %q open: it says %s", c.call, c.open, agenttest.Lines(said))
		}
		w.Decide(card, agent.Deny, "")
		w.Rest()
	}
	if n := len(rulesOf(t, w.Config.Store, agenttest.Ann.ID)); n != 0 || h.d.all() != "" {
		t.Errorf("there are %d rules, and it ran %q", n, h.d.all())
	}
}

// TestNoBoundIsAgreedToUnread has bounds of which something is hidden where they are shown: they are not offered, not
// taken, and let nothing run.
func TestNoBoundIsAgreedToUnread(t *testing.T) {
	h := newHarbour(&deeds{})
	w, _ := fresh(t, asked, h.Tool)
	const call = `ship {"env":"staging","version":"v1"}`
	mark := allowedOpen(t, w, call, "version") // nothing is hidden yet
	within := mark.Open[0].Within
	w.Config.Secrets = secret.New(within[len(within)-8:])
	w.Restart()
	h.expect(t, w, true, `ship {"env":"staging","version":"v2"}`)
	card := asks(w, `ship {"env":"production","version":"v1"}`)
	var open []agent.Opening
	for _, r := range w.Said(agent.Approval) {
		open = r.Open
	}
	if slices.ContainsFunc(open, func(o agent.Opening) bool { return o.Name == "version" }) {
		t.Errorf("it offers %v", open)
	}
	o, err := w.Agent.Weigh(t.Context(), agenttest.Ann, agent.Decision{Card: card, Verdict: agent.Always, Open: []string{"version"}})
	if err != nil || o == nil || !strings.Contains(o.Text, "cannot be left open") {
		t.Errorf("it is weighed %+v, error %v", o, err)
	}
	allow(t, w, card, "version")
	if faults := agenttest.Only(w.Rest(), agent.Fault); len(faults) != 1 || len(rulesOf(t, w.Config.Store, agenttest.Ann.ID)) != 1 {
		t.Errorf("it says %s", agenttest.Lines(faults))
	}
}

// TestAnOpenRuleIsNotLoosened changes what an open rule was saved under.
func TestAnOpenRuleIsNotLoosened(t *testing.T) {
	const call = `ship {"env":"staging","version":"v2"}`
	for name, change := range map[string]func(h *harbour, w *agenttest.World){
		"what it depends on":       func(h *harbour, _ *agenttest.World) { h.depends = "two" },
		"the words":                func(h *harbour, _ *agenttest.World) { h.within["version"] = "that matches v[0-9.]*" },
		"the pattern alone":        func(h *harbour, _ *agenttest.World) { h.pattern["version"] = `\Av1\z` },
		"nothing declared":         func(h *harbour, _ *agenttest.World) { h.within["version"] = "" },
		"the value names a file":   func(h *harbour, _ *agenttest.World) { h.hangs["v2"] = true },
		"no openings":              func(h *harbour, w *agenttest.World) { w.Config.Tools[0].Open = nil },
		"the description":          func(h *harbour, w *agenttest.World) { w.Config.Tools[0].Description += " And back." },
		"the schema":               func(h *harbour, w *agenttest.World) { w.Config.Tools[0].Schema = json.RawMessage(`{"type":"object"}`) },
		"the effect":               func(h *harbour, w *agenttest.World) { w.Config.Tools[0].Effect = agent.Idempotent },
		"it is asked each time":    func(h *harbour, w *agenttest.World) { w.Config.Tools[0].EachTime = true },
		"it sends out, in a taint": nil,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarbour(&deeds{})
			tool := h.Tool
			if change == nil {
				tool.Labels.WayOut = true
			}
			page := agenttest.Tool("page", agent.Read, agent.PolicyNo, func(context.Context, agent.Invocation) (agent.Result, error) {
				return agent.Result{Text: "words of strangers", Outside: "a page"}, nil
			})
			diary := agenttest.Tool("diary", agent.Read, agent.PolicyNo, func(context.Context, agent.Invocation) (agent.Result, error) { return agent.Result{Text: "dear"}, nil })
			diary.Labels.Private = true
			w, _ := fresh(t, asked, tool, page, diary)
			allowedOpen(t, w, `ship {"env":"staging","version":"v1"}`, "version")
			h.expect(t, w, false, call)
			if change == nil {
				w.Say("page {}")
				w.Rest()
				w.Say("diary {}")
				w.Rest()
			} else {
				change(h, w)
				w.Restart()
			}
			h.expect(t, w, true, call)
		})
	}
	for _, policy := range []agent.Policy{agent.PolicyOwner, agent.PolicySecond} {
		h := newHarbour(&deeds{})
		w, _ := fresh(t, asked, h.Tool)
		allowedOpen(t, w, `ship {"env":"staging","version":"v1"}`, "version")
		w.Config.Approve = map[string]agent.Policy{"ship": policy}
		w.Restart()
		w.Say(call)
		cards := agenttest.Only(w.Rest(), agent.Approval)
		if len(cards) == 0 || cards[0].Open != nil || h.d.count("ship") != 1 {
			t.Errorf("under the policy %s it ran %d times, and the cards are %+v", policy, h.d.count("ship"), cards)
		}
	}
}

// TestAnOpenRuleIsForItsPersonAlone lets others ask for such a call, and its person where others are.
func TestAnOpenRuleIsForItsPersonAlone(t *testing.T) {
	h := newHarbour(&deeds{})
	w, _ := fresh(t, asked, h.Tool)
	const call = `ship {"env":"staging","version":"v2"}`
	allowedOpen(t, w, `ship {"env":"staging","version":"v1"}`, "version")
	for i, m := range []agent.Message{
		{From: bob, Address: "slack:T1:dm:U2"},
		{From: bob, Address: agenttest.Home},
		{From: agenttest.Ann, Address: "slack:T1:C1:1.1"},
		{From: agenttest.Ann, Address: agenttest.Home, Session: "wake:ann", Provenance: agent.Heartbeat, Wake: &agent.Wake{
			Heartbeat: "h", Prompt: call, Route: agenttest.Home, Tools: []string{"ship"},
		}},
	} {
		m.Keys = []string{fmt.Sprint("k", i)}
		if m.Provenance == "" {
			m.Provenance, m.Text = agent.Human, call
		}
		if _, err := w.Pass(m); err != nil {
			t.Fatal(err)
		}
		cards := agenttest.Only(w.Rest(), agent.Approval)
		if len(cards) != 1 || h.d.count("ship") != 1 {
			t.Errorf("%s at %s %s: %d cards, and it ran %d times", m.From.ID, m.Address, m.Provenance, len(cards), h.d.count("ship"))
			continue
		}
		if (m.Wake != nil || !strings.Contains(m.Address, ":dm:")) && cards[0].Open != nil {
			t.Errorf("%s at %s %s may leave open %+v", m.From.ID, m.Address, m.Provenance, cards[0].Open)
		}
		if _, err := w.Pass(agent.Message{
			Keys: []string{fmt.Sprint("d", i)}, From: m.From, Address: m.Address, Provenance: agent.Decided, Decision: &agent.Decision{Card: cards[0].ID, Verdict: agent.Deny},
		}); err != nil {
			t.Fatal(err)
		}
		w.Rest()
	}
}

// TestRulesThatOverlap ends one of two rules that let the same call run: the other goes on, and each ends by itself.
func TestRulesThatOverlap(t *testing.T) {
	h := newHarbour(&deeds{})
	w, _ := fresh(t, asked, h.Tool)
	const call = `ship {"env":"staging","version":"v2"}`
	byVersion := allowedOpen(t, w, `ship {"env":"staging","version":"v1"}`, "version").Rule
	byEnv := allowedOpen(t, w, `ship {"env":"production","version":"v2"}`, "env").Rule
	again := func(rule string, ended int) {
		t.Helper()
		if n := revoke(t, w.Config.Store, agenttest.Ann.ID, rule); n != ended {
			t.Errorf("%d rules are revoked, want %d", n, ended)
		}
	}
	h.expect(t, w, false, call)
	again(byVersion, 1)
	h.expect(t, w, false, call)
	h.expect(t, w, true, `ship {"env":"staging","version":"v3"}`)
	exact := allowedOpen(t, w, `ship {"env":"staging","version":"v3"}`).Rule
	again(byEnv, 1)
	h.expect(t, w, true, call)
	h.expect(t, w, false, `ship {"env":"staging","version":"v3"}`)
	again(byVersion, 0)
	again(exact, 1)
	consistent(t, w.Config.Store)
}

// TestAnOpenRuleIsLookedUpAgain revokes an open rule, and lets a value name something, while a hook decides about a call that the
// rule lets run.
func TestAnOpenRuleIsLookedUpAgain(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, w *agenttest.World, h *harbour){
		"revoked":                func(t *testing.T, w *agenttest.World, _ *harbour) { revoke(t, w.Config.Store, agenttest.Ann.ID, "") },
		"the value names a file": func(_ *testing.T, _ *agenttest.World, h *harbour) { h.hangs["v2"] = true },
		"other words":            func(_ *testing.T, _ *agenttest.World, h *harbour) { h.within["version"] = "that is new" },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarbour(&deeds{})
			w, m := fresh(t, asked, h.Tool)
			allowedOpen(t, w, `ship {"env":"staging","version":"v1"}`, "version")
			w.Config.Hooks = []agent.Hook{{Name: "slow", At: agent.BeforeTool, Rule: func(context.Context, agent.HookQuestion) (agent.Ruling, error) {
				meanwhile(t, w, h)
				return agent.Ruling{}, nil
			}}}
			w.Restart()
			w.Say(`ship {"env":"staging","version":"v2"}`)
			w.Rest()
			requests := m.Requests()
			last := requests[len(requests)-1].Messages
			if text := last[len(last)-1].Text; h.d.count("ship") != 1 || !strings.Contains(text, "holds no more") {
				t.Errorf("it ran %d times, and the model reads %q", h.d.count("ship"), text)
			}
		})
	}
}

// TestAnEditSavesNoRule edits a call, with names to be left open on the side.
func TestAnEditSavesNoRule(t *testing.T) {
	h := newHarbour(&deeds{})
	w, _ := fresh(t, asked, h.Tool)
	for _, verdict := range []agent.Verdict{agent.Edit, agent.Approve} {
		card := asks(w, `ship {"env":"staging","version":"v1"}`)
		d := &agent.Decision{Card: card, Verdict: verdict, Open: []string{"version"}}
		if verdict == agent.Edit {
			d.Arguments = json.RawMessage(`{"env":"staging","version":"v5"}`)
		}
		if _, err := w.Pass(agent.Message{Keys: []string{string(verdict)}, Provenance: agent.Decided, Decision: d}); err != nil {
			t.Fatal(err)
		}
		w.Rest()
	}
	h.expect(t, w, true, `ship {"env":"staging","version":"v1"}`, `ship {"env":"staging","version":"v5"}`)
	if n := len(rulesOf(t, w.Config.Store, agenttest.Ann.ID)); n != 0 || h.d.count("ship") != 2 {
		t.Errorf("there are %d rules, and it ran %d times", n, h.d.count("ship"))
	}
}

// TestABatchIsAskedAboutWhole allows the first of three like calls with its version open: the others were asked about before, and
// wait for their own decisions. The next batch runs.
func TestABatchIsAskedAboutWhole(t *testing.T) {
	h := newHarbour(&deeds{})
	w, _ := fresh(t, func(req model.Request) model.Answer {
		if len(agenttest.Results(req)) > 0 {
			return agenttest.Say("done")
		}
		var calls []model.Call
		for i := range 3 {
			calls = append(calls, agenttest.Call(len(req.Messages)*10+i, "ship", fmt.Sprintf(`{"env":"staging","version":"v%d"}`, i)))
		}
		return agenttest.Do(calls...)
	}, h.Tool)
	w.Say("all three")
	cards := agenttest.Only(w.Rest(), agent.Approval)
	if len(cards) != 3 {
		t.Fatalf("there are %d cards", len(cards))
	}
	allow(t, w, cards[0].ID, "version")
	w.Rest()
	if h.d.count("ship") != 1 {
		t.Errorf("it ran %d times", h.d.count("ship"))
	}
	w.Decide(cards[1].ID, agent.Deny, "")
	w.Decide(cards[2].ID, agent.Approve, "")
	w.Rest()
	if h.d.count("ship") != 2 {
		t.Errorf("it ran %d times", h.d.count("ship"))
	}
	w.Say("and again")
	if cards := agenttest.Only(w.Rest(), agent.Approval); len(cards) != 0 || h.d.count("ship") != 5 {
		t.Errorf("there are %d cards, and it ran %d times", len(cards), h.d.count("ship"))
	}
}

// TestRowsThatWereTamperedWith widens saved rules in the data file: they let nothing run any more, and the check tells.
func TestRowsThatWereTamperedWith(t *testing.T) {
	open := []any{map[string]any{"name": "version", "within": "that matches v[0-9.]+"}}
	wide := []any{open[0], map[string]any{"name": "env", "within": "of staging, production"}}
	for name, c := range map[string]struct {
		open   []string
		change func(rule map[string]any)
	}{
		"an exact one is opened":            {nil, func(rule map[string]any) { rule["open"] = open; rule["arguments"] = map[string]any{"env": "staging"} }},
		"an exact one has openings as well": {nil, func(rule map[string]any) { rule["open"] = open }},
		"more is open":                      {[]string{"version"}, func(rule map[string]any) { rule["open"] = wide; rule["arguments"] = map[string]any{} }},
		"less is bound":                     {[]string{"version"}, func(rule map[string]any) { rule["arguments"] = map[string]any{} }},
		"nothing is open":                   {[]string{"version"}, func(rule map[string]any) { delete(rule, "open") }},
		"other words":                       {[]string{"version"}, func(rule map[string]any) { rule["open"] = []any{map[string]any{"name": "version", "within": "of all"}} }},
		"another tool":                      {[]string{"version"}, func(rule map[string]any) { rule["tool"] = "delete" }},
		"no JSON":                           {[]string{"version"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarbour(&deeds{})
			w, _ := fresh(t, asked, h.Tool)
			allowedOpen(t, w, `ship {"env":"staging","version":"v1"}`, c.open...)
			consistent(t, w.Config.Store)
			err := w.Config.Store.Update(t.Context(), func(tx memory.Tx) error {
				return tx.Table("rule").Scan("", func(key string, data []byte) error {
					if c.change == nil {
						return tx.Table("rule").Put(key, []byte("{"))
					}
					var rule map[string]any
					if err := json.Unmarshal(data, &rule); err != nil {
						return err
					}
					c.change(rule)
					changed, err := json.Marshal(rule)
					if err != nil {
						return err
					}
					return tx.Table("rule").Put(key, changed)
				})
			})
			if err != nil {
				t.Fatal(err)
			}
			if problems := problems(t, w.Config.Store); len(problems) == 0 {
				t.Error("check reports nothing")
			}
			h.expect(t, w, true, `ship {"env":"staging","version":"v2"}`, `ship {"env":"production","version":"v1"}`, `ship {"env":"staging","version":"v1"}`)
		})
	}
}

// TestExactRulesAreSavedAsEver holds the row of a rule that leaves nothing open: older ones are found again, and read the same.
func TestExactRulesAreSavedAsEver(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, asked, d.tool("delete", agent.Effectful, agent.PolicyAsk))
	allowed(t, w, `delete {"x":"a"}`)
	err := w.Config.Store.View(t.Context(), func(tx memory.Tx) error {
		return tx.Table("rule").Scan("", func(key string, data []byte) error {
			const want = "fa3f1e0e5a7b1720107b74fb23048d82ff207a08c5bdc4ebc74fbcdc453037e4/b5c32fe3359ea2c8ed79e0d0f417025a4482cd3967810486cd73c94ed0e3a48c"
			if key != want {
				t.Errorf("the row is called %s", key)
			}
			if strings.Contains(string(data), "open") || !strings.Contains(string(data), `"tool":"delete","arguments":{"x":"a"},"until":`) {
				t.Errorf("the row is %s", data)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestACardOffersWhatCanBeRead has more to be left open than one card tells of.
func TestACardOffersWhatCanBeRead(t *testing.T) {
	d := &deeds{}
	tool := d.tool("wide", agent.Effectful, agent.PolicyAsk)
	tool.Schema = json.RawMessage(`{"type":"object"}`)
	arguments := map[string]string{}
	var open []agent.Opening
	for i := range 30 {
		name := fmt.Sprintf("p%02d", i)
		arguments[name] = "x"
		open = append(open, agent.Opening{Name: name, Within: "that matches " + strings.Repeat("x", i*20)})
	}
	open = append(open, agent.Opening{Name: "p 1", Within: "y"}, agent.Opening{Name: "absent", Within: "y"}, agent.Opening{Name: "p00", Within: ""})
	arguments["p 1"] = "x"
	slices.Reverse(open)
	tool.Open = func(agent.Invocation) ([]agent.Opening, string) { return open, "" }
	w, _ := fresh(t, asked, tool)
	call, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	w.Say("wide " + string(call))
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	size := 0
	for i, o := range card.Open {
		if o.Name != fmt.Sprintf("p%02d", i) {
			t.Errorf("number %d is %q", i, o.Name)
		}
		size += len(o.Within)
	}
	if len(card.Open) != 10 || size > 1200 {
		t.Errorf("%d with %d bytes may be left open", len(card.Open), size)
	}
	allow(t, w, card.ID, "p11")
	if faults := agenttest.Only(w.Rest(), agent.Fault); len(faults) != 1 {
		t.Errorf("what the card does not tell of is left open: %+v", faults)
	}
}
