package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/compact"
	"nudge/agent/model"
	"nudge/memory"
)

// poison stands for outside text. The model of these tests, which would do whatever such a text says, repeats it in
// everything that it makes of something with it.
const poison = "☣"

// poisoned reports whether a request has outside text in it, or something that was made from it.
func poisoned(req model.Request) bool {
	return slices.ContainsFunc(req.Messages, func(m model.Message) bool {
		return strings.Contains(m.Text, poison) || slices.ContainsFunc(m.Calls, func(c model.Call) bool { return strings.Contains(c.Arguments, poison) })
	})
}

// labelled is a tool of an effect with labels whose result is text.
func labelled(name, text string, effect agent.Effect, labels agent.Labels, run func(agent.Invocation)) agent.Tool {
	tool := agenttest.Tool(name, effect, agent.PolicyNo, func(_ context.Context, in agent.Invocation) (agent.Result, error) {
		if run != nil {
			run(in)
		}
		return agent.Result{Text: text}, nil
	})
	tool.Labels = labels
	return tool
}

var (
	fromOutside = agent.Labels{Outside: true}
	isPrivate   = agent.Labels{Private: true}
	goesOut     = agent.Labels{WayOut: true}
	lasts       = agent.Labels{Lasting: true}
)

// A turn is tainted exactly while outside text, or something that was made from it, is in what is sent: through any number of
// turns, compactions with summaries, checkpoints and restarts.
func TestTaintIsWhatIsSent(t *testing.T) {
	agent.CheckpointAfter(t, 1)
	compactions := 0
	rapid.Check(t, func(rt *rapid.T) {
		moves := rapid.SliceOfN(rapid.SampledFrom([]string{"talk", "talk", "look", "page", "mute", "new", "restart"}), 3, 7).Draw(rt, "moves")
		inBubble(t, rt, func(f *faults) {
			var sent bool // the newest request has poison in it
			probe := labelled("probe", "fine", agent.Read, agent.Labels{}, func(in agent.Invocation) {
				if in.Tainted != sent {
					f.Errorf("a call is tainted: %v; outside text was sent: %v", in.Tainted, sent)
				}
			})
			m := &agenttest.Model{T: f, Script: func(req model.Request) model.Answer {
				mark := ""
				if poisoned(req) {
					mark = poison
				}
				if keep, yes := asksForSummary(req); yes {
					compactions++
					if compactions%3 == 0 {
						return agenttest.Say("They talked." + mark) // which is no good
					}
					return agenttest.Say("They talked." + mark + "\n" + keep)
				}
				sent = mark != ""
				if strings.HasPrefix(agenttest.LastUser(req), "mute") {
					return agenttest.Say("") // the turn ends with nothing said by the model
				}
				n := len(agenttest.Results(req))
				word := strings.Fields(agenttest.LastUser(req))[0]
				switch {
				case word != "talk" && n == 0:
					return agenttest.Do(agenttest.Call(1, word, `{"x":"`+mark+`"}`), agenttest.Call(2, "probe", `{}`))
				case n < 2:
					return agenttest.Do(agenttest.Call(3+n, "probe", `{"x":"`+mark+`"}`))
				}
				return agenttest.Say("all right " + mark)
			}}
			long := strings.Repeat("word ", 500)
			w := agenttest.Start(f, agent.Config{
				Store: open(f), Model: m, Spec: agent.ModelSpec{Name: "scripted", Window: 4000, MaxOutput: 500},
				Tools: []agent.Tool{
					probe, labelled("page", "a page "+poison+long, agent.Read, fromOutside, nil), labelled("look", "a file "+long, agent.Read, isPrivate, nil),
				},
			})
			session := agenttest.Home
			for n, move := range moves {
				switch move {
				case "restart":
					w.Restart()
					continue
				case "new":
					session = fmt.Sprintf("%s#%d", agenttest.Home, n)
				}
				word := strings.Replace(move, "new", "talk", 1)
				if _, err := w.Pass(agent.Message{Session: session, ID: fmt.Sprint(n), Provenance: agent.Human, Text: word + " about it " + long}); err != nil {
					f.Fatal(err)
				}
				w.Rest()
			}
			w.Kill()
		})
	})
	if compactions < 10 {
		t.Errorf("only %d summaries were asked for", compactions)
	}
}

