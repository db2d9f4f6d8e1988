package slack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nudge/bot/bottest/slacktest"
)

// eventOf is an event about a message in the channel.
func eventOf(typ, ts, text string, more map[string]any) map[string]any {
	event := map[string]any{
		"type": typ, "channel": shared, "channel_type": "channel", "user": "U0ANN", "text": text, "ts": ts, "event_ts": ts,
	}
	maps.Copy(event, more)
	return event
}

// callback is a payload of the Events API.
func callback(id string, event map[string]any) map[string]any {
	return map[string]any{"type": "event_callback", "team_id": slacktest.Team, "event_id": id, "event": event}
}

// TestEveryDeliveryOfAMessageIsOneEvent delivers two messages in all the ways that Slack does after an acknowledgement
// that it did not get: with the same event or another, the same attempt twice, over a new link, to a new process. One of
// the messages comes as a retry first, since nobody was linked before.
func TestEveryDeliveryOfAMessageIsOneEvent(t *testing.T) {
	d := newDesk(t, brisk)
	const first, second = "1796032800.000100", "1796032801.000200"
	hi, other := callback("Ev0001", eventOf("message", first, "<@U0BOT> hi", nil)), callback("Ev0002", eventOf("message", second, "<@U0BOT> other", nil))
	id := d.server.Send("events_api", hi)
	d.acked(id)
	for range 5 {
		id = d.server.Redeliver(id)
		d.acked(id)
	}
	late := d.server.Retry(other, 2)
	d.acked(d.server.Send("events_api", callback("Ev0099", eventOf("message", first, "<@U0BOT> hi", nil))), late, d.server.Redeliver(late))
	d.server.Drop()
	d.linked()
	d.acked(d.server.Retry(hi, 3), d.server.Retry(other, 3))
	_ = d.stop()
	d.slack = newSlack(t, d.server, brisk)
	links := d.server.Links()
	d.listen()
	d.until("there is a link again", func() bool { return d.server.Links() > links })
	d.acked(d.server.Retry(hi, 3), d.server.Retry(other, 3))
	if got := d.in.texts(); !slices.Equal(got, []string{"hi", "other"}) {
		t.Errorf("heard %q", got)
	}
}

// TestEveryFormOfAMentionIsOneEvent delivers the two events of a mention in every order, with something between, at the top
// and in a thread.
func TestEveryFormOfAMentionIsOneEvent(t *testing.T) {
	edited := func(ts string) map[string]any {
		return eventOf("message", "1796032899.000001", "", map[string]any{
			"subtype": "message_changed", "message": map[string]any{
				"type": "message", "user": "U0ANN", "text": "<@U0BOT> status now?", "ts": ts, "edited": map[string]any{"user": "U0ANN", "ts": "1796032899.000000"},
			},
		})
	}
	for i, c := range []struct {
		name         string
		mentionFirst bool
		between      bool
		thread       string
	}{
		{"the message first", false, false, ""},
		{"the mention first", true, false, ""},
		{"edited in between", false, true, ""},
		{"edited in between, the mention first", true, true, ""},
		{"in a thread", false, false, "1796032700.000100"},
		{"in a thread, the mention first", true, false, "1796032700.000100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, brisk)
			ts := fmt.Sprintf("17960328%02d.000100", i)
			more := map[string]any{}
			if c.thread != "" {
				more["thread_ts"] = c.thread
			}
			message := eventOf("message", ts, "<@U0BOT> status?", more)
			message["client_msg_id"] = "client-1"
			pair := []map[string]any{message, eventOf("app_mention", ts, "<@U0BOT> status?", more)}
			delete(pair[1], "channel_type")
			if c.mentionFirst {
				slices.Reverse(pair)
			}
			d.acked(d.server.Deliver(pair[0]))
			if c.between {
				d.acked(d.server.Deliver(edited(ts)))
			}
			d.acked(d.server.Deliver(pair[1]))
			got := d.in.all()
			want := "slack:T0TEST:C0TEAM:" + ts
			if c.thread != "" {
				want = "slack:T0TEST:C0TEAM:" + c.thread
			}
			if len(got) != 1 || got[0].Text != "status?" || got[0].Overheard || got[0].Address != want {
				t.Errorf("heard %+v", got)
			}
		})
	}
}

// TestAClickIsOneEvent delivers a click again, and then another click on the same button.
func TestAClickIsOneEvent(t *testing.T) {
	d := newDesk(t, brisk)
	first := d.server.Send("interactive", pressedApprove("c1"))
	d.acked(first, d.server.Redeliver(first), d.server.Send("interactive", pressedApprove("c1")), d.server.Send("interactive", pressedApprove("c2")))
	if got := d.in.all(); len(got) != 2 || got[0].Click == nil || got[0].Click.Card == got[1].Click.Card {
		t.Errorf("heard %+v", got)
	}
}

// TestGoesRedAndGreenAgain lets Slack fall silent and then speak again.
func TestGoesRedAndGreenAgain(t *testing.T) {
	timing := brisk
	timing.Stale, timing.Openings = 100*time.Millisecond, []time.Duration{10 * time.Millisecond}
	var down atomic.Bool
	d := newDesk(t, timing)
	d.until("it is green", func() bool { return d.slack.Stale() == nil })
	d.server.Disturb(func(string, int) *slacktest.Fault {
		if down.Load() {
			return &slacktest.Fault{Error: "internal_error"}
		}
		return nil
	})
	down.Store(true)
	d.server.Silence(true)
	d.until("it is red", func() bool { return d.slack.Stale() != nil })
	if err := d.slack.Stale(); !strings.Contains(err.Error(), "nothing was heard") {
		t.Errorf("stale says %v", err)
	}
	d.server.Silence(false)
	down.Store(false)
	d.until("it is green again", func() bool { return d.slack.Stale() == nil })
	d.say(slacktest.Said{Text: "hi"})
}

// TestSamplesThatAreServed gives the samples of what the bot serves the values that they have in life.
func TestSamplesThatAreServed(t *testing.T) {
	d := newDesk(t, brisk)
	var ids []string
	for _, s := range samples(t, "testdata/interactions.jsonl") {
		p := s.Payload
		p["user"], p["team"] = map[string]any{"id": "U0ANN", "team_id": slacktest.Team}, map[string]any{"id": slacktest.Team}
		switch s.Name {
		case "SlashCommandPayload":
			p["user_id"], p["team_id"], p["channel_id"], p["text"] = "U0ANN", slacktest.Team, shared, "usage"
			ids = append(ids, d.server.Send("slash_commands", p))
		case "BlockActionPayload":
			p["container"] = map[string]any{"message_ts": "1.000001", "channel_id": shared, "thread_ts": "1.000000"}
			actions, _ := p["actions"].([]any)
			action, _ := actions[0].(map[string]any)
			action["action_id"], action["value"], action["action_ts"] = actionApprove, "c1", "2.000001"
			ids = append(ids, d.server.Send("interactive", p))
		}
	}
	d.acked(ids...)
	var got []string
	for _, e := range d.in.all() {
		if e.Click != nil {
			got = append(got, "click "+e.Click.Card+" in "+e.Address)
		} else {
			got = append(got, e.Text+" in "+e.Address)
		}
	}
	slices.Sort(got)
	if want := []string{"click c1 in slack:T0TEST:C0TEAM:1.000000", "nudge usage in " + annsDM}; !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}
