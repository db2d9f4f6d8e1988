package heartbeat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
	"nudge/agent/tool/heartbeat"
	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/memory/memorytest"
	"nudge/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) memory.Store {
	store, err := bolt.Open(filepath.Join(memorytest.Dir(t), "nudge.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// arguments are those of create_heartbeat, with changes to good ones; nil takes a key away.
func arguments(t *testing.T, changes map[string]any) json.RawMessage {
	t.Helper()
	values := map[string]any{"name": "stretch", "cron": "0 9 * * *", "prompt": "Remind them to stretch.", "condition": map[string]any{"kind": "always"}}
	for key, value := range changes {
		values[key] = value
		if value == nil {
			delete(values, key)
		}
	}
	data, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func tools(store memory.Store, changed func()) (create, stop agent.Tool) {
	quiet, err := schedule.ParseQuiet("22:00-07:00")
	if err != nil {
		panic(err)
	}
	both := heartbeat.Tools(heartbeat.Config{Store: store, Changed: changed, Budget: schedule.Budget{Quiet: quiet}})
	return both[0], both[1]
}

// TestCard tells the next three instants in the person's own time, and what is unusual.
func TestCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock stands at midnight of 1 January 2000, UTC
		const each = "Each time, whatever is the case, I look and tell you what there is to tell."
		create, _ := tools(open(t), nil)
		for _, test := range []struct {
			changes map[string]any
			want    string
		}{
			{nil, "Every day at 09:00. The next times:\nSaturday 1 January 2000 at 09:00 CET\nSunday 2 January 2000 at 09:00 CET\nMonday 3 January 2000 at 09:00 CET\n" + each},
			{map[string]any{"timezone": "Asia/Tokyo"}, "Every day at 09:00. The next times:\nSunday 2 January 2000 at 09:00 JST (for you Sun 01:00 CET)\n" +
				"Monday 3 January 2000 at 09:00 JST (for you Mon 01:00 CET)\nTuesday 4 January 2000 at 09:00 JST (for you Tue 01:00 CET)\n" + each +
				"\nCareful: in your quiet hours (22:00-07:00) it says nothing, and you hear of it after them, in the digest. With \"break_quiet\": true it may speak then."},
			{map[string]any{"cron": "@every 90m", "prompt": nil, "text": "Stretch!", "break_quiet": true}, "Every 1h30m. The next times:\nSaturday 1 January 2000 at 02:30 CET\n" +
				"Saturday 1 January 2000 at 04:00 CET\nSaturday 1 January 2000 at 05:30 CET\nEach time, whatever is the case, the text is said as it is, and no model is asked.\n" +
				"It is said in your quiet hours (22:00-07:00) too."},
			{map[string]any{"cron": "*/7 9 1 * 1"}, "At cron */7 9 1 * 1. The next times:\nSaturday 1 January 2000 at 09:00 CET\nSaturday 1 January 2000 at 09:07 CET\nSaturday 1 January 2000 at 09:14 CET\n" + each +
				"\nCareful: the step 7 does not divide the minute field, so the last distance before it starts anew is shorter; @every 7m keeps the distance." +
				"\nCareful: it falls due on day 1 of the month OR on Mondays: either one is enough."},
			{map[string]any{"cron": "@at 2000-01-02T08:00", "prompt": nil, "text": "Call Bob."}, "Once, on Sunday 2 January 2000 at 08:00 CET.\nWhatever is the case then, the text is said as it is, and no model is asked."},
			{map[string]any{"cron": "0 9 * * 1-5", "condition": map[string]any{"kind": "file", "path": "build.red", "test": "exists"}}, "On Monday to Friday at 09:00. The next times:\n" +
				"Monday 3 January 2000 at 09:00 CET\nTuesday 4 January 2000 at 09:00 CET\nWednesday 5 January 2000 at 09:00 CET\n" +
				"The check, without a model: build.red is there. When that becomes so, I look and tell you what there is to tell."},
			{map[string]any{"cron": "0 9 * * *", "condition": map[string]any{"kind": "idle", "after": "7d", "on": "true"}}, "Every day at 09:00. The next times:\nSaturday 1 January 2000 at 09:00 CET\n" +
				"Sunday 2 January 2000 at 09:00 CET\nMonday 3 January 2000 at 09:00 CET\nThe check, without a model: you have said nothing for 7 days. At each of these times at which that is so, " +
				"I look and tell you what there is to tell."},
			{map[string]any{"cron": "never"}, "heartbeat.cron:"},
		} {
			got := create.Card(agent.Invocation{Person: agenttest.Ann, Arguments: arguments(t, test.changes)})
			if got != test.want && !(strings.HasSuffix(test.want, ":") && strings.HasPrefix(got, test.want)) {
				t.Errorf("%v:\n%s\nwant\n%s", test.changes, got, test.want)
			}
		}
	})
}