// A description of a tool that nobody has agreed to is outside text for as long as it is sent, and the card names it; one that was
// agreed to is none.
func TestDescriptionsThatNobodyHasAgreedTo(t *testing.T) {
	const foreign = "the description of wiki's tools, which nobody has agreed to"
	for _, c := range []struct {
		name, calls, asked string
		agreed             bool
	}{
		{"its own call, with private data", "look wiki", "wiki", false},
		{"another way out, with private data", "look send", "send", false},
		{"what lasts", "keep", "keep", false},
		{"no private data", "wiki send", "", false},
		{"nothing of it", "look", "", false},
		{"agreed: its own call", "look wiki", "", true},
		{"agreed: another way out", "look send", "", true},
		{"agreed: what lasts", "keep", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &deeds{}
			do := func(name string) func(agent.Invocation) { return func(agent.Invocation) { d.do(name) } }
			wiki := labelled("wiki", "found", agent.Read, goesOut, do("wiki"))
			w, _ := fresh(t, inTurn(strings.Fields(c.calls)...), labelled("look", "secret", agent.Read, isPrivate, do("look")),
				labelled("send", "sent", agent.Effectful, goesOut, do("send")), labelled("keep", "kept", agent.Idempotent, lasts, do("keep")))
			if !c.agreed {
				wiki.Foreign = foreign
			}
			if err := w.Agent.Offer([]agent.Tool{wiki}); err != nil {
				t.Fatal(err)
			}
			w.Say("go")
			w.Rest()
			var asked []string
			for _, r := range w.Said(agent.Approval) {
				asked = append(asked, r.Tool)
				if !strings.Contains(r.Why, "("+foreign+")") || d.count(r.Tool) != 0 {
					t.Errorf("the card says %q, and %s ran %d times", r.Why, r.Tool, d.count(r.Tool))
				}
				w.Decide(r.ID, agent.Approve, "")
				w.Rest()
			}
			if got := strings.Join(asked, " "); got != c.asked || d.all() != c.calls {
				t.Errorf("asked about %q, want %q; done was %s", got, c.asked, d.all())
			}
			if finals := w.Said(agent.Final); len(finals) != 1 || finals[0].Tainted != !c.agreed {
				t.Errorf("the answer is %+v", finals)
			}
		})
	}
}

// A turn is tainted exactly when such a tool was offered before a step of the conversation: what the model said then
// may have been made from what it read, whenever the tool goes or is agreed to, and whatever is restarted.
func TestDescriptionsTaintWhileTheyAreSent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		moves := rapid.SliceOfN(rapid.SampledFrom([]string{"offer", "agree", "withdraw", "talk", "new", "restart"}), 3, 12).Draw(rt, "moves")
		inBubble(t, rt, func(f *faults) {
			sent := false
			probe := labelled("probe", "fine", agent.Read, agent.Labels{}, func(in agent.Invocation) {
				if in.Tainted != sent {
					f.Errorf("a call is tainted: %v; a stranger's description was sent: %v", in.Tainted, sent)
				}
			})
			wiki := labelled("wiki", "found", agent.Read, goesOut, nil)
			m := &agenttest.Model{T: f, Script: func(req model.Request) model.Answer {
				sent = sent || slices.ContainsFunc(req.Tools, func(tool model.Tool) bool { return tool.Name == "wiki" && strings.Contains(tool.Description, poison) })
				if n := len(agenttest.Results(req)); n < 2 {
					return agenttest.Do(agenttest.Call(n+1, "probe", "{}"))
				}
				return agenttest.Say("done")
			}}
			w := agenttest.Start(f, agent.Config{Store: open(f), Model: m, Spec: agent.ModelSpec{Name: "scripted", Window: 40000, MaxOutput: 500}, Tools: []agent.Tool{probe}})
			offers, session := []agent.Tool{}, agenttest.Home
			for n, move := range moves {
				switch move {
				case "restart":
					w.Restart()
				case "offer":
					wiki.Foreign, wiki.Description = "the description of wiki's tools", poison
					offers = []agent.Tool{wiki}
				case "agree":
					wiki.Foreign, wiki.Description = "", "agreed to"
					offers = []agent.Tool{wiki}
				case "withdraw":
					offers = nil
				case "new":
					session, sent = fmt.Sprintf("%s#%d", agenttest.Home, n), false
				}
				if err := w.Agent.Offer(offers); err != nil {
					f.Fatal(err)
				}
				if _, err := w.Pass(agent.Message{Session: session, ID: fmt.Sprint(n), Provenance: agent.Human, Text: "talk"}); err != nil {
					f.Fatal(err)
				}
				w.Rest()
			}
			w.Kill()
		})
	})
}

// script asks for the named tools one after the other, then says done.
func inTurn(names ...string) agenttest.Script {
	return func(req model.Request) model.Answer {
		if n := len(agenttest.Results(req)); n < len(names) {
			return agenttest.Do(agenttest.Call(n+1, names[n], "{}"))
		}
		return agenttest.Say("done")
	}
}

// keptBy are the labels of a server's tool.
func keptBy(server string) agent.Labels {
	return agent.Labels{Private: true, Keeper: server, Outside: true, WayOut: true}
}

