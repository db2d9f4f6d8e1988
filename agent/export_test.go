package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/memory"
)

func exportSession(t testing.TB, store memory.Store, session string) (kept agent.SessionExport) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) (err error) {
		kept, err = agent.ExportSession(tx, session)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// exportPerson gives the export of a person whose own session is the given one, and its JSON.
func exportPerson(t testing.TB, store memory.Store, id agent.PersonID, own string) (kept agent.PersonExport, document string) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) (err error) {
		kept, err = agent.ExportPerson(tx, id, func(session string) bool { return session == own })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	return kept, string(data)
}

// short are exported lines in short.
func short(lines []agent.ExportedLine) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s", l.Kind)
		for _, part := range []string{string(l.By), l.Tool, string(l.Arguments), string(l.Decision), string(l.Reason), l.Text} {
			if part != "" {
				fmt.Fprintf(&b, " %s", part)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestExportSession(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, once(agenttest.Call(1, "look", `{"x":"<b>"}`), agenttest.Call(2, "deploy", `{"x":"v2"}`)),
		d.tool("look", agent.Read, ""), d.tool("deploy", agent.Effectful, agent.PolicyAsk))
	w.Say("go\n# no heading\n```")
	w.Decide(agenttest.Only(w.Rest(), agent.Approval)[0].ID, agent.Deny, "too risky")
	w.Rest()
	w.Kill()
	err := w.Config.Store.Update(context.Background(), func(tx memory.Tx) error {
		_, err := tx.Inbox().Put(agenttest.Home, []byte(`{"provenance":"human","from":{"id":"terminal:ann"},"text":"not taken up"}`))
		return errors.Join(err, agent.Send(tx, agent.Reply{Kind: agent.Final, Session: agenttest.Home, Text: "not delivered", Address: agenttest.Home}))
	})
	if err != nil {
		t.Fatal(err)
	}
	kept := exportSession(t, w.Config.Store, agenttest.Home)
	want := "said terminal:ann go\n# no heading\n```\ncall look {\"x\":\"<b>\"}\ncall deploy {\"x\":\"v2\"}\nasked deploy {\"x\":\"v2\"}\n" +
		"result look look done with {\"x\":\"<b>\"}\ndecided terminal:ann deploy deny too risky\n" +
		"result deploy not run: ann denied this call: too risky\nanswer done\nended completed\n"
	if got := short(kept.Lines); got != want {
		t.Errorf("the lines are\n%s\nwant\n%s", got, want)
	}
	if got := short(kept.Mail) + short(kept.Unsaid); got != "said terminal:ann not taken up\nfinal not delivered\n" {
		t.Errorf("on their way are\n%s", got)
	}
	if kept.Session != agenttest.Home || kept.Began.IsZero() || kept.LastUsed.Before(kept.Began) || kept.OpenTurn != "" {
		t.Errorf("the session is %+v", kept)
	}
	text := kept.Markdown(time.UTC)
	for _, part := range []string{"# Session " + agenttest.Home, "> # no heading\n> ```", "**decided** terminal:ann deploy deny (card ", "> too risky", "**Not taken up yet**", "> not delivered"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	if strings.Contains(text, "\n# no heading") {
		t.Errorf("what was said looks like a part of the document:\n%s", text)
	}
	err = w.Config.Store.View(context.Background(), func(tx memory.Tx) error {
		for _, name := range []string{"", "nobody", strings.Repeat("x", 2000)} {
			if kept, err := agent.ExportSession(tx, name); !errors.Is(err, agent.ErrUnknownSession) || kept.Session != "" {
				t.Errorf("%.20q gave %+v, %v", name, kept, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Fences in what tools gave do not end those around it, and arguments that are no JSON are a text.
func TestExportOfOddWords(t *testing.T) {
	odd := agenttest.Tool("odd", agent.Read, "", func(context.Context, agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: "```\n# no heading\n````"}, nil
	})
	w, _ := fresh(t, once(model.Call{ID: "c1", Name: "odd", Arguments: "{}"}, model.Call{ID: "c2", Name: "odd", Arguments: "{\"x\": <no JSON"}), odd)
	w.Say("go")
	w.Rest()
	kept := exportSession(t, w.Config.Store, agenttest.Home)
	if _, err := json.Marshal(kept); err != nil {
		t.Errorf("it cannot be written: %v", err)
	}
	if lines := short(kept.Lines); !strings.Contains(lines, `call odd "{\"x\": <no JSON"`) {
		t.Errorf("the lines are\n%s", lines)
	}
	if text := kept.Markdown(time.UTC); !strings.Contains(text, "\n`````\n```\n# no heading\n````\n`````\n") {
		t.Errorf("the text is\n%s", text)
	}
}

// sharedWorld is a thread of a channel in which Ann and Bob, who is an owner, speak while a tool runs.
func sharedWorld(t testing.TB) (w *agenttest.World, say func(who agent.Person, text string, files ...agent.File)) {
	script := func(req model.Request) model.Answer {
		if _, done := agenttest.Results(req)["wait-1"]; done || strings.Contains(agenttest.LastUser(req), "hush") {
			return agenttest.Say("done")
		}
		return agenttest.Do(agenttest.Call(1, "wait", `{}`))
	}
	d := &deeds{}
	w = agenttest.Start(t, agent.Config{
		Store: open(t), Model: &agenttest.Model{T: t, Script: script, Latency: time.Second}, Spec: agent.ModelSpec{MaxOutput: 1000},
		Tools: []agent.Tool{d.slow("wait", agent.Read, time.Second)}, Owners: []agent.PersonID{bobInSlack.ID},
	})
	n := 0
	return w, func(who agent.Person, text string, files ...agent.File) {
		n++
		key := fmt.Sprint("said-", n)
		m := agent.Message{Keys: []string{key}, ID: key, Provenance: agent.Human, From: who, Text: text, Files: files, Address: thread}
		if _, err := w.Pass(m); err != nil {
			t.Fatal(err)
		}
	}
}

const thread = "slack:T1:C1:1796032800.000100"

var annInSlack, bobInSlack = agent.Person{ID: "slack:T1:U1", Name: "ann"}, agent.Person{ID: "slack:T1:U2", Name: "bob"}

// Of a shared conversation everybody gets their own words, with time and place, and nobody else's.
func TestExportOfASharedConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, say := sharedWorld(t)
		say(annInSlack, "ann begins\n\nbob: with these words")
		time.Sleep(500 * time.Millisecond)
		say(annInSlack, "ann one\n\nof two parts")
		say(bobInSlack, "bob joins")
		say(annInSlack, "ann two: hush")
		w.Rest()
		say(bobInSlack, "hush, bob begins")
		w.Rest()
		w.Kill()
		err := w.Config.Store.Update(context.Background(), func(tx memory.Tx) error {
			_, err := tx.Inbox().Put(thread, []byte(`{"provenance":"human","from":{"id":"slack:T1:U1"},"text":"ann waits"}`))
			_, err2 := tx.Inbox().Put(thread, []byte(`{"provenance":"human","from":{"id":"slack:T1:U2"},"text":"bob joins later"}`))
			return errors.Join(err, err2)
		})
		if err != nil {
			t.Fatal(err)
		}
		kept, document := exportPerson(t, w.Config.Store, annInSlack.ID, "none")
		if got := short(kept.Mail); got != "said slack:T1:U1 ann waits\n" || kept.Mail[0].Session != thread {
			t.Errorf("what waits of Ann's is\n%s", got)
		}
		want := "said slack:T1:U1 ann begins\n\nbob: with these words\nsaid slack:T1:U1 ann one\n\nof two parts\nsaid slack:T1:U1 ann two: hush\n"
		if got := short(kept.Said); got != want {
			t.Errorf("Ann said\n%s", got)
		}
		for _, said := range kept.Said {
			if said.Session != thread || said.At.IsZero() {
				t.Errorf("it was said at %s in %q", said.At, said.Session)
			}
		}
		for _, foreign := range []string{"bob joins", "bob begins", string(bobInSlack.ID), "done"} {
			if strings.Contains(document, foreign) {
				t.Errorf("%q is in Ann's export: %s", foreign, document)
			}
		}
		if kept, _ := exportPerson(t, w.Config.Store, bobInSlack.ID, "none"); short(kept.Said) != "said slack:T1:U2 hush, bob begins\n" {
			t.Errorf("Bob said\n%s", short(kept.Said))
		}
	})
}

// Files that came with words are told where the words are, also of a correction that was joined with another's.
func TestExportOfSharedWordsWithFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, say := sharedWorld(t)
		file := func(name string) agent.File { return agent.File{ID: "F1", Name: name} }
		say(annInSlack, "go", file("one"))
		time.Sleep(3 * time.Second / 2)
		say(bobInSlack, "bob joins", file("bob's"))
		say(annInSlack, "hush", file("two"))
		say(annInSlack, "", file("three"))
		time.Sleep(time.Minute)
		w.Rest()
		kept, document := exportPerson(t, w.Config.Store, annInSlack.ID, "none")
		for _, name := range []string{"one", "two", "three"} {
			if !strings.Contains(short(kept.Said), fmt.Sprintf("[attached: %q", name)) {
				t.Errorf("Ann's file %s is not in\n%s", name, short(kept.Said))
			}
		}
		if strings.Contains(document, "bob's") {
			t.Errorf("Bob's file is in Ann's export: %s", document)
		}
	})
}

// Whatever people say in whatever order, nobody's export has words of another's.
func TestExportNeverHasForeignWords(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type saying struct {
			Who, Text int
			File      bool
			Wait      time.Duration
		}
		texts := []string{"%s", "%s\n\n%s", "bob: %s", "ann: %s\n\nbob: %s", "%s hush", "\n\n%s", "%s\n\n"}
		sayings := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) saying {
			return saying{rapid.IntRange(0, 1).Draw(rt, "who"), rapid.IntRange(0, len(texts)-1).Draw(rt, "text"), rapid.Bool().Draw(rt, "file"),
				time.Duration(rapid.IntRange(0, 4).Draw(rt, "half seconds")) * time.Second / 2}
		}), 1, 10).Draw(rt, "sayings")
		inBubble(t, rt, func(f *faults) {
			w, say := sharedWorld(f)
			defer w.Kill()
			people := []agent.Person{annInSlack, bobInSlack}
			for _, s := range sayings {
				var files []agent.File
				if s.File {
					files = []agent.File{{ID: "F1", Name: "<" + people[s.Who].Name + ">"}}
				}
				say(people[s.Who], strings.ReplaceAll(texts[s.Text], "%s", "<"+people[s.Who].Name+">"), files...)
				time.Sleep(s.Wait)
			}
			w.Rest()
			for i, person := range people {
				kept, document := exportPerson(f, w.Config.Store, person.ID, "none")
				if other := people[1-i]; strings.Contains(document, "u003c"+other.Name+`\u003e`) || strings.Contains(document, string(other.ID)) {
					f.Errorf("the export of %s has words of %s: %s", person.Name, other.Name, short(kept.Said))
				}
			}
		})
	})
}