// TestAlwaysAsked shows a card for each heartbeat, whatever the config says of other tools.
func TestAlwaysAsked(t *testing.T) {
	create, stop := tools(open(t), nil)
	policy, _, err := create.Judge(agent.Invocation{Person: agenttest.Ann, Arguments: arguments(t, nil)})
	if policy != agent.PolicyAsk || err != nil {
		t.Errorf("policy %s, error %v", policy, err)
	}
	if !create.EachTime {
		t.Error("a rule could make heartbeats without a card")
	}
	if create.Place != agent.WithPerson {
		t.Error("a heartbeat could make heartbeats")
	}
	if stop.Policy != "" || stop.Place == agent.InHeartbeat {
		t.Errorf("stop_heartbeat is %+v", stop.Spec)
	}
}

// TestRefused says in words what is wrong, before a card is shown and when the call runs.
func TestRefused(t *testing.T) {
	store := open(t)
	create, _ := tools(store, nil)
	schema, err := agent.CompileSchema(create.Schema)
	if err != nil {
		t.Fatal(err)
	}
	file := func(path, test string) map[string]any {
		return map[string]any{"condition": map[string]any{"kind": "file", "path": path, "test": test}}
	}
	for _, test := range []struct {
		changes map[string]any
		want    string
	}{
		{map[string]any{"cron": "61 9 * * *"}, "heartbeat.cron"},
		{map[string]any{"cron": ""}, "heartbeat.cron"},
		{map[string]any{"cron": "0 9 30 2 *"}, "heartbeat.cron"},
		{map[string]any{"timezone": "Mars/Olympus"}, "heartbeat.timezone"},
		{map[string]any{"timezone": "../../etc/passwd"}, "heartbeat.timezone"},
		{map[string]any{"prompt": " \n"}, "heartbeat.prompt"},
		{map[string]any{"prompt": nil}, "heartbeat.prompt"},
		{map[string]any{"text": "both"}, "heartbeat.text"},
		{map[string]any{"cron": "@at 1999-01-01T08:00"}, "cron: Friday 1 January 1999 at 08:00 CET is past, since it is "},
		{map[string]any{"cron": "@at tomorrow"}, "heartbeat.cron"},
		{map[string]any{"cron": "@at"}, "heartbeat.cron"},
		{map[string]any{"cron": "@at 2998-01-01T08:00", "until": "2997-01-01T00:00:00Z"}, "until is before the only time"},
		{map[string]any{"condition": map[string]any{"kind": "idle"}}, "heartbeat.condition.after"},
		{map[string]any{"until": "1999-01-01T00:00:00Z"}, "until must be an instant in the future"},
		{map[string]any{"until": "tomorrow"}, "until"},
		{map[string]any{"until": "2999-13-01T00:00:00Z"}, "until"},
		{map[string]any{"condition": nil}, "condition"},
		{map[string]any{"condition": map[string]any{"kind": "command", "run": []string{"rm"}}}, "condition"},
		{map[string]any{"condition": map[string]any{"kind": "http", "url": "http://x.test"}}, "condition"},
		{map[string]any{"condition": map[string]any{"kind": "always", "path": "x"}}, "does not belong"},
		{map[string]any{"condition": map[string]any{"kind": "file"}}, "condition.path must name a file in the workspace"},
		{file("", "exists"), "condition.path must name a file in the workspace"},
		{file("/etc/passwd", "exists"), "condition.path must name a file in the workspace"},
		{file("../secret", "exists"), "condition.path must name a file in the workspace"},
		{file("a/../../secret", "exists"), "condition.path must name a file in the workspace"},
		{file("a.txt", "burns"), "test"},
		{map[string]any{"name": "Bad Name"}, "name"},
		{map[string]any{"name": "../x"}, "name"},
		{map[string]any{"name": ""}, "name"},
		{map[string]any{"for": []string{"slack:T1:U2"}}, "for"},
	} {
		data := arguments(t, test.changes)
		checked, err := schema.Check(string(data))
		if err == nil {
			in := agent.Invocation{Person: agenttest.Ann, Arguments: checked}
			_, _, err = create.Judge(in)
			if result, ran := create.Run(context.Background(), in); ran == nil {
				t.Errorf("%s ran: %+v", data, result)
			}
		}
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", data, err, test.want)
		}
	}
}