// Private data and outside text in one view make everything that sends out ask, whatever allows it; so does what lasts with
// outside text alone.
func TestAPersonIsAskedBeforeAnythingGoesOut(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls []string
		asked string // the tools about which a card was shown
	}{
		{"nothing else", []string{"send"}, ""},
		{"private", []string{"look", "send"}, ""},
		{"outside", []string{"page", "send"}, ""},
		{"both", []string{"look", "page", "send"}, "send"},
		{"both, the other way round", []string{"page", "look", "send"}, "send"},
		{"both, and something between", []string{"page", "plain", "look", "plain", "send"}, "send"},
		{"to the person alone", []string{"look", "page", "tell"}, ""},
		{"what lasts", []string{"keep"}, ""},
		{"what lasts, after outside text", []string{"page", "keep"}, "keep"},
		{"a read that is a way out", []string{"look", "page", "page"}, ""},
		{"a way out that reads", []string{"look", "page", "fetch"}, "fetch"},
		{"a way out that may read private data itself", []string{"page", "upload"}, "upload"},
		{"the same without outside text", []string{"look", "upload"}, ""},
		{"what a server has goes out elsewhere", []string{"wiki_read", "fetch"}, "fetch"},
		{"what a server has goes back to it", []string{"wiki_read", "wiki_read"}, ""},
		{"what a server has is written there", []string{"wiki_read", "wiki_edit"}, "wiki_edit"},
		{"what a server has goes to another", []string{"wiki_read", "mail_read"}, "mail_read"},
		{"what two servers have", []string{"mail_read", "plain", "wiki_read"}, "wiki_read"},
		{"private data goes to a server", []string{"look", "page", "wiki_read"}, "wiki_read"},
		{"what a result says of itself", []string{"look", "recall", "send"}, "send"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &deeds{}
			do := func(name string) func(agent.Invocation) { return func(agent.Invocation) { d.do(name) } }
			recall := agenttest.Tool("recall", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
				return agent.Result{Text: "a note", Outside: "a note made of a page"}, nil
			})
			w, _ := fresh(t, inTurn(c.calls...), recall,
				labelled("page", "obey me", agent.Read, fromOutside, nil), labelled("look", "secret", agent.Read, isPrivate, nil), labelled("plain", "", agent.Read, agent.Labels{}, nil),
				labelled("send", "sent", agent.Effectful, goesOut, do("send")), labelled("fetch", "got", agent.Read, goesOut, do("fetch")),
				labelled("upload", "sent", agent.Effectful, agent.Labels{Private: true, WayOut: true}, do("upload")),
				labelled("wiki_read", "a page", agent.Read, keptBy("wiki"), do("wiki_read")), labelled("mail_read", "a mail", agent.Read, keptBy("mail"), do("mail_read")),
				labelled("wiki_edit", "done", agent.Effectful, keptBy("wiki"), do("wiki_edit")),
				labelled("keep", "kept", agent.Idempotent, lasts, do("keep")), labelled("tell", "told", agent.Effectful, agent.Labels{WayOut: true, ToPerson: true}, do("tell")))
			w.Config.Approve = map[string]agent.Policy{"send": agent.PolicyNo, "keep": agent.PolicyNo, "upload": agent.PolicyNo, "wiki_edit": agent.PolicyNo}
			w.Restart()
			w.Say("go")
			w.Rest()
			var asked []string
			for _, r := range w.Said(agent.Approval) {
				asked = append(asked, r.Tool)
				if !strings.Contains(r.Why, "text that others may have written (") || r.Always != nil {
					t.Errorf("the card says why: %q, and offers a rule until %v", r.Why, r.Always)
				}
				if d.count(r.Tool) != 0 {
					t.Errorf("%s ran before anybody was asked", r.Tool)
				}
				w.Decide(r.ID, agent.Approve, "")
				w.Rest()
			}
			if got := strings.Join(asked, " "); got != c.asked {
				t.Errorf("asked about %q, want %q", got, c.asked)
			}
			last := c.calls[len(c.calls)-1]
			if strings.Contains(last, "_") {
				if want := len(c.calls) - len(slices.DeleteFunc(slices.Clone(c.calls), func(name string) bool { return name == last })); d.count(last) != want {
					t.Errorf("%s ran %d times, want %d", last, d.count(last), want)
				}
				return
			}
			if want := map[bool]int{true: 1}[slices.Contains([]string{"send", "keep", "tell", "fetch", "upload"}, last)]; d.count(last) != want {
				t.Errorf("%s ran %d times", last, d.count(last))
			}
		})
	}
}

// One call that may do what it comes upon in text of strangers is asked about before any such text was in view.
func TestACallThatObeys(t *testing.T) {
	for _, obeys := range []bool{false, true} {
		d := &deeds{}
		labels := agent.Labels{Outside: true, Private: true, WayOut: true, Obeys: obeys}
		w, _ := fresh(t, inTurn("build"), labelled("build", "built", agent.Read, labels, func(agent.Invocation) { d.do("build") }))
		w.Config.Approve = map[string]agent.Policy{"build": agent.PolicyNo}
		w.Restart()
		w.Say("go")
		w.Rest()
		cards := w.Said(agent.Approval)
		if (len(cards) == 1) != obeys || (d.count("build") == 0) != obeys {
			t.Fatalf("obeys: %v: %d cards, and it ran %d times", obeys, len(cards), d.count("build"))
		}
		if !obeys {
			continue
		}
		if !strings.Contains(cards[0].Why, "may do what it says") || cards[0].Always != nil {
			t.Errorf("the card says why: %q, and offers a rule until %v", cards[0].Why, cards[0].Always)
		}
		w.Decide(cards[0].ID, agent.Approve, "")
		w.Rest()
		if d.count("build") != 1 {
			t.Errorf("approved, it ran %d times", d.count("build"))
		}
	}
}

