package slack

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
)

// notebook is where a log or alarms are kept.
type notebook struct {
	mu    sync.Mutex
	lines []string
}

func (n *notebook) note(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notebook) Write(line []byte) (int, error) { n.note(string(line)); return len(line), nil }

func (n *notebook) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

func (n *notebook) has(words string) bool {
	return slices.ContainsFunc(n.all(), func(line string) bool { return strings.Contains(line, words) })
}

// watched lets a desk's adapter, which must not listen yet, tell its alarms and its log.
func (d *desk) watched(timing Timing) (alarms, log *notebook) {
	d.Helper()
	alarms, log = &notebook{}, &notebook{}
	var err error
	d.slack, err = New(Config{
		BotToken: slacktest.BotToken, AppToken: slacktest.AppToken, APIURL: d.server.APIURL(), Timing: timing,
		Alarm: alarms.note, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		d.Fatal(err)
	}
	return alarms, log
}

// pressedApprove is a click on a button, with what tells it apart from others.
func pressedApprove(card string) map[string]any {
	return map[string]any{
		"type": "block_actions", "team": map[string]any{"id": slacktest.Team}, "user": map[string]any{"id": "U0ANN", "team_id": slacktest.Team},
		"channel":   map[string]any{"id": slacktest.DM("U0ANN")},
		"container": map[string]any{"type": "message", "message_ts": "1.000001", "channel_id": slacktest.DM("U0ANN")},
		"actions":   []any{map[string]any{"type": "button", "action_id": actionApprove, "value": card, "action_ts": card}},
	}
}

// TestNothingIsLostAcrossRefreshes lets Slack refresh the link again and again while people talk, click and give commands,
// over any of the links that there are. Slack delivers clicks and commands only once.
func TestNothingIsLostAcrossRefreshes(t *testing.T) {
	const refreshes, each = 25, 60
	d := newClosedDesk(t, brisk)
	d.server.Scatter(true)
	d.listen()
	d.linked()
	users := []string{"U0ANN", "U0BOB", "U0EVE"}
	var talking sync.WaitGroup
	for _, user := range users {
		talking.Go(func() {
			for i := range each {
				d.server.Say(slacktest.Said{User: user, Channel: slacktest.DM(user), Text: fmt.Sprint(user, " says ", i)})
				d.server.Say(slacktest.Said{User: user, Channel: shared, Text: fmt.Sprint("<@U0BOT> ", user, " mentions ", i), MentionFirst: i%2 == 0})
				d.server.Send("interactive", pressedApprove(fmt.Sprint(user, " clicks ", i)))
				d.server.Slash(user, shared, "/nudge", fmt.Sprint(user, " commands ", i))
			}
		})
	}
	for i := range refreshes {
		links := d.server.Links()
		d.server.Disconnect([]string{"warning", "refresh_requested"}[i%2])
		d.until("there is a new link", func() bool { return d.server.Links() > links })
	}
	talking.Wait()
	d.until("all is acknowledged", func() bool { return len(d.server.Unacknowledged()) == 0 })
	heard := map[string]int{}
	order := map[string][]int{} // of what one person says in one place
	for _, e := range d.in.all() {
		text := strings.TrimPrefix(e.Text, "nudge ")
		if e.Click != nil {
			text = e.Click.Card
		}
		heard[text]++
		if who, n, _ := strings.Cut(text, " says "); n != "" {
			var number int
			_, _ = fmt.Sscan(n, &number)
			order[who] = append(order[who], number)
		}
	}
	for _, user := range users {
		for i := range each {
			for _, what := range []string{"says", "mentions", "clicks", "commands"} {
				if text := fmt.Sprint(user, " ", what, " ", i); heard[text] != 1 {
					t.Errorf("%q was heard %d times", text, heard[text])
				}
			}
		}
	}
	if n, want := len(d.in.all()), len(users)*each*4; n != want {
		t.Errorf("heard %d, want %d", n, want)
	}
	if n := d.server.Opens(); n != refreshes+1 {
		t.Errorf("%d refreshes cost %d openings", refreshes, n)
	}
}

// TestAnOldLinkServesUntilThereIsANewOne lets the next link come late.
func TestAnOldLinkServesUntilThereIsANewOne(t *testing.T) {
	timing := brisk
	timing.Openings = []time.Duration{time.Hour}
	d := newDesk(t, timing)
	d.server.Disconnect("warning")
	d.say(slacktest.Said{Text: "over the old link"})
	d.acked(d.server.Send("interactive", pressedApprove("c1")))
	if d.server.Links() != 1 || d.server.Linked() != 1 || len(d.in.all()) != 2 {
		t.Errorf("%d links, heard %+v", d.server.Links(), d.in.all())
	}
}

// TestAnOldLinkIsGivenUp lets Slack never end a link of which it said that it ends.
func TestAnOldLinkIsGivenUp(t *testing.T) {
	timing := brisk
	timing.Overlap = time.Millisecond
	server := slacktest.New(slacktest.Options{Notice: time.Hour})
	t.Cleanup(server.Close)
	d := &desk{T: t, server: server, slack: newSlack(t, server, timing), in: &inbox{}}
	d.listen()
	d.linked()
	d.server.Disconnect("warning")
	d.until("only the new link is there", func() bool { return server.Links() == 2 && server.Linked() == 1 })
}

// TestLateAcknowledgements acknowledges a click over the next link when its own has ended meanwhile.
func TestLateAcknowledgements(t *testing.T) {
	d := newDesk(t, brisk)
	held := make(chan struct{})
	d.in.mu.Lock()
	d.in.held = held
	d.in.mu.Unlock()
	click := d.server.Send("interactive", pressedApprove("c1"))
	d.until("who clicks is known", func() bool { return len(d.server.Calls("users.info")) > 0 })
	d.server.Drop()
	d.until("there is a new link", func() bool {
		d.slack.link.mu.Lock()
		defer d.slack.link.mu.Unlock()
		return d.server.Links() == 2 && len(d.slack.link.conns) == 1
	})
	close(held)
	d.acked(click)
	if n := len(d.in.all()); n != 1 {
		t.Errorf("heard %d events", n)
	}
}

// TestAnAcknowledgementWaitsForALink is of a click that was taken when there was no link.
func TestAnAcknowledgementWaitsForALink(t *testing.T) {
	d := newDesk(t, brisk)
	held := make(chan struct{})
	d.in.mu.Lock()
	d.in.held = held
	d.in.mu.Unlock()
	click := d.server.Send("interactive", pressedApprove("c1"))
	event := d.server.Deliver(map[string]any{"type": "reaction_added"})
	d.acked(event) // so the click has come as well
	d.server.Fail("apps.connections.open", slacktest.Fault{RetryAfter: time.Second})
	d.server.Drop()
	d.until("the link is gone", func() bool {
		d.slack.link.mu.Lock()
		defer d.slack.link.mu.Unlock()
		return len(d.slack.link.conns) == 0
	})
	close(held)
	d.acked(click)
	if n, _ := d.server.Acked(click); n != 1 {
		t.Errorf("it was acknowledged %d times", n)
	}
}

// TestWhatCannotBeReadIsAcknowledged sends envelopes of which little is as it should be.
func TestWhatCannotBeReadIsAcknowledged(t *testing.T) {
	d := newClosedDesk(t, brisk)
	_, log := d.watched(brisk)
	d.listen()
	d.linked()
	var ids []string
	for i, frame := range []string{
		`{"type":"events_api","envelope_id":%q,"retry_attempt":"soon","accepts_response_payload":"perhaps","payload":[1]}`,
		`{"type":"events_api","envelope_id":%q,"payload":{"type":"event_callback","event":"none"}}`,
		`{"type":"events_api","envelope_id":%q,"payload":{"type":7,"event":{"type":"message"}}}`,
		`{"type":"events_api","envelope_id":%q}`,
		`{"type":"interactive","envelope_id":%q,"payload":{"type":"block_actions","user":"U0ANN","actions":{}}}`,
		`{"type":"interactive","envelope_id":%q,"payload":{"type":"invented","user":{"id":"U0ANN"}}}`,
		`{"type":"slash_commands","envelope_id":%q,"payload":"/nudge"}`,
		`{"type":"invented","envelope_id":%q,"payload":null,"reason":"none"}`,
		`{"envelope_id":%q}`,
	} {
		id := fmt.Sprint("raw-", i)
		ids = append(ids, id)
		d.server.SendRaw(fmt.Sprintf(frame, id))
	}
	for _, frame := range []string{`{"type":7}`, `{"type":"events_api","envelope_id":{}}`, `null`, `"hello"`, `{"type":"hello"}`, ``} {
		d.server.SendRaw(frame)
	}
	limited := d.server.Send("events_api", map[string]any{"type": "app_rate_limited", "team_id": "T0TEST", "minute_rate_limited": 1})
	d.acked(append(ids, limited)...)
	d.say(slacktest.Said{Text: "the end"})
	if got := d.in.texts(); !slices.Equal(got, []string{"the end"}) || d.server.Links() != 1 {
		t.Errorf("heard %q over %d links", got, d.server.Links())
	}
	for _, words := range []string{"30,000", "unknown kind", "cannot be read", "without an id"} {
		if !log.has(words) {
			t.Errorf("the log does not say %q: %q", words, log.all())
		}
	}
}

// TestSwitchedOffIsToldOnce lets Socket Mode be switched off for some looks, then on, then off again.
func TestSwitchedOffIsToldOnce(t *testing.T) {
	d := newClosedDesk(t, brisk)
	alarms, log := d.watched(brisk)
	d.server.Unwanted(reasonDisabled, 4)
	d.listen()
	d.linked()
	d.until("it is not stale any more", func() bool { return d.slack.Stale() == nil })
	if said := alarms.all(); len(said) != 1 || !strings.Contains(said[0], "switched off") || !strings.Contains(said[0], "api.slack.com/apps") {
		t.Errorf("told %q", said)
	}
	if !log.has("socket mode was switched off") || d.server.Opens() != 5 {
		t.Errorf("after %d openings the log says %q", d.server.Opens(), log.all())
	}
	d.server.Disconnect(reasonDisabled)
	d.until("it is told again", func() bool { return len(alarms.all()) == 2 })
	d.until("it is not stale any more", func() bool { return d.server.Links() == 2 && d.slack.Stale() == nil })
	d.say(slacktest.Said{Text: "hi"})
}

// TestDeadTokensAreTold kills tokens before, at and after the start.
func TestDeadTokensAreTold(t *testing.T) {
	for _, method := range []string{"auth.test", "apps.connections.open"} {
		d := newClosedDesk(t, brisk)
		alarms, _ := d.watched(brisk)
		d.server.Fail(method, slacktest.Fault{Error: "token_revoked"})
		if err := d.slack.Listen(t.Context(), d.in); code(err) != "token_revoked" {
			t.Errorf("listening ended with %v", err)
		}
		if said := alarms.all(); len(said) != 1 || !strings.Contains(said[0], "token_revoked") {
			t.Errorf("told %q", said)
		}
	}
	d := newClosedDesk(t, brisk)
	alarms, _ := d.watched(brisk)
	d.listen()
	d.linked()
	d.server.Fail("chat.postMessage", slacktest.Fault{Error: "token_revoked"}, slacktest.Fault{Error: "token_revoked"})
	for range 2 {
		_, err := d.slack.Say(t.Context(), bot.Delivery{Reply: agent.Reply{Kind: agent.Final, Text: "x", Address: annsDM}, Key: "k"})
		var send *bot.SendError
		if !errors.As(err, &send) || !send.Closed {
			t.Errorf("saying gives %v", err)
		}
	}
	if said := alarms.all(); len(said) != 1 || !strings.Contains(said[0], "token_revoked") || strings.Contains(said[0], slacktest.BotToken) {
		t.Errorf("told %q", said)
	}
	// The link is replaced when its token is refused later, too.
	d.server.Fail("apps.connections.open", slacktest.Fault{Error: "invalid_auth"})
	d.server.Drop()
	d.until("nothing is opened any more", func() bool { return len(d.server.Calls("apps.connections.open")) == 2 })
	if err := d.stop(); err != nil && code(err) != "invalid_auth" {
		t.Errorf("listening ended with %v", err)
	}
}

// TestTwoProcessesOnOneToken notices a second process with the same app token.
func TestTwoProcessesOnOneToken(t *testing.T) {
	d := newDesk(t, brisk)
	second := &desk{T: t, server: d.server, in: &inbox{}}
	_, log := second.watched(brisk)
	second.listen()
	d.until("both are linked", func() bool { return d.server.Linked() == 2 })
	d.until("it is logged", func() bool { return log.has("another process") })
	if err := second.stop(); err != nil {
		t.Error(err)
	}
	// A refresh of the only one is no second process.
	d.until("one is linked", func() bool { return d.server.Linked() == 1 })
	third := &desk{T: t, server: newServer(t), in: &inbox{}}
	_, log = third.watched(brisk)
	third.listen()
	third.linked()
	third.server.Disconnect("warning")
	third.until("the link is refreshed", func() bool { return third.server.Links() == 2 && third.server.Linked() == 1 })
	if log.has("another process") {
		t.Errorf("after a refresh the log says %q", log.all())
	}
}

func TestLongAcknowledgementsAreRefused(t *testing.T) {
	err := (&link{}).acknowledge(t.Context(), nil, time.Time{}, "envelope-1", strings.Repeat("x", mostAck))
	if err == nil || !strings.Contains(err.Error(), "longer than slack takes") {
		t.Errorf("it was sent: %v", err)
	}
}

// TestARefusedOpeningWaits lets Slack refuse to open a link for a second.
func TestARefusedOpeningWaits(t *testing.T) {
	d := newClosedDesk(t, brisk)
	d.server.Fail("apps.connections.open", slacktest.Fault{RetryAfter: time.Second})
	d.listen()
	d.linked()
	calls := d.server.Calls("apps.connections.open")
	if len(calls) != 2 || calls[1].At.Sub(calls[0].At) < time.Second {
		t.Errorf("it was asked for at %v", calls)
	}
}

// TestAcknowledgementsDoNotWaitForNames lets many people, of whom nothing is known, write in one channel while Slack does
// not tell who they are.
func TestAcknowledgementsDoNotWaitForNames(t *testing.T) {
	const people = 30
	for name, fault := range map[string]slacktest.Fault{"never answered": {Hang: true}, "refused": {RetryAfter: time.Minute}, "down": {Status: 503}} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, brisk)
			d.server.Disturb(func(method string, _ int) *slacktest.Fault {
				if method != "users.info" {
					return nil
				}
				return &fault
			})
			var ids []string
			start := time.Now()
			for i := range people {
				_, deliveries := d.server.Say(slacktest.Said{User: fmt.Sprintf("U%02d", i), Channel: shared, Text: "<@U0BOT> hi"})
				ids = append(ids, deliveries...)
			}
			d.acked(ids...)
			if took := time.Since(start); took > people*askFor/4 {
				t.Errorf("the acknowledgements of %d people took %s", people, took)
			}
			if n := len(d.in.all()); n != people {
				t.Errorf("heard %d of %d", n, people)
			}
		})
	}
}