func TestExportPerson(t *testing.T) {
	d := &deeds{}
	w, _ := fresh(t, once(agenttest.Call(1, "deploy", `{"x":"v2"}`)), d.tool("deploy", agent.Effectful, agent.PolicySecond))
	w.Config.Spec.PriceIn, w.Config.Spec.PriceOut = agent.PerMillion(1000), agent.PerMillion(1000)
	w.Restart()
	w.Say("go")
	card := agenttest.Only(w.Rest(), agent.Approval)[0].ID
	decided := agent.Message{
		Keys: []string{"bob"}, Provenance: agent.Decided, From: agent.Person{ID: "terminal:bob", Name: "bob"}, Address: "terminal:local:dm:bob",
		Decision: &agent.Decision{Card: card, Verdict: agent.Deny, Text: "bob's reason"},
	}
	if _, err := w.Pass(decided); err != nil {
		t.Fatal(err)
	}
	w.Rest()
	kept, document := exportPerson(t, w.Config.Store, agenttest.Ann.ID, agenttest.Home)
	if kept.Name != "ann" || kept.Zone != "Europe/Berlin" || kept.Home != agenttest.Home || len(kept.Sessions) != 1 || len(kept.Said) != 0 {
		t.Errorf("of Ann %s is kept", document)
	}
	if len(kept.Cards) != 1 || !kept.Cards[0].Yours || kept.Cards[0].By != "terminal:bob" || kept.Cards[0].Decision != agent.Deny || kept.Cards[0].Session != agenttest.Home {
		t.Errorf("Ann's cards are %+v", kept.Cards)
	}
	if len(kept.Spent) != 1 || kept.Spent[0].USD <= 0 || len(kept.Spent[0].Day) != len(time.DateOnly) {
		t.Errorf("Ann spent %+v", kept.Spent)
	}
	text := kept.Markdown(time.UTC)
	for _, part := range []string{"# What is kept of terminal:ann", "- Name: ann", "- Spent on 2", "\n## Session " + agenttest.Home, "deny by terminal:bob", "> bob's reason"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	kept, document = exportPerson(t, w.Config.Store, "terminal:bob", "terminal:local:dm:bob")
	if len(kept.Cards) != 1 || kept.Cards[0].Yours || kept.Cards[0].Text != "bob's reason" || strings.Contains(document, "ann") {
		t.Errorf("of Bob %s is kept", document)
	}
	for _, id := range []agent.PersonID{"terminal:an", "terminal:ann/2026", "nobody"} {
		if kept, document := exportPerson(t, w.Config.Store, id, "none"); !kept.Empty() {
			t.Errorf("of %s %s is kept", id, document)
		}
	}
}