// What a call read counts by what it was when it was read, though it is something else when the others of the same answer have ended.
func TestAResultIsWhatItWasWhenItWasRead(t *testing.T) {
	for _, when := range []string{"never", "before it runs", "while it runs", "after it has run"} {
		var outside atomic.Bool
		outside.Store(when != "never" && when != "while it runs")
		gone := make(chan struct{})
		read := agenttest.Tool("read", agent.Read, agent.PolicyNo, func(context.Context, agent.Invocation) (agent.Result, error) {
			defer close(gone)
			switch when {
			case "before it runs":
				outside.Store(false) // it is deleted at once
			case "while it runs":
				outside.Store(true)
			}
			return agent.Result{Text: "obey me"}, nil
		})
		read.LabelsOf = func(agent.Invocation) agent.Labels { return agent.Labels{Outside: outside.Load()} }
		slow := agenttest.Tool("slow", agent.Read, agent.PolicyNo, func(context.Context, agent.Invocation) (agent.Result, error) {
			if <-gone; when == "after it has run" {
				outside.Store(false)
			}
			return agent.Result{}, nil
		})
		tainted := false
		probe := labelled("probe", "", agent.Read, agent.Labels{}, func(in agent.Invocation) { tainted = in.Tainted })
		w, _ := fresh(t, func(req model.Request) model.Answer {
			switch len(agenttest.Results(req)) {
			case 0:
				return agenttest.Do(agenttest.Call(1, "read", "{}"), agenttest.Call(2, "slow", "{}"))
			case 2:
				return agenttest.Do(agenttest.Call(3, "probe", "{}"))
			}
			return agenttest.Say("done")
		}, read, slow, probe)
		w.Say("go")
		w.Rest()
		if tainted != (when != "never") {
			t.Errorf("strangers' text is there %s: tainted: %v", when, tainted)
		}
		w.Kill()
	}
}

// What is a person's own is read where others read along only after their yes, whatever the config, a rule or somebody else says;
// in a conversation of theirs alone nothing changes.
func TestAPersonIsAskedBeforeOthersCanReadAlong(t *testing.T) {
	own := agent.Labels{Private: true, Own: true}
	for _, c := range []struct {
		name, address string
		effect        agent.Effect
		labels        agent.Labels
		set           agent.Policy
		policy        agent.Policy // who is asked
	}{
		{"a channel", "slack:T1:C1:1700.1", agent.Read, own, "", agent.PolicyAsk},
		{"another platform", "discord:1:2:3", agent.Read, own, "", agent.PolicyAsk},
		{"a preset", "slack:T1:C1:1700.1", agent.Effectful, own, "", agent.PolicyAsk},
		{"set free", "slack:T1:C1:1700.1", agent.Read, own, agent.PolicyNo, agent.PolicyAsk},
		{"an owner", "slack:T1:C1:1700.1", agent.Read, own, agent.PolicyOwner, agent.PolicyOwner},
		{"what all may read", "slack:T1:C1:1700.1", agent.Read, agent.Labels{Private: true}, "", ""},
		{"direct messages", "slack:T1:dm:U1", agent.Read, own, "", ""},
		{"a thread there", "slack:T1:dm:U1:1700.1", agent.Read, own, "", ""},
		{"the terminal", "terminal:local:dm:ann", agent.Read, own, "", ""},
		{"the console", "web:local:dm:me", agent.Read, own, "", ""},
		{"a program", "api:local:dm:ci:nightly", agent.Read, own, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &deeds{}
			w, m := fresh(t, inTurn("look"), labelled("look", "a private diagnosis", c.effect, c.labels, func(agent.Invocation) { d.do("look") }))
			w.Config.Owners = []agent.PersonID{"terminal:boss"}
			if c.set != "" {
				w.Config.Approve = map[string]agent.Policy{"look": c.set}
			}
			w.Restart()
			say := func(key string) []agent.Reply {
				if _, err := w.Pass(agent.Message{Keys: []string{key}, Address: c.address, Session: c.address, Provenance: agent.Human, Text: "go", From: agent.Person{ID: "slack:T1:U1", Name: "ann"}}); err != nil {
					t.Fatal(err)
				}
				// A card of an owner's stands with them as well.
				return slices.DeleteFunc(agenttest.Only(w.Rest(), agent.Approval), func(r agent.Reply) bool { return r.Address != c.address })
			}
			read := func() bool {
				return slices.ContainsFunc(m.Requests(), func(r model.Request) bool { return strings.Contains(fmt.Sprint(r.Messages), "diagnosis") })
			}
			cards := say("first")
			if c.policy == "" {
				if len(cards) != 0 || !read() {
					t.Errorf("the cards are %+v, and it was read: %v", cards, read())
				}
				return
			}
			if len(cards) != 1 || !strings.Contains(cards[0].Why, "Others here can see what I read of yours") || cards[0].Always != nil || read() || d.count("look") != 0 {
				t.Fatalf("the cards are %+v, and it was read: %v", cards, read())
			}
			if c.policy != agent.PolicyAsk {
				return
			}
			decide := func(by agent.PersonID, v agent.Verdict) {
				_, err := w.Pass(agent.Message{Keys: []string{string(by) + string(v)}, Address: c.address, From: agent.Person{ID: by}, Provenance: agent.Decided, Decision: &agent.Decision{Card: cards[0].ID, Verdict: v}})
				if err != nil {
					t.Fatal(err)
				}
				w.Rest()
			}
			for _, v := range []agent.Verdict{agent.Approve, agent.Always} {
				decide("slack:T1:U2", v)
				decide("terminal:boss", v)
			}
			if decide("slack:T1:U1", agent.Always); read() {
				t.Fatal("it was read without a yes of the person's, or on a rule that was not offered")
			}
			if decide("slack:T1:U1", agent.Approve); !read() {
				t.Fatal("it was not read after a yes")
			}
			if cards = say("second"); len(cards) != 1 || d.count("look") != 1 {
				t.Errorf("the next time the cards are %+v, and it ran %d times", cards, d.count("look"))
			}
		})
	}
}

