package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nudge/memory"
	"nudge/memory/bolt"
	"nudge/schedule"
)

// stretching is a heartbeat that would speak each second.
const stretching = `
[[heartbeat]]
name = "stretch"
cron = "@every 1s"
for = ["terminal:ann"]
prompt = "Remind me to stretch"
[heartbeat.condition]
kind = "always"
`

// why is what the program tells of a heartbeat.
func (p place) why(name string) string {
	p.t.Helper()
	out, status := p.run("why", name)
	if status != 0 {
		p.t.Errorf("why %s (%d): %s", name, status, out)
	}
	return out
}

// becomes waits until the program tells something of a heartbeat.
func (p place) becomes(name, words string) {
	p.t.Helper()
	eventually(p.t, words, func() bool {
		out, _ := p.run("why", name) // it may not be there yet
		return strings.Contains(out, words)
	})
}

func digested(l line) bool { return strings.Contains(l.raw, `"key":"digest"`) }

// TestAReminderIsMadeByTalkingAndNeedsNoModel when it comes; a snooze of it sets it anew.
func TestAReminderIsMadeByTalkingAndNeedsNoModel(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil, "")
	k := p.chat()
	k.say("remind me in 1 seconds to call")
	card := k.until("approval")
	if !strings.Contains(card.raw, "Once, 1 second after you save this: now, that would be on ") || !strings.Contains(card.raw, "no model is asked") {
		t.Errorf("the card is %s", card.raw)
	}
	k.say("/approve")
	if ping := k.until("notify"); ping.Text != "Time to call." || ping.Heartbeat != "call" {
		t.Errorf("the reminder is %s", ping.raw)
	}
	p.becomes("call", "ended: no date is left")
	if why := p.why("call"); !strings.Contains(why, "1 tick, 1 wake, 0 model calls") {
		t.Errorf("why: %s", why)
	}
	k.say("what did you say?")
	if said := k.until("final", func(l line) bool { return strings.Contains(l.Text, "told you") }); !strings.Contains(said.Text, "Time to call.") {
		t.Errorf("asked about it: %s", said.raw)
	}
	k.say("/heartbeats run call")
	k.until("error")
	k.end()
}

// TestTheDigestIsToldOnceWhateverIsKilled: past the cap nothing is said and no model is asked, over a kill too; then one
// message tells what was held back.
func TestTheDigestIsToldOnceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil, "[attention]\ndaily_cap = 2\n"+stretching)
	k := p.chat()
	k.until("notify")
	k.until("notify")
	p.becomes("stretch", "capped  has heard as much as the daily cap allows")
	k.kill()
	again := p.chat()
	eventually(t, "three ticks were held back", func() bool { return strings.Count(p.why("stretch"), "capped") > 2 })
	if why := p.why("stretch"); !strings.Contains(why, " 2 wakes, 4 model calls") {
		t.Errorf("why: %s", why)
	}
	again.kill()
	if got := again.kinds("notify"); got != "" {
		t.Errorf("past the cap was said %s", got)
	}
	p.digestDue("terminal:ann")
	k = p.chat()
	digest := k.until("notify", digested)
	if !strings.HasPrefix(digest.Text, "Held back until now:\n- stretch, ") || !strings.Contains(digest.Text, "over your daily cap): Remind me to stretch") {
		t.Errorf("the digest is %s", digest.raw)
	}
	k.say("what did you say?")
	if said := k.until("final"); !strings.Contains(said.Text, "Remind me to stretch") {
		t.Errorf("asked about it: %s", said.raw)
	}
	k.kill()
	last := p.chat()
	last.say("hello")
	last.until("settled")
	last.end()
	if got := last.kinds("notify"); got != "" {
		t.Errorf("after another start was said %s", got)
	}
	if out, status := p.run("check"); status != 0 {
		t.Errorf("the check says (%d) %s", status, out)
	}
}

// digestDue lets a person's digest fall due at the next start.
func (p place) digestDue(person string) {
	p.t.Helper()
	store, err := bolt.Open(filepath.Join(p.dir, "data", "nudge.db"), bolt.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer store.Close()
	err = store.Update(context.Background(), func(tx memory.Tx) error {
		row, found, err := tx.Due().Get(schedule.DigestPrefix + person)
		if err != nil || !found {
			p.t.Errorf("the digest has a due row: %v, %v", found, err)
			return err
		}
		row.At = time.Now()
		return tx.Due().Put(row)
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestQuietHoursAskNoModel: a heartbeat is silent in them, and why says so; what it is asked for is told all the same.
func TestQuietHoursAskNoModel(t *testing.T) {
	t.Parallel()
	now := time.Now()
	hours := now.Add(-time.Hour).Format("15:04") + "-" + now.Add(2*time.Hour).Format("15:04")
	p := newPlace(t, nil, "[attention]\nquiet = \""+hours+"\"\n"+stretching)
	k := p.chat()
	p.becomes("stretch", "quiet   quiet hours until")
	if why := p.why("stretch"); !strings.Contains(why, " 0 wakes, 0 model calls") {
		t.Errorf("why: %s", why)
	}
	k.say("/heartbeats run stretch")
	if ping := k.until("notify"); ping.Text != "Time to stretch." {
		t.Errorf("it told %s", ping.raw)
	}
	p.becomes("stretch", "asked for: woke terminal:ann")
	k.end()
	if got := k.kinds("notify"); got != "notify" {
		t.Errorf("said %s", got)
	}
}

// TestStopAllHoldsOverAKill, for every schedule, until an owner lets them go on.
func TestStopAllHoldsOverAKill(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil, stretching)
	k := p.chat()
	k.until("notify")
	k.say("stop all")
	k.until("notice", func(l line) bool { return strings.Contains(l.Text, "Paused: 1 heartbeat") })
	k.kill()
	again := p.chat()
	again.say("hello")
	again.until("settled")
	if why := p.why("stretch"); !strings.Contains(why, "paused: stop all") || strings.Contains(why, "next:") {
		t.Errorf("after a kill: %s", why)
	}
	if got := again.kinds("notify"); got != "" {
		t.Errorf("after a kill was said %s", got)
	}
	again.say("go on")
	again.until("notify")
	again.end()
}
