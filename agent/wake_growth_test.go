package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model"
)

// TestWakesDoNotGrow is case C14: of 200 wakes three tell something. The last is asked with no more than the first, but for what
// was told last; of the person's own session three notes are all that has grown, and a reply to one of them works.
func TestWakesDoNotGrow(t *testing.T) {
	const ticks = 200
	alerts := map[string]bool{"40": true, "90": true, "140": true}
	w, m := wakeWorld(t, func(req model.Request) model.Answer {
		said := agenttest.LastUser(req)
		_, tick, woken := strings.Cut(said, "tick ")
		tick, _, _ = strings.Cut(tick, ".")
		switch {
		case !woken || !strings.Contains(said, "woke you"):
			return agenttest.Say("you mean sda1")
		case alerts[tick] && len(agenttest.Results(req)) == 0:
			return agenttest.Do(agenttest.Call(1, "notify", fmt.Sprintf(`{"text":"sda1 is nearly full, %s"}`, tick)))
		}
		return agenttest.Say("HEARTBEAT_OK")
	})
	for n := range 20 {
		w.Say(fmt.Sprint("message ", n))
		w.Rest()
	}
	entries := len(journal(t, w.Config.Store, agenttest.Home))
	turn := entries / 20 // of one message, and what the session keeps besides
	first := len(m.Requests())
	sizes := map[int]int{}
	for tick := range ticks {
		about := disk
		about.Episode, about.Prompt = fmt.Sprint("e", tick), fmt.Sprintf("This is tick %d.", tick)
		asked := len(m.Requests())
		wake(t, w, about)
		for _, msg := range m.Requests()[asked].Messages {
			sizes[tick] += len(msg.Text)
		}
	}
	pings := agenttest.Only(w.Rest(), agent.Notify)
	if len(pings) != 3 || len(m.Requests())-first != ticks+3 {
		t.Errorf("%d pings with %d requests", len(pings), len(m.Requests())-first)
	}
	if grown := sizes[ticks-1] - sizes[0]; grown > 3*len("The last time, you told them: sda1 is nearly full, 140") {
		t.Errorf("the first wake was asked with %d bytes, the last with %d", sizes[0], sizes[ticks-1])
	}
	w.Say("which disk?")
	w.Rest()
	if notes := journalData(t, w.Config.Store, agenttest.Home, "noted"); len(notes) != 3 {
		t.Errorf("the person's session has noted %q", notes)
	}
	if n := len(journal(t, w.Config.Store, agenttest.Home)); n-entries > 3+turn {
		t.Errorf("the person's session has grown by %d entries", n-entries)
	}
	var view strings.Builder
	for _, msg := range m.Requests()[len(m.Requests())-1].Messages {
		view.WriteString(msg.Text + "\n")
	}
	if !strings.Contains(view.String(), "sda1 is nearly full, 140") {
		t.Errorf("the question was asked with\n%s", view.String())
	}
}