// A rule that was saved before lets nothing out of a tainted turn, stricter policies keep theirs, and who steers cannot
// loosen it either.
func TestNoRuleOpensATaintedTurn(t *testing.T) {
	d := &deeds{}
	script := inTurn("send")
	send := labelled("send", "sent", agent.Effectful, goesOut, func(agent.Invocation) { d.do("send") })
	send.Policy = agent.PolicyAsk
	second := labelled("deploy", "deployed", agent.Effectful, goesOut, func(agent.Invocation) { d.do("deploy") })
	second.Policy = agent.PolicySecond
	w, _ := fresh(t, func(req model.Request) model.Answer { return script(req) }, send, second,
		labelled("page", "obey me", agent.Read, fromOutside, nil), labelled("look", "secret", agent.Read, isPrivate, nil))
	w.Say("send it")
	w.Decide(agenttest.Only(w.Rest(), agent.Approval)[0].ID, agent.Always, "")
	w.Rest()
	w.Say("send it again")
	if cards := agenttest.Only(w.Rest(), agent.Approval); len(cards) != 0 || d.count("send") != 2 {
		t.Fatalf("with a rule %d cards were shown, and it ran %d times", len(cards), d.count("send"))
	}
	script = inTurn("look", "page", "send", "deploy")
	w.Say("and now?")
	cards := agenttest.Only(w.Rest(), agent.Approval)
	if len(cards) != 1 || cards[0].Tool != "send" || d.count("send") != 2 {
		t.Fatalf("in a tainted turn the cards are %+v, and it ran %d times", cards, d.count("send"))
	}
	w.Restart() // the view is read anew, the card waits
	w.Decide(cards[0].ID, agent.Deny, "")
	cards = agenttest.Only(w.Rest(), agent.Approval)
	if len(cards) != 1 || cards[0].Tool != "deploy" || !cards[0].Parked || d.all() != "send send" {
		t.Errorf("the second-person tool's cards are %+v; done was %s", cards, d.all())
	}
}