// script makes the call that is said as "NAME {arguments}".
func script(req model.Request) model.Answer {
	said := agenttest.LastUser(req)
	said = said[strings.LastIndexByte(said, '\n')+1:]
	name, rest, isCall := strings.Cut(said, " {")
	if !isCall {
		return agenttest.Say("fine")
	}
	if result, done := agenttest.Results(req)[name+"-1"]; done {
		return agenttest.Say(result)
	}
	return agenttest.Do(agenttest.Call(1, name, "{"+rest))
}

// world is an agent with the tools, and how often they said that something has changed.
func world(t *testing.T, store memory.Store) (*agenttest.World, *int) {
	changed := new(int)
	return agenttest.Start(t, agent.Config{
		Store: store, Model: &agenttest.Model{T: t, Script: script}, Spec: agent.ModelSpec{MaxOutput: 1000},
		Tools: heartbeat.Tools(heartbeat.Config{Store: store, Changed: func() { *changed++ }}),
	}), changed
}

// final is the last answer.
func final(t *testing.T, said []agent.Reply) string {
	t.Helper()
	finals := agenttest.Only(said, agent.Final)
	if len(finals) == 0 {
		t.Fatalf("no answer:\n%s", agenttest.Lines(said))
	}
	return finals[len(finals)-1].Text
}

