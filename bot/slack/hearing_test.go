package slack

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"nudge/bot/bottest/slacktest"
)

func TestMentionAndMessageAreOne(t *testing.T) {
	for _, mentionFirst := range []bool{false, true} {
		d := newDesk(t, brisk)
		ts := d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> status?", MentionFirst: mentionFirst})
		events := d.in.all()
		if len(events) != 1 {
			t.Fatalf("a mention became %d events", len(events))
		}
		e := events[0]
		if e.Address != "slack:T0TEST:C0TEAM:"+ts || e.Text != "status?" || e.Overheard || e.ID != "C0TEAM:"+ts {
			t.Errorf("a mention became %+v", e)
		}
		if e.From.ID != "slack:T0TEST:U0ANN" || e.From.Name != "Ann" || e.From.Zone != "Europe/Berlin" {
			t.Errorf("a mention is from %+v", e.From)
		}
		if len(d.server.Calls("users.info")) != 1 {
			t.Error("a person is asked for again and again")
		}
	}
}

func TestAddresses(t *testing.T) {
	d := newDesk(t, brisk)
	top := d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> first"})
	d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> in a thread", Thread: top})
	d.say(slacktest.Said{Channel: shared, User: "U0BOB", Text: "without a mention", Thread: top})
	d.say(slacktest.Said{Channel: shared, Text: "not for the bot"})
	dm := d.say(slacktest.Said{Text: "a &lt;b&gt; &amp;amp; c"})
	d.say(slacktest.Said{Text: "in a thread of the direct messages", Thread: dm})
	d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> hi", More: map[string]any{"user_team": "T0OTHER"}})
	var got []string
	for _, e := range d.in.all() {
		got = append(got, fmt.Sprintf("%s %s %v %s", e.From.ID, e.Address, e.Overheard, e.Text))
	}
	last := d.in.all()[len(d.in.all())-1].Address
	want := []string{
		"slack:T0TEST:U0ANN slack:T0TEST:C0TEAM:" + top + " false first",
		"slack:T0TEST:U0ANN slack:T0TEST:C0TEAM:" + top + " false in a thread",
		"slack:T0TEST:U0BOB slack:T0TEST:C0TEAM:" + top + " true without a mention",
		"slack:T0TEST:U0ANN slack:T0TEST:dm:U0ANN false a <b> &amp; c",
		"slack:T0TEST:U0ANN slack:T0TEST:dm:U0ANN:" + dm + " false in a thread of the direct messages",
		"slack:T0OTHER:U0ANN " + last + " false hi",
	}
	if !slices.Equal(got, want) {
		t.Errorf("heard\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatNobodySaidIsNotHeard(t *testing.T) {
	d := newDesk(t, brisk)
	var deliveries []string
	for _, event := range []string{
		`{"type":"message","subtype":"message_changed","hidden":true,"channel":"C0TEAM","ts":"1.1","message":{"type":"message","user":"U0BOT","bot_id":"B0BOT","text":"see https://example.org","ts":"1.0"}}`,
		`{"type":"message","subtype":"message_changed","channel":"C0TEAM","ts":"1.2","message":{"type":"message","user":"U0ANN","text":"<@U0BOT> hi","ts":"1.0","reply_count":1}}`,
		`{"type":"message","subtype":"message_changed","channel":"D0ANN","channel_type":"im","ts":"1.3","message":{"type":"message","user":"U0ANN","text":"hi, in German please","ts":"1.0","edited":{"user":"U0ANN","ts":"1.3"}}}`,
		`{"type":"message","subtype":"message_deleted","channel":"D0ANN","channel_type":"im","ts":"1.4","deleted_ts":"1.0","previous_message":{"user":"U0ANN","text":"hi"}}`,
		`{"type":"message","subtype":"bot_message","bot_id":"B0OTHER","text":"<@U0BOT> ping","channel":"C0TEAM","ts":"1.5"}`,
		`{"type":"message","bot_id":"B0OTHER","user":"U0OTHERBOT","text":"<@U0BOT> ping","channel":"C0TEAM","ts":"1.6"}`,
		`{"type":"app_mention","bot_id":"B0OTHER","user":"U0OTHERBOT","text":"<@U0BOT> ping","channel":"C0TEAM","ts":"1.65"}`,
		`{"type":"message","user":"U0BOT","text":"my own words","channel":"D0ANN","channel_type":"im","ts":"1.7"}`,
		`{"type":"message","subtype":"channel_join","user":"U0ANN","text":"<@U0BOT> has joined","channel":"C0TEAM","ts":"1.8"}`,
		`{"type":"message","user":"U0ANN","text":"no place","ts":"1.9"}`,
		`{"type":"reaction_added","user":"U0ANN","reaction":"eyes","item":{"type":"message","channel":"C0TEAM","ts":"1.0"}}`,
		`{"type":"something_new","field":[1,2,3]}`,
		`{"type":"message","user":{"id":"U0ANN"},"text":7,"channel":"D0ANN","channel_type":"im","ts":"2.0"}`,
		`{}`,
	} {
		var e map[string]any
		if err := json.Unmarshal([]byte(event), &e); err != nil {
			t.Fatal(err)
		}
		deliveries = append(deliveries, d.server.Deliver(e))
	}
	deliveries = append(deliveries,
		d.server.Send("something_else", map[string]any{"a": 1}),
		d.server.Send("events_api", map[string]any{"type": "app_rate_limited", "team_id": "T0TEST", "minute_rate_limited": 1}),
		d.server.Send("events_api", []any{"not", "an", "object"}),
		d.server.Send("interactive", "not an object"),
		d.server.Send("slash_commands", nil),
	)
	d.server.SendRaw(`{"type":"events_api","payload":{"type":"event_callback","event":{"type":"message","channel_type":"im","channel":"D0ANN","user":"U0ANN","text":"no envelope id","ts":"3.0"}}}`)
	d.server.SendRaw(`not json`)
	d.server.SendRaw(`[]`)
	d.acked(deliveries...)
	d.say(slacktest.Said{Text: "the end"})
	if got := d.in.texts(); !slices.Equal(got, []string{"the end"}) {
		t.Errorf("heard %q", got)
	}
	if d.server.Opens() != 1 {
		t.Errorf("the link was made %d times", d.server.Opens())
	}
}

func TestFilesAndBroadcastsAreHeard(t *testing.T) {
	d := newDesk(t, brisk)
	top := d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> hi"})
	d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> look", More: map[string]any{"subtype": "file_share", "files": []any{map[string]any{"id": "F1", "name": "a.png"}}}})
	d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> also here", Thread: top, More: map[string]any{"subtype": "thread_broadcast"}})
	d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT>"})
	want := []string{"hi", "look", "also here", "[mentioned without words]"}
	if got := d.in.texts(); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

func TestRedeliveryIsOneEvent(t *testing.T) {
	d := newDesk(t, brisk)
	_, deliveries := d.server.Say(slacktest.Said{User: "U0ANN", Channel: slacktest.DM("U0ANN"), Text: "hi"})
	d.acked(deliveries...)
	again := d.server.Redeliver(deliveries[0])
	d.acked(again)
	// After a restart of the adapter the keys are the same.
	_ = d.stop()
	d.slack = newSlack(t, d.server, brisk)
	d.listen()
	d.until("there is a link again", func() bool { return d.server.Links() == 2 && d.server.Linked() == 1 })
	d.acked(d.server.Redeliver(again))
	if got := d.in.texts(); !slices.Equal(got, []string{"hi"}) {
		t.Errorf("heard %q", got)
	}
}

func TestNothingIsAcknowledgedThatWasNotKept(t *testing.T) {
	d := newDesk(t, brisk)
	d.in.mu.Lock()
	d.in.fail = errors.New("the disk is full")
	d.in.mu.Unlock()
	_, lost := d.server.Say(slacktest.Said{User: "U0ANN", Channel: slacktest.DM("U0ANN"), Text: "hi"})
	other := d.server.Send("something_else", nil)
	d.acked(other)
	if n, _ := d.server.Acked(lost[0]); n != 0 {
		t.Error("what was not kept is acknowledged")
	}
	d.in.mu.Lock()
	d.in.fail = nil
	d.in.mu.Unlock()
	d.acked(d.server.Redeliver(lost[0]))
	if got := d.in.texts(); !slices.Equal(got, []string{"hi"}) {
		t.Errorf("heard %q", got)
	}
}

// TestABlockedCoreLosesNothing lets two hundred messages come while none can be kept: the link must go on meanwhile.
func TestABlockedCoreLosesNothing(t *testing.T) {
	d := newDesk(t, brisk)
	held := make(chan struct{})
	d.in.mu.Lock()
	d.in.held = held
	d.in.mu.Unlock()
	var deliveries, want []string
	for i := range 200 {
		text := fmt.Sprint("number ", i)
		_, ids := d.server.Say(slacktest.Said{User: "U0ANN", Channel: slacktest.DM("U0ANN"), Text: text})
		deliveries, want = append(deliveries, ids...), append(want, text)
	}
	d.acked(d.server.Send("something_else", nil))
	close(held)
	d.acked(deliveries...)
	if got := d.in.texts(); !slices.Equal(got, want) {
		t.Errorf("heard %d of 200 in order %q", len(got), got)
	}
}

func TestRefreshesCostOneOpeningEach(t *testing.T) {
	d := newDesk(t, brisk)
	var want []string
	for i, reason := range []string{"warning", "refresh_requested", "warning", "refresh_requested", "refresh_requested"} {
		d.server.Disconnect(reason)
		text := fmt.Sprint("across ", i)
		_, ids := d.server.Say(slacktest.Said{User: "U0ANN", Channel: slacktest.DM("U0ANN"), Text: text})
		want = append(want, text)
		d.until("there is a new link", func() bool { return d.server.Links() == i+2 && d.server.Linked() == 1 })
		d.acked(ids...)
	}
	if got := d.in.texts(); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
	if n := d.server.Opens(); n != 6 {
		t.Errorf("five refreshes cost %d openings", n)
	}
}

func TestAStormIsWeathered(t *testing.T) {
	server := newServer(t)
	server.Storm(20)
	d := &desk{T: t, server: server, slack: newSlack(t, server, brisk), in: &inbox{}}
	d.listen()
	d.until("the storm is over", func() bool { return server.Stormed() && server.Linked() == 1 })
	d.say(slacktest.Said{Text: "hi"})
	if n := server.Opens(); n != 21 {
		t.Errorf("a storm of 20 cost %d openings", n)
	}
	d.slack.opening.mu.Lock()
	defer d.slack.opening.mu.Unlock()
	if d.slack.opening.crowded == 0 {
		t.Error("the reason was never read")
	}
}

func TestSocketModeSwitchedOff(t *testing.T) {
	timing := brisk
	timing.Disabled = time.Hour
	d := newDesk(t, timing)
	d.server.Disconnect(reasonDisabled)
	d.until("the link is gone", func() bool { return d.server.Linked() == 0 && d.slack.Stale() != nil })
	if err := d.slack.Stale(); !errors.Is(err, errDisabled) {
		t.Errorf("stale says %v", err)
	}
	if n := d.server.Opens(); n != 1 {
		t.Errorf("%d openings", n)
	}
	if err := d.stop(); err != nil {
		t.Errorf("listening ended with %v", err)
	}
}

func TestASilentLinkIsReplaced(t *testing.T) {
	timing := brisk
	timing.Ping = 50 * time.Millisecond
	d := newDesk(t, timing)
	d.server.Silence(true)
	d.until("there is a new link", func() bool { return d.server.Opens() >= 2 })
	d.server.Silence(false)
	timing.Ping, timing.Stale = time.Hour, 50*time.Millisecond
	_ = d.stop()
	d.slack = newSlack(t, d.server, timing)
	opens := d.server.Opens()
	d.listen()
	d.until("there is a link", func() bool { return d.server.Opens() > opens && d.server.Linked() > 0 })
	d.server.Silence(true)
	d.until("there is a new link without slack-go's help", func() bool { return d.server.Opens() > opens+1 })
	d.server.Silence(false)
	d.say(slacktest.Said{Text: "hi"})
}

func TestPingsAreSignsOfLife(t *testing.T) {
	d := newDesk(t, brisk)
	last := func() time.Time {
		d.slack.opening.mu.Lock()
		defer d.slack.opening.mu.Unlock()
		return d.slack.opening.beat
	}
	d.until("the hello was heard", func() bool { return !last().IsZero() })
	begin := last()
	d.until("a ping was heard", func() bool { return last().After(begin) })
	if err := d.slack.Stale(); err != nil {
		t.Errorf("stale with pings: %v", err)
	}
}

func TestRefusedTokensEndListening(t *testing.T) {
	for _, c := range []struct{ method, code string }{
		{"auth.test", "invalid_auth"}, {"auth.test", "account_inactive"},
		{"apps.connections.open", "invalid_auth"}, {"apps.connections.open", "not_allowed_token_type"},
		{"apps.connections.open", "token_expired"}, {"apps.connections.open", "missing_scope"}, {"apps.connections.open", "token_revoked"},
	} {
		t.Run(c.method+" "+c.code, func(t *testing.T) {
			server := newServer(t)
			server.Fail(c.method, slacktest.Fault{Error: c.code})
			s, err := New(Config{
				BotToken: slacktest.BotToken, AppToken: slacktest.AppToken, BotTokenFrom: "BOT", AppTokenFrom: "APP", APIURL: server.APIURL(), Timing: brisk,
			})
			if err != nil {
				t.Fatal(err)
			}
			err = s.Listen(t.Context(), &inbox{})
			token := map[string]string{"auth.test": "the bot token from BOT", "apps.connections.open": "the app token from APP"}[c.method]
			if code(err) != c.code || !strings.Contains(err.Error(), token) {
				t.Errorf("listening ended with %v, want %s of %s", err, c.code, token)
			}
			if s.Stale() == nil {
				t.Error("it isn't stale after that")
			}
			if n := len(server.Calls(c.method)); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

func TestPassingTroubleAtTheStart(t *testing.T) {
	server := newServer(t)
	server.Fail("auth.test", slacktest.Fault{Status: 502}, slacktest.Fault{Error: "internal_error"})
	server.Fail("apps.connections.open", slacktest.Fault{Status: 503}, slacktest.Fault{Error: "internal_error"})
	d := &desk{T: t, server: server, slack: newSlack(t, server, brisk), in: &inbox{}}
	d.listen()
	d.linked()
	d.say(slacktest.Said{Text: "hi"})
	if err := d.slack.Stale(); err != nil {
		t.Errorf("stale: %v", err)
	}
}

func TestSlashCommands(t *testing.T) {
	d := newDesk(t, brisk)
	d.in.refused = "slack:T0TEST:U0EVE"
	first := d.server.Slash("U0ANN", shared, "/nudge", "usage")
	second := d.server.Slash("U0ANN", slacktest.DM("U0ANN"), "/nudge", "")
	third := d.server.Slash("U0EVE", shared, "/nudge", "usage")
	d.acked(first, second, third, d.server.Redeliver(first))
	var got []string
	for _, e := range d.in.all() {
		got = append(got, e.Address+" "+e.Text)
	}
	slices.Sort(got)
	if want := []string{annsDM + " nudge help", annsDM + " nudge usage"}; !slices.Equal(got, want) {
		t.Errorf("heard %q", got)
	}
	if _, payload := d.server.Acked(first); !strings.Contains(string(payload), "direct messages") {
		t.Errorf("a command in a channel got %s", payload)
	}
	if _, payload := d.server.Acked(third); !strings.Contains(string(payload), "not on the list") {
		t.Errorf("a stranger got %s", payload)
	}
}

// sample is one of Slack's own sample payloads.
type sample struct {
	Name    string         `json:"name"`
	Payload map[string]any `json:"payload"`
}

func samples(t *testing.T, file string) []sample {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out []sample
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			break
		}
		var s sample
		if fault := json.Unmarshal(line, &s); fault != nil {
			t.Fatal(fault)
		}
		out = append(out, s)
		if err != nil {
			break
		}
	}
	return out
}

// TestSamples sends every sample as it is, with blank values, and those that are served once more with values.
func TestSamples(t *testing.T) {
	d := newDesk(t, brisk)
	var deliveries []string
	for _, s := range samples(t, "testdata/events.jsonl") {
		deliveries = append(deliveries, d.server.Send("events_api", s.Payload))
		event, _ := s.Payload["event"].(map[string]any)
		filled := map[string]any{"user": "U0ANN", "channel": slacktest.DM("U0ANN"), "text": s.Name, "ts": fmt.Sprint(len(deliveries), ".000001"), "channel_type": "im"}
		for k, v := range filled {
			if _, has := event[k]; has {
				event[k] = v
			}
		}
		s.Payload["event_id"], s.Payload["team_id"] = "Ev"+s.Name, slacktest.Team
		deliveries = append(deliveries, d.server.Send("events_api", s.Payload))
	}
	for _, s := range samples(t, "testdata/interactions.jsonl") {
		kind := "interactive"
		if strings.HasPrefix(s.Name, "Slash") {
			kind = "slash_commands"
		}
		deliveries = append(deliveries, d.server.Send(kind, s.Payload))
	}
	if len(deliveries) < 190 {
		t.Fatalf("only %d samples", len(deliveries))
	}
	d.acked(deliveries...)
	got := d.in.texts()
	for i, text := range got {
		got[i], _, _ = strings.Cut(text, "\n")
	}
	slices.Sort(got)
	want := []string{"AppMentionPayload", "MessageFileSharePayload", "MessageMePayload", "MessagePayload", "MessageThreadBroadcastPayload"}
	if !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// TestFilesThatCannotBeRead keep nobody from being heard, and are told of.
func TestFilesThatCannotBeRead(t *testing.T) {
	d := newDesk(t, brisk)
	for n, files := range []any{
		[]any{map[string]any{"id": "F1", "name": "a.txt", "size": "large"}}, []any{"F1"}, []any{nil}, "F1", 1, map[string]any{"id": "F1"},
	} {
		id := d.server.Deliver(map[string]any{
			"type": "message", "subtype": "file_share", "channel_type": "im", "channel": slacktest.DM("U0ANN"), "user": "U0ANN",
			"text": "look at this", "ts": fmt.Sprintf("1700000000.%06d", n), "files": files,
		})
		d.acked(id)
		events := d.in.all()
		if len(events) != n+1 || events[n].Text != "look at this" {
			t.Fatalf("with the files %v, %d of %d were heard", files, len(events), n+1)
		}
		if list, isList := files.([]any); isList && len(list) != len(events[n].Files) {
			t.Errorf("of the files %v %v are told", files, events[n].Files)
		}
	}
	if f := d.in.all()[0].Files[0]; f.Barred == "" {
		t.Errorf("a file that cannot be read is %+v", f)
	}
}

// TestIDsThatNameAnotherConversation are not taken: with colons in them they would be parts of another address.
func TestIDsThatNameAnotherConversation(t *testing.T) {
	d := newDesk(t, brisk)
	private := d.openedForm()
	user := func(id, team string) map[string]any { return map[string]any{"id": id, "team_id": team} }
	message := func(field, value string) map[string]any {
		m := map[string]any{"type": "message", "channel_type": "im", "channel": slacktest.DM("U0EVE"), "user": "U0EVE", "text": "hi", "ts": "1.1"}
		m[field] = value
		return m
	}
	for _, id := range []string{
		d.server.Deliver(message("user", "U0ANN:x")), d.server.Deliver(message("thread_ts", "1:2")), d.server.Deliver(message("user_team", "T0:dm")),
		d.server.Deliver(map[string]any{"type": "agent_session_stopped", "user": "U0ANN:x", "channel": "D0EVE", "thread_ts": "1.1"}),
		d.server.Send("slash_commands", map[string]any{"team_id": "T0TEST", "user_id": "U0ANN:x", "text": "approvals"}),
		d.server.Send("interactive", map[string]any{
			"type": "block_actions", "user": user("U0ANN:x", "T0TEST"), "container": map[string]any{"channel_id": "D0EVE", "message_ts": "1.1"},
			"actions": []any{map[string]any{"action_id": actionApprove, "value": "c1", "action_ts": "1.2"}},
		}),
		d.server.Send("interactive", map[string]any{
			"type": "view_submission", "user": user("U0EVE", "T0TEST:dm"),
			"view": map[string]any{"id": "V1", "callback_id": formCallback, "private_metadata": private},
		}),
	} {
		d.acked(id)
	}
	if got := d.in.all(); len(got) != 0 {
		t.Errorf("these were taken: %+v", got)
	}
}

// openedForm is what travels in a form of a card that waits.
func (d *desk) openedForm() string {
	d.in.mu.Lock()
	defer d.in.mu.Unlock()
	d.in.cards["c1"] = approval(annsDM)
	return `{"card":"c1","verdict":"deny","address":"` + annsDM + `"}`
}
