package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/memory"
)

// problems are what a check of a store finds.
func problems(t *testing.T, store memory.Store) (found []string) {
	t.Helper()
	err := store.View(context.Background(), func(tx memory.Tx) error {
		return agent.Check(tx, func(problem string) { found = append(found, problem) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// lived is a store with a settled turn, and one that waits for a card.
func lived(t *testing.T) (w *agenttest.World, waiting string) {
	t.Helper()
	d := &deeds{}
	w, _ = fresh(t, once(agenttest.Call(1, "deploy", `{"x":"v2"}`), agenttest.Call(2, "look", `{}`)),
		d.tool("deploy", agent.Effectful, agent.PolicyAsk), d.tool("look", agent.Read, ""))
	w.Say("go")
	w.Decide(agenttest.Only(w.Rest(), agent.Approval)[0].ID, agent.Approve, "")
	w.Rest()
	w.Config.Model.(*agenttest.Model).Script = once(agenttest.Call(3, "deploy", `{"x":"v3"}`), agenttest.Call(4, "look", `{}`))
	w.Say("once more")
	waiting = agenttest.Only(w.Rest(), agent.Approval)[0].ID
	w.Kill()
	if found := problems(t, w.Config.Store); len(found) > 0 {
		t.Fatalf("of a store without fault: %q", found)
	}
	return w, waiting
}

func TestCheckFindsWhatDoesNotAgree(t *testing.T) {
	const session = agenttest.Home
	first := func(tx memory.Tx, table string) (key string) {
		_ = tx.Table(table).Scan("", func(k string, _ []byte) error { key = k; return memory.ErrStop })
		return key
	}
	remove := func(table string) func(memory.Tx) error {
		return func(tx memory.Tx) error { return tx.Table(table).Delete(first(tx, table)) }
	}
	put := func(table, key, value string) func(memory.Tx) error {
		return func(tx memory.Tx) error { return tx.Table(table).Put(key, []byte(value)) }
	}
	line := func(kind, data string) func(memory.Tx) error {
		return func(tx memory.Tx) error {
			_, err := tx.Journal().Append(session, memory.Entry{Kind: kind, At: time.Unix(1, 0), Data: []byte(data)})
			return err
		}
	}
	timer := func(tx memory.Tx) (row memory.DueRow) {
		_ = tx.Due().Scan(func(r memory.DueRow) error { row = r; return memory.ErrStop })
		return row
	}
	cases := map[string]struct {
		change func(memory.Tx) error
		want   string
	}{
		"no open row":          {remove("open"), `table open has no row for "` + session},
		"another open turn":    {put("open", session, "tother"), `table open says "tother"`},
		"open in vain":         {put("open", "nobody", "t1"), `table open has a row for "nobody"`},
		"owed in vain":         {put("owed", session, ""), "owes no call"},
		"no card row":          {remove("card"), "table card has no row"},
		"card row in vain":     {put("card", "none", session), "was never asked"},
		"card row elsewhere":   {func(tx memory.Tx) error { return put("card", first(tx, "card"), "nobody")(tx) }, `table card says "nobody"`},
		"not listed":           {remove("waiting"), "waits and is not listed"},
		"listed in vain":       {put("waiting", "none", `{}`), "card none is listed as waiting"},
		"listed, no JSON":      {func(tx memory.Tx) error { return put("waiting", first(tx, "waiting"), `{`)(tx) }, "nothing that waits can be listed"},
		"no time-out":          {func(tx memory.Tx) error { return tx.Due().Remove(timer(tx).Key) }, "has no time-out"},
		"time-out in vain":     {func(tx memory.Tx) error { return tx.Due().Put(memory.DueRow{Key: "timer/card/none"}) }, "a time-out is set for card none"},
		"time-out moved":       {func(tx memory.Tx) error { r := timer(tx); r.At = r.At.Add(time.Hour); return tx.Due().Put(r) }, "and it expires at"},
		"time-out elsewhere":   {func(tx memory.Tx) error { r := timer(tx); r.Data = []byte("nobody"); return tx.Due().Put(r) }, `in session "nobody"`},
		"a second result":      {line("tool_result", `{"call":"look-4","tool":"look"}`), "call look-4 has a result that no answer has asked for, or a second one"},
		"a call out of air":    {line("tool_call", `{"call":"none","tool":"look"}`), "call none begins, which no answer has asked for"},
		"words before results": {line("message", `{"text":"words"}`), "something else is said before call deploy-3 has a result"},
		"an answer too early":  {line("model_call", `{"text":"words"}`), "the model answers again before call deploy-3"},
		"settled too early":    {line("run_stopped", `{"reason":"completed"}`), "the turn is settled before call deploy-3"},
		"a turn in a turn":     {line("turn_started", `{"turn":"tnew"}`), "turn tnew begins before turn"},
		"calls without turn": {func(tx memory.Tx) error {
			return errors.Join(line("run_stopped", `{"reason":"completed"}`)(tx), line("model_call", `{"calls":[{"ID":"c"}]}`)(tx))
		}, "has asked for calls outside a turn"},
		"an unknown card":      {line("approval_decided", `{"card":"none","verdict":"approve"}`), "card none is decided, which was never asked"},
		"no JSON":              {line("message", `{`), "the session cannot be loaded"},
		"checkpoint in a turn": {line("checkpoint", `{}`), "a checkpoint is made in turn"},
		"checkpoint nowhere":   {put("checkpoint", session, "12345678"), "table checkpoint has a row"},
		"mail no JSON":         {func(tx memory.Tx) error { _, err := tx.Inbox().Put(session, []byte("{")); return err }, "the session stops at it"},
		"parcel no JSON":       {func(tx memory.Tx) error { _, err := tx.Outbox().Put(session, []byte("{")); return err }, "it is never said"},
		"person no JSON":       {put("person", "terminal:ann", "{"), "what is known of terminal:ann cannot be read"},
		"saved, not by time":   {put("saved", "s/1", time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z")+"text"), "is missing in the order of time"},
		"saved cut off":        {put("saved", "s/1", "short"), "is cut off"},
		"saved by time only":   {put("saved by time", "2006/s/1", ""), "has a row for s/1 where it should not"},
		"saved, not counted":   {put("saved by time", "2006/s/1", "abc"), "is not counted for its person"},
		"counted, not saved":   {put("saved by person", "abc/2006/s/1", "5"), "is counted for a person under abc/2006/s/1, which is none"},
		"saved by time alone":  {put("saved by time", "2006", ""), "that names none"},
	}
	w, waiting := lived(t)
	for name, c := range cases {
		// Each is taken back: an error at the end of an update keeps nothing of it.
		var found []string
		undo := errors.New("take it back")
		err := w.Config.Store.Update(context.Background(), func(tx memory.Tx) error {
			found = nil
			if err := c.change(tx); err != nil {
				return err
			}
			return errors.Join(undo, agent.Check(tx, func(problem string) { found = append(found, problem) }))
		})
		if !errors.Is(err, undo) || !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%s: %q, %v; want %q", name, found, err, c.want)
		}
		for _, problem := range found {
			if strings.Contains(problem, "\n") || !strings.Contains(problem, "; ") {
				t.Errorf("%s: %q", name, problem)
			}
		}
	}
	decided := func(tx memory.Tx) error {
		decision := fmt.Sprintf(`{"card":%q,"call":"deploy-3","verdict":"deny"}`, waiting)
		return errors.Join(line("approval_decided", decision)(tx), line("approval_decided", decision)(tx))
	}
	if err := w.Config.Store.Update(context.Background(), decided); err != nil {
		t.Fatal(err)
	}
	found := strings.Join(problems(t, w.Config.Store), "\n")
	for _, want := range []string{"is decided a second time", "is listed as waiting", "a time-out is set for card " + waiting} {
		if !strings.Contains(found, want) {
			t.Errorf("a decision that nothing else knows of: no %q in\n%s", want, found)
		}
	}
}

// A time-out that has fallen due is mail for a moment, and a checkpoint is where loading begins: neither is a problem.
func TestCheckKnowsWhatIsOnItsWay(t *testing.T) {
	w, _ := lived(t)
	err := w.Config.Store.Update(context.Background(), func(tx memory.Tx) error {
		return tx.Due().Scan(func(row memory.DueRow) error {
			_, err := agent.Expired(tx, row)
			return errors.Join(err, tx.Due().Remove(row.Key))
		})
	})
	if found := problems(t, w.Config.Store); err != nil || len(found) > 0 {
		t.Errorf("with the time-out in the mail: %q, %v", found, err)
	}
	w.Restart()
	w.Rest()
	w.Kill()
	if found := problems(t, w.Config.Store); len(found) > 0 {
		t.Errorf("when it was taken: %q", found)
	}
}