func list(t *testing.T, store memory.Store) []schedule.Heartbeat {
	t.Helper()
	var all []schedule.Heartbeat
	err := store.View(context.Background(), func(tx memory.Tx) (err error) {
		all, err = schedule.List(tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestMadeAndEnded through an agent: nothing before the card is approved, then just what the card says.
func TestMadeAndEnded(t *testing.T) {
	store := open(t)
	w, changed := world(t, store)
	w.Say("create_heartbeat " + string(arguments(t, map[string]any{"until": "2999-01-01T00:00:00Z"})))
	cards := agenttest.Only(w.Rest(), agent.Approval)
	if len(cards) != 1 || !strings.Contains(cards[0].Text, ". The next times:\n") || len(list(t, store)) != 0 || *changed != 0 {
		t.Fatalf("before the approval: cards %+v, heartbeats %v", cards, list(t, store))
	}
	w.Decide(cards[0].ID, agent.Approve, "")
	if got := final(t, w.Rest()); !strings.HasPrefix(got, "heartbeat stretch is made; the next times are ") {
		t.Errorf("the result is %q", got)
	}
	all := list(t, store)
	if len(all) != 1 || *changed != 1 {
		t.Fatalf("heartbeats: %+v, changed %d times", all, *changed)
	}
	got := all[0]
	if got.By != "terminal:ann" || len(got.For) != 1 || got.For[0] != "terminal:ann" || got.Zone != "Europe/Berlin" || got.Until.Year() != 2999 {
		t.Errorf("the heartbeat is %+v", got)
	}
	w.Say(`stop_heartbeat {"name":"stretch"}`)
	if got := final(t, w.Rest()); got != "heartbeat stretch has ended" || list(t, store)[0].Ended == "" || *changed != 2 {
		t.Errorf("%q, %+v, changed %d times", got, list(t, store), *changed)
	}
	w.Say(`stop_heartbeat {"name":"stretch"} `)
	if got := final(t, w.Rest()); !strings.Contains(got, `there is no tool "stop_heartbeat"`) { // with nothing left to end it is not offered
		t.Errorf("ending it again: %q", got)
	}
}

// TestMadeOfWordsOfOthers makes one in a turn in which text of strangers is in view.
func TestMadeOfWordsOfOthers(t *testing.T) {
	for _, tainted := range []bool{false, true} {
		store := open(t)
		create, _ := tools(store, nil)
		made, err := create.Run(context.Background(), agent.Invocation{Person: agenttest.Ann, Tainted: tainted, Arguments: arguments(t, nil)})
		if err == nil {
			err = store.Update(context.Background(), made.Commit)
		}
		if got := list(t, store); err != nil || len(got) != 1 || got[0].Outside != tainted {
			t.Errorf("tainted: %v: %+v, %v", tainted, got, err)
		}
	}
}

// TestMadeOfPrivateData makes one when private data is in view, of which there may be something in the prompt: then nothing that it
// says is free to go anywhere.
func TestMadeOfPrivateData(t *testing.T) {
	for _, private := range []bool{false, true} {
		store := open(t)
		look := agent.Tool{
			Spec: agent.Spec{Name: "look", Schema: json.RawMessage(`{"type":"object"}`), Effect: agent.Read, Labels: agent.Labels{Private: private}},
			Run: func(context.Context, agent.Invocation) (agent.Result, error) {
				return agent.Result{Text: "seen"}, nil
			},
		}
		w := agenttest.Start(t, agent.Config{
			Store: store, Model: &agenttest.Model{T: t, Script: script}, Spec: agent.ModelSpec{MaxOutput: 1000},
			Tools: append(heartbeat.Tools(heartbeat.Config{Store: store, Changed: func() {}}), look),
		})
		w.Say("look {}")
		w.Rest()
		w.Say("create_heartbeat " + string(arguments(t, nil)))
		w.Decide(agenttest.Only(w.Rest(), agent.Approval)[0].ID, agent.Approve, "")
		w.Rest()
		if got := list(t, store); len(got) != 1 || got[0].Private != private || got[0].Outside {
			t.Errorf("private data in view: %v: %+v", private, got)
		}
	}
}

// TestDeniedMakesNone.
func TestDeniedMakesNone(t *testing.T) {
	store := open(t)
	w, changed := world(t, store)
	w.Say("create_heartbeat " + string(arguments(t, nil)))
	w.Decide(agenttest.Only(w.Rest(), agent.Approval)[0].ID, agent.Deny, "too often")
	if got := final(t, w.Rest()); !strings.HasSuffix(got, "too often") || len(list(t, store)) != 0 || *changed != 0 {
		t.Errorf("%q, %v", got, list(t, store))
	}
}

// TestOnlyTheirOwn can be ended by a person: not another's, not one of the config.
func TestOnlyTheirOwn(t *testing.T) {
	store := open(t)
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		for name, by := range map[string]string{"mine": "terminal:ann", "bobs": "slack:T1:UBOB", "configs": ""} {
			h := schedule.Heartbeat{
				Name: name, Cron: "0 9 * * *", For: []string{"terminal:ann"}, Prompt: "Do.", By: by, Condition: schedule.Spec{Kind: schedule.KindAlways},
			}
			if err := schedule.Save(tx, h, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := world(t, store)
	for _, name := range []string{"bobs", "configs", "nothing", "", "MINE"} {
		w.Say(`stop_heartbeat {"name":"` + name + `"}`)
		if got := final(t, w.Rest()); got != `there is no heartbeat "`+name+`" of theirs; theirs are mine` {
			t.Errorf("ending %q: %q", name, got)
		}
	}
	for _, h := range list(t, store) {
		if h.Ended != "" {
			t.Errorf("%s has ended", h.Name)
		}
	}
}

// TestReplacing one's own heartbeat is said on the card.
func TestReplacing(t *testing.T) {
	store := open(t)
	w, _ := world(t, store)
	for i, cron := range []string{"0 9 * * *", "0 10 * * *"} {
		w.Say("create_heartbeat " + string(arguments(t, map[string]any{"cron": cron})))
		card := agenttest.Only(w.Rest(), agent.Approval)[0]
		if says := strings.Contains(card.Text, "It replaces the heartbeat of that name, which comes every day at 09:00: Remind them to stretch."); says != (i == 1) {
			t.Errorf("card %d says %q", i, card.Text)
		}
		w.Decide(card.ID, agent.Approve, "")
		w.Rest()
	}
	if all := list(t, store); len(all) != 1 || all[0].Cron != "0 10 * * *" {
		t.Errorf("the heartbeats are %+v", all)
	}
}

// TestANameTakenMeanwhile is refused in words after the approval, and the session goes on.
func TestANameTakenMeanwhile(t *testing.T) {
	store := open(t)
	w, _ := world(t, store)
	w.Say("create_heartbeat " + string(arguments(t, nil)))
	card := agenttest.Only(w.Rest(), agent.Approval)[0]
	takeName(t, store)
	w.Decide(card.ID, agent.Approve, "")
	if got := final(t, w.Rest()); !strings.Contains(got, "take another name") {
		t.Errorf("the answer is %q", got)
	}
}

// takeName lets Bob make a heartbeat of the name that Ann wants.
func takeName(t *testing.T, store memory.Store) {
	t.Helper()
	err := store.Update(context.Background(), func(tx memory.Tx) error {
		return schedule.Save(tx, schedule.Heartbeat{
			Name: "stretch", Cron: "0 9 * * *", For: []string{"slack:T1:UBOB"}, Prompt: "Do.", By: "slack:T1:UBOB", Condition: schedule.Spec{Kind: schedule.KindAlways},
		}, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestANameThatIsTaken is refused before anybody is asked.
func TestANameThatIsTaken(t *testing.T) {
	store := open(t)
	takeName(t, store)
	w, _ := world(t, store)
	w.Say("create_heartbeat " + string(arguments(t, nil)))
	said := w.Rest()
	if cards := agenttest.Only(said, agent.Approval); len(cards) > 0 {
		t.Errorf("a card was shown: %+v", cards)
	}
	if got := final(t, said); !strings.Contains(got, "take another name") {
		t.Errorf("the answer is %q", got)
	}
	if all := list(t, store); len(all) != 1 || all[0].By != "slack:T1:UBOB" {
		t.Errorf("the heartbeats are %+v", all)
	}
}

// TestSoManyAtOnce has Ann ask for more heartbeats than one person may have.
func TestSoManyAtOnce(t *testing.T) {
	store := open(t)
	create, _ := tools(store, nil)
	save := func(by string, n int) {
		t.Helper()
		err := store.Update(context.Background(), func(tx memory.Tx) error {
			return schedule.Save(tx, schedule.Heartbeat{
				Name: fmt.Sprint("h", n), Cron: "0 9 * * *", For: []string{by}, Prompt: "Do.", By: by, Condition: schedule.Spec{Kind: schedule.KindAlways},
			}, time.Now())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	asks := func(name string) error {
		_, _, err := create.Judge(agent.Invocation{Person: agenttest.Ann, Arguments: arguments(t, map[string]any{"name": name})})
		return err
	}
	for n := range 100 {
		if err := asks("one-more"); err != nil {
			t.Fatalf("of %d: %v", n, err)
		}
		save(string(agenttest.Ann.ID), n)
	}
	save("slack:T1:UBOB", 100)
	if err := asks("one-more"); err == nil || !strings.Contains(err.Error(), "100 heartbeats") {
		t.Errorf("one more: %v", err)
	}
	if err := asks("h7"); err != nil {
		t.Errorf("in the place of one: %v", err)
	}
	err := store.Update(context.Background(), func(tx memory.Tx) error { return schedule.End(tx, "h7", "enough", time.Now()) })
	if err != nil || asks("one-more") != nil {
		t.Errorf("after one has ended: %v", errors.Join(err, asks("one-more")))
	}
}
