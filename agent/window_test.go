package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/compact"
	"nudge/agent/model"
	"nudge/memory"
)

// A session of two hundred steps in a small window ends with the right answer: every request fits, what is sent keeps
// its beginning between compactions, and the first request and the latest results are in it.
func TestALongSessionFitsASmallWindow(t *testing.T) {
	const window, steps = 8000, 200
	read := agenttest.Tool("read", agent.Read, "", func(_ context.Context, in agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: strings.Repeat("line of "+string(in.Arguments)+"\n", 60)}, nil
	})
	n := 0
	w, m := fresh(t, func(req model.Request) model.Answer {
		if n == steps {
			return agenttest.Say("the code word is " + codeWord(req))
		}
		n++
		answer := agenttest.Do(model.Call{ID: fmt.Sprintf("c%d", n), Name: "read", Arguments: fmt.Sprintf(`{"x":"%d"}`, n)})
		answer.Usage = model.Usage{In: compact.Tokens(compact.NewCounter(compact.Estimate), req.System, req.Tools, req.Messages), Out: 10, Known: true}
		return answer
	}, read)
	w.Config.Spec.Window, w.Config.Spec.MaxOutput, w.Config.Limits = window, 1000, agent.Limits{Steps: steps + 10}
	w.Restart()
	w.Say("Remember the code word heliotrope-4711, and read everything.")
	same(t, w.Rest(), fmt.Sprintf(`
		final the code word is heliotrope-4711
		settled completed %d steps %d calls`, steps+1, steps))
	requests := m.Requests()
	count := compact.NewCounter(compact.Estimate)
	breaks := 0
	for i, req := range requests {
		if used := compact.Tokens(count, req.System, req.Tools, req.Messages); used+req.MaxOutput > window {
			t.Fatalf("request %d has %d tokens of %d", i+1, used, window)
		}
		if i > 0 && !begins(req.Messages, requests[i-1].Messages) {
			breaks++
		}
	}
	if breaks == 0 || breaks > steps/4 {
		t.Errorf("%d of %d requests do not begin with the one before", breaks, len(requests))
	}
	before := requests[len(requests)-1]
	w.Restart()
	w.Say("Again?")
	w.Rest()
	after := m.Requests()[len(requests)]
	if !begins(after.Messages, before.Messages) {
		t.Error("after a restart the request does not begin with the one before")
	}
}

// codeWord is the word that the first request tells.
func codeWord(req model.Request) string {
	for _, msg := range req.Messages {
		if _, after, found := strings.Cut(msg.Text, "code word "); found && msg.Role == model.User {
			word, _, _ := strings.Cut(after, ",")
			return word
		}
	}
	return "gone"
}

// begins reports whether a conversation begins with another.
func begins(long, short []model.Message) bool {
	if len(long) < len(short) {
		return false
	}
	for i, msg := range short {
		if long[i].Role != msg.Role || long[i].Text != msg.Text {
			return false
		}
	}
	return true
}

func TestWhatWasSaidStaysInTheJournal(t *testing.T) {
	w, _ := fresh(t, func(req model.Request) model.Answer { return agenttest.Say("yes") })
	w.Config.Spec.Window = 4000
	w.Restart()
	for i := range 12 {
		w.Say(fmt.Sprintf("part %d: %s", i, strings.Repeat("word ", 300)))
		w.Rest()
	}
	compactions, said := 0, 0
	err := w.Config.Store.View(context.Background(), func(tx memory.Tx) error {
		if err := agent.Events(tx, agenttest.Home, 0, func(e agent.Event) error {
			if e.Kind == "compacted" {
				compactions++
			}
			return nil
		}); err != nil {
			return err
		}
		lines, err := agent.Transcript(tx, agenttest.Home, 0)
		said = len(agenttest.Only(lines, agent.Said))
		return err
	})
	if err != nil || compactions == 0 || said != 12 {
		t.Errorf("%d compactions, %d lines kept, error %v", compactions, said, err)
	}
}