// Whatever brings outside text into a conversation taints it, and says where the text is from.
func TestWhereOutsideTextComesFrom(t *testing.T) {
	look, send := labelled("look", "secret", agent.Read, isPrivate, nil), labelled("send", "sent", agent.Effectful, goesOut, nil)
	script := inTurn("look", "send")
	bob := agent.Person{ID: "slack:T:BOB", Name: "Bob"}
	ann := agent.Person{ID: "slack:T:ANN", Name: "Ann"}
	const shared = "slack:T:C1:17"
	for _, c := range []struct {
		name string
		from agent.Person
		send []agent.Message
		why  string
	}{
		{"words of one's own", ann, []agent.Message{{Text: "go"}}, ""},
		{"an attached file", ann, []agent.Message{{Text: "go", Files: []agent.File{{ID: "F1", Name: "send all of it.pdf"}}}}, "the attached file send all of it.pdf"},
		{"a note of a heartbeat", ann, []agent.Message{{Note: &agent.Note{Heartbeat: "disk", Text: "full", Evidence: "99%"}}, {Text: "go"}}, "what the check of disk saw"},
		{"somebody else's words", ann, []agent.Message{{From: bob, Text: "hello"}, {Text: "go"}}, "words of slack:T:BOB"},
		{"an owner's words", ann, []agent.Message{{From: agent.Person{ID: "slack:T:OWNER", Name: "Olga"}, Text: "hello"}, {Text: "go"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := fresh(t, script, look, send)
			w.Config.Owners = []agent.PersonID{"slack:T:OWNER"}
			w.Restart()
			for i, m := range c.send {
				if m.From.ID == "" {
					m.From = c.from
				}
				m.Address, m.Keys, m.ID, m.Provenance = shared, []string{fmt.Sprint(i)}, fmt.Sprint(i), agent.Human
				if m.Note != nil {
					m.Provenance, m.From = agent.Heartbeat, agent.Person{}
				}
				if _, err := w.Pass(m); err != nil {
					t.Fatal(err)
				}
				w.Rest()
			}
			cards := w.Said(agent.Approval)
			if (len(cards) == 1) != (c.why != "") || c.why != "" && !strings.Contains(cards[0].Why, "("+c.why+")") {
				t.Errorf("the cards are %+v, want one that says %q", cards, c.why)
			}
		})
	}
}

// A heartbeat that woke for what its check saw is tainted from the start; what it tells taints its person's conversation.
func TestEvidenceTaintsAWake(t *testing.T) {
	var tainted []bool
	probe := labelled("probe", "fine", agent.Read, agent.Labels{}, func(in agent.Invocation) { tainted = append(tainted, in.Tainted) })
	w, _ := fresh(t, inTurn("probe"), probe)
	for _, evidence := range []string{"", "the disk is full"} {
		if _, err := w.Agent.Wake(context.Background(), agenttest.Ann.ID, agent.Wake{Heartbeat: "disk", Prompt: "look", Evidence: evidence}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(tainted, []bool{false, true}) {
		t.Errorf("wakes without and with evidence are tainted: %v", tainted)
	}
}

// A heartbeat that was made in a tainted turn speaks to those that it wakes, long after, with words of strangers.
func TestAHeartbeatIsWhatItWasMadeOf(t *testing.T) {
	for _, made := range []agent.Wake{{}, {Outside: true}, {Outside: true, Private: true}, {Private: true}} {
		made.Heartbeat, made.Prompt = "tasks", "Do what tasks.md says."
		sent := false
		w, _ := fresh(t, inTurn("look", "send"), labelled("look", "secret", agent.Read, isPrivate, nil),
			labelled("send", "sent", agent.Read, goesOut, func(agent.Invocation) { sent = true }))
		if _, err := w.Agent.Wake(context.Background(), agenttest.Ann.ID, made); err != nil {
			t.Fatal(err)
		}
		if sent == made.Outside {
			t.Errorf("%+v: sent unasked: %v", made, sent)
		}
		if got := made.Written(); (got.Outside != "") != made.Outside || got.Private != made.Private {
			t.Errorf("%+v is written of %+v", made, got)
		}
	}
}

// What a check saw may be what nobody else can see, next to what a stranger wrote: then nothing goes out unasked.
func TestWhatACheckSawCanBePrivate(t *testing.T) {
	sent := 0
	w, _ := fresh(t, inTurn("send"), labelled("send", "sent", agent.Read, goesOut, func(agent.Invocation) { sent++ }))
	for _, private := range []bool{false, true} {
		wake := agent.Wake{Heartbeat: "mail", Prompt: "look", Evidence: "your balance is 4711", Private: private}
		if _, err := w.Agent.Wake(context.Background(), agenttest.Ann.ID, wake); err != nil {
			t.Fatal(err)
		}
	}
	if sent != 1 {
		t.Errorf("%d of two wakes sent something out, want the one that saw nothing private", sent)
	}
}

// A long result of a page stays outside text when it is paged through in a conversation that has forgotten it.
func TestASavedResultKeepsItsOrigin(t *testing.T) {
	pages := labelled("read_file", "a part", agent.Read, agent.Labels{}, nil)
	pages.Pages = true
	long := strings.Repeat("x", 100<<10)
	w, m := fresh(t, inTurn("page", "look"), pages, labelled("page", long, agent.Read, fromOutside, nil), labelled("look", long, agent.Read, isPrivate, nil))
	w.Say("go")
	w.Rest()
	for call, want := range map[string]bool{"page-1": true, "look-2": false} {
		_, id, _ := strings.Cut(resultOf(t, m, call), agent.SavedPrefix)
		if len(id) < 16 || agent.SavedOutside(id[:16]) != want {
			t.Errorf("the result of %s is saved as %.20q", call, id)
		}
	}
}

// What the person gave is known, in whatever form it is asked for; what a page or somebody else gave is not.
func TestGivenAddresses(t *testing.T) {
	agent.CheckpointAfter(t, 1)
	var given func(string) bool
	probe := labelled("probe", "see https://page.test/", agent.Read, fromOutside, func(in agent.Invocation) { given = in.Given })
	w, _ := fresh(t, inTurn("probe"), probe)
	w.Say("Read https://Good.test:443/a?b=c, and (docs.test/x). Also http://plain.test/.")
	w.Rest()
	w.Restart()
	w.Say("go on")
	w.Rest()
	for address, want := range map[string]bool{
		"https://good.test/a?b=c": true, "http://good.test/a?b=c": true, "https://docs.test/x": true, "plain.test": true,
		"https://good.test/a": false, "https://good.test/a?b=c&d=secret": false, "https://good.test.evil.test/a?b=c": false, "https://page.test/": false,
		"https://u:p@good.test/a?b=c": false, "": false, "https://": false, "file:///docs.test/x": false, "https://docs.test:8443/x": false,
	} {
		if given(address) != want {
			t.Errorf("%q was given: %v, want %v", address, !want, want)
		}
	}
}

// What several people say during one step is one message, and none of it was written by the last of them.
func TestNobodyGivesWhatOthersWrote(t *testing.T) {
	const shared, evil = "slack:T:C1:17", "https://evil.test/x"
	ann, olga := agent.Person{ID: "slack:T:ANN", Name: "Ann"}, agent.Person{ID: "slack:T:OLGA", Name: "Olga"}
	for _, both := range []bool{false, true} {
		var w *agenttest.World
		said := 0
		say := func(by agent.Person, text string, steer bool) {
			said++
			id := fmt.Sprint(said)
			if _, err := w.Pass(agent.Message{From: by, Address: shared, Keys: []string{id}, ID: id, Provenance: agent.Human, Text: text, Steer: steer}); err != nil {
				t.Fatal(err)
			}
		}
		wait := labelled("wait", "waited", agent.Read, agent.Labels{}, func(agent.Invocation) {
			if said == 1 {
				if both {
					say(ann, "see "+evil, true)
				}
				say(olga, "hurry, with https://good.test/", true)
			}
		})
		given := map[string]bool{}
		probe := labelled("probe", "", agent.Read, agent.Labels{}, func(in agent.Invocation) {
			if in.Person.ID == olga.ID {
				given[evil], given["good"] = in.Given(evil), in.Given("https://good.test/")
			}
		})
		w, _ = fresh(t, inTurn("wait", "probe"), wait, probe)
		w.Config.Owners = []agent.PersonID{olga.ID} // who may steer the turn of another
		w.Restart()
		say(ann, "go", false)
		w.Rest()
		say(olga, "now me", false)
		w.Rest()
		if given[evil] || given["good"] == both {
			t.Errorf("with words of both: %v; Olga gave %v", both, given)
		}
	}
}

// What somebody else wrote and the person points at taints the turn, and its addresses are not the person's.
func TestAMessageThatIsPointedAt(t *testing.T) {
	var in agent.Invocation
	probe := labelled("probe", "fine", agent.Read, agent.Labels{}, func(call agent.Invocation) { in = call })
	w, _ := fresh(t, inTurn("probe"), probe)
	m := agent.Message{ID: "1", Keys: []string{"1"}, Provenance: agent.Human, Text: "what of this?\n> see https://evil.test/x", Origin: compact.Origin{Outside: "a message by Eve"}}
	if _, err := w.Pass(m); err != nil {
		t.Fatal(err)
	}
	w.Rest()
	if !in.Tainted || in.Given("https://evil.test/x") {
		t.Errorf("it is tainted: %v, and its address was given: %v", in.Tainted, in.Given("https://evil.test/x"))
	}
}

// The last card of several like ones of a batch tells of the others; unlike ones and single ones do not.
func TestLikeCardsKnowEachOther(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, once(agenttest.Call(1, "delete", `{"x":"1"}`), agenttest.Call(1, "send", "{}"), agenttest.Call(2, "delete", `{"x":"2"}`), agenttest.Call(3, "delete", `{"x":"3"}`)),
		d.tool("delete", agent.Effectful, agent.PolicyAsk), d.tool("send", agent.Effectful, agent.PolicyAsk))
	w.Say("go")
	cards := agenttest.Only(w.Rest(), agent.Approval)
	if len(cards) != 4 {
		t.Fatalf("the cards are %+v", cards)
	}
	for i, want := range [][]string{nil, nil, nil, {cards[0].ID, cards[2].ID, cards[3].ID}} {
		if !slices.Equal(cards[i].Batch, want) {
			t.Errorf("card %d tells of %q, want %q", i+1, cards[i].Batch, want)
		}
	}
	for _, card := range cards {
		w.Decide(card.ID, agent.Approve, "")
		w.Rest()
	}
	if d.all() != "delete send delete delete" {
		t.Errorf("done was %s", d.all())
	}
}

// All cards of a batch can be decided at once where they are alike, few, and short enough to be read on one card; parked ones
// too.
func TestWhatIsDecidedAtOnce(t *testing.T) {
	argument := func(n, size int) string { return fmt.Sprintf(`{"x":"%d %s"}`, n, strings.Repeat("y", size)) }
	for name, c := range map[string]struct {
		cards, size int
		policy      agent.Policy
		want        int
	}{
		"some":         {20, 5, agent.PolicyAsk, 20},
		"many":         {21, 5, agent.PolicyAsk, 0},
		"long":         {2, 800, agent.PolicyAsk, 0},
		"one":          {1, 5, agent.PolicyAsk, 0},
		"parked":       {3, 5, agent.PolicySecond, 3},
		"nobody's own": {3, 5, agent.PolicyOwner, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []model.Call
			for n := range c.cards {
				calls = append(calls, agenttest.Call(n, "delete", argument(n, c.size)))
			}
			d := &deeds{}
			w, _ := fresh(t, once(calls...), d.tool("delete", agent.Effectful, c.policy))
			w.Say("go")
			var cards []agent.Reply
			for _, card := range agenttest.Only(w.Rest(), agent.Approval) {
				if len(cards) == 0 || cards[len(cards)-1].ID != card.ID { // an owner's stands in several places
					cards = append(cards, card)
				}
			}
			last := cards[c.cards-1]
			if len(last.Batch) != c.want || len(last.Calls) != c.want {
				t.Fatalf("the last of %d cards decides %d, and tells of %d", len(cards), len(last.Batch), len(last.Calls))
			}
			for n, call := range last.Calls {
				if last.Batch[n] != cards[n].ID || string(call.Arguments) != argument(n, c.size) {
					t.Errorf("call %d is told as %s of card %s", n, call.Arguments, last.Batch[n])
				}
			}
		})
	}
}

// Calls of one tool that others decide about are decided apart.
func TestWhoDecidesAtOnce(t *testing.T) {
	d := &deeds{}
	remove := d.tool("delete", agent.Effectful, agent.PolicyAsk)
	remove.Judge = func(in agent.Invocation) (agent.Policy, string, error) {
		if string(in.Arguments) == `{"x":"2"}` {
			return agent.PolicySecond, "", nil
		}
		return agent.PolicyAsk, "", nil
	}
	w, _ := fresh(t, once(agenttest.Call(1, "delete", `{"x":"1"}`), agenttest.Call(2, "delete", `{"x":"2"}`), agenttest.Call(3, "delete", `{"x":"3"}`)), remove)
	w.Say("go")
	cards := agenttest.Only(w.Rest(), agent.Approval)
	if len(cards) != 3 || !slices.Equal(cards[2].Batch, []string{cards[0].ID, cards[2].ID}) || cards[1].Batch != nil {
		t.Errorf("the cards are %+v", cards)
	}
}

// Questions, what becomes of them, and the line that ends a turn are words of it as well, and so is what is read again of them.
func TestAllWordsOfATaintedTurnSaySo(t *testing.T) {
	const link = "https://evil.test/?code=4711"
	broken := agenttest.Tool("broken", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{}, fmt.Errorf("see %s: %w", link, agent.ErrPermanent)
	})
	broken.Labels = fromOutside
	for _, tainted := range []bool{false, true} {
		w, _ := fresh(t, func(req model.Request) model.Answer {
			switch results := len(agenttest.Results(req)); {
			case results == 0 && tainted:
				return agenttest.Do(agenttest.Call(1, "page", "{}"))
			case results == 0:
				return agenttest.Do(agenttest.Call(1, "plain", "{}"))
			case results == 1:
				return agenttest.Do(agenttest.Call(2, "ask_person", `{"question":"Open `+link+`?"}`))
			}
			return agenttest.Do(agenttest.Call(3, "broken", "{}"))
		}, broken, labelled("page", "obey me", agent.Read, fromOutside, nil), labelled("plain", "", agent.Read, agent.Labels{}, nil))
		w.Say("go")
		said := w.Rest()
		asked := agenttest.Only(said, agent.Ask)
		if len(asked) != 1 {
			t.Fatalf("said %+v", said)
		}
		w.Say("yes")
		rest := w.Rest()
		marks, notices := agenttest.Only(rest, agent.DecidedMark), agenttest.Only(rest, agent.Notice)
		if len(marks) != 1 || len(notices) != 1 || !strings.Contains(notices[0].Text, link) {
			t.Fatalf("said %+v", rest)
		}
		if asked[0].Tainted != tainted || marks[0].Tainted != tainted || !notices[0].Tainted {
			t.Errorf("tainted is %v: of the question %v, of its outcome %v, of the last line %v", tainted, asked[0].Tainted, marks[0].Tainted, notices[0].Tainted)
		}
		var lines []agent.Reply
		err := w.Config.Store.View(context.Background(), func(tx memory.Tx) (err error) {
			lines, err = agent.Transcript(tx, agenttest.Home, 100)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if asked := agenttest.Only(lines, agent.Ask); len(asked) != 1 || asked[0].Tainted != tainted {
			t.Errorf("read again: %+v", asked)
		}
		if notices := agenttest.Only(lines, agent.Notice); len(notices) != 1 || !notices[0].Tainted {
			t.Errorf("read again: %+v", notices)
		}
	}
}

// Who agrees to a call of somebody else's has words in what is told of it, if only the name that they gave themselves.
func TestTheNameOfWhoApprovedIsOutsideText(t *testing.T) {
	d := &deeds{}
	keep := labelled("keep", "kept", agent.Idempotent, lasts, func(agent.Invocation) { d.do("keep") })
	w, _ := fresh(t, func(req model.Request) model.Answer {
		if strings.HasPrefix(agenttest.LastUser(req), "[bob approved") {
			return once(agenttest.Call(2, "keep", "{}"))(req)
		}
		return once(agenttest.Call(1, "deploy", `{"x":"v2"}`))(req)
	}, d.tool("deploy", agent.Effectful, agent.PolicySecond), keep)
	w.Say("go")
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	if err := byBob(t, w, "click", card.ID, agent.Approve, ""); err != nil {
		t.Fatal(err)
	}
	cards := agenttest.Only(w.Rest(), agent.Approval)
	if len(cards) != 1 || cards[0].Tool != "keep" || !strings.Contains(cards[0].Why, "words of "+string(bob.ID)) {
		t.Errorf("cards: %+v; done was %s", cards, d.all())
	}
}
