package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
)

// thread begins a thread in the channel and gives its address and ts.
func (d *desk) thread() (address, ts string) {
	d.Helper()
	ts = d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> begin"})
	return "slack:T0TEST:" + shared + ":" + ts, ts
}

func TestAnswersStandInTheirThread(t *testing.T) {
	d := newDesk(t, brisk)
	address, ts := d.thread()
	inDM := annsDM + ":" + d.say(slacktest.Said{Text: "a thread"})
	evil := "<!channel> <!here> <@U123> <#C1> <https://evil|bank.example> & <b>\n```\n<!channel>\n```"
	receipt := d.tell("k1", agent.Reply{Kind: agent.Final, Text: evil, Address: address})
	d.tell("k2", agent.Reply{Kind: agent.Final, Text: "hello", Address: annsDM})
	d.tell("k3", agent.Reply{Kind: agent.Notify, Text: "look", Address: inDM})
	said := d.server.ByBot(shared)
	if len(said) != 1 || said[0].Thread != ts || receipt != shared+":"+said[0].TS {
		t.Fatalf("said %+v with the receipt %q", said, receipt)
	}
	if strings.Contains(said[0].Text, "<") || html.UnescapeString(said[0].Text) != evil {
		t.Errorf("said %q", said[0].Text)
	}
	dm := d.server.ByBot(slacktest.DM("U0ANN"))
	if len(dm) != 2 || dm[0].Text != "hello" || dm[0].Thread != "" || dm[1].Thread == "" {
		t.Errorf("said %+v", dm)
	}
	for _, c := range d.server.Calls("chat.postMessage") {
		if c.Form.Get("unfurl_links") != "false" || c.Form.Get("unfurl_media") != "false" || c.Error != "" {
			t.Errorf("posted with %v: %s", c.Form, c.Error)
		}
	}
	if n := len(d.server.Calls("conversations.open")); n != 0 {
		t.Errorf("direct messages that are known were opened %d times", n)
	}
}

func TestDirectMessagesAreOpenedOnce(t *testing.T) {
	d := newDesk(t, brisk)
	for i := range 3 {
		d.tell(fmt.Sprint("k", i), agent.Reply{Kind: agent.Notify, Text: "unasked", Address: "slack:T0TEST:dm:U0BOB"})
	}
	if n := len(d.server.Calls("conversations.open")); n != 1 || len(d.server.ByBot(slacktest.DM("U0BOB"))) != 3 {
		t.Errorf("opened %d times", n)
	}
}

func TestLongAnswers(t *testing.T) {
	d := newDesk(t, brisk)
	address, _ := d.thread()
	text := strings.Repeat("A paragraph of some words & more.\n\n", 330)
	d.tell("k1", agent.Reply{Kind: agent.Final, Text: text, Address: address})
	var joined string
	said := d.server.ByBot(shared)
	for _, m := range said {
		if length(m.Text) > textLimit {
			t.Errorf("a message of %d characters", length(m.Text))
		}
		joined += html.UnescapeString(m.Text)
	}
	if len(said) < 3 || visible(joined) != visible(text) {
		t.Errorf("%d messages say %d of %d characters", len(said), len(visible(joined)), len(visible(text)))
	}
	longer := strings.Repeat("word ", 3000)
	d.tell("k2", agent.Reply{Kind: agent.Final, Text: longer, Address: address})
	d.tell("k3", agent.Reply{Kind: agent.Final, Text: strings.Repeat(" ", 20_000) + "x", Address: annsDM})
	d.tell("k4", agent.Reply{Kind: agent.Final, Text: " \n```\n```", Address: annsDM})
	last := d.server.ByBot(shared)[len(said):]
	if len(last) != 2 || len(last[0].Files) != 1 || d.server.File(last[0].Files[0].Name) != longer || last[0].Thread == "" {
		t.Fatalf("a longer answer became %+v", last)
	}
	if !strings.Contains(last[1].Text, last[0].Files[0].Name) || !strings.HasPrefix(last[1].Text, "word word") {
		t.Errorf("the summary says %q", last[1].Text)
	}
}

func TestPaceOfAChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(time.Second)
		start := time.Now()
		for i := range 4 {
			for _, channel := range []string{"C1", "C2"} {
				if err := p.await(t.Context(), channel); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(start); took != time.Duration(i)*time.Second {
				t.Errorf("message %d of two channels is said after %s", i, took)
			}
		}
		time.Sleep(time.Hour)
		start = time.Now()
		if _ = p.await(t.Context(), "C1"); time.Since(start) > 0 {
			t.Error("a channel that was quiet waits")
		}
	})
}

func TestRepeatsAfterTrouble(t *testing.T) {
	for _, c := range []struct {
		name    string
		fault   slacktest.Fault
		lookups int
	}{
		{"done, but answered with 500", slacktest.Fault{Status: 500, Done: true}, 1},
		{"not done, and answered with 503", slacktest.Fault{Status: 503}, 1},
		{"done, but never answered", slacktest.Fault{Done: true, Hang: true}, 1},
		{"never answered", slacktest.Fault{Hang: true}, 1},
		{"refused with fatal_error", slacktest.Fault{Error: "fatal_error"}, 1},
		{"limited", slacktest.Fault{RetryAfter: time.Nanosecond}, 0}, // said as 0 seconds
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, brisk)
			address, _ := d.thread()
			d.server.Fail("chat.postMessage", slacktest.Fault{Delay: time.Nanosecond}, c.fault)
			r := agent.Reply{Kind: agent.Final, Text: strings.Repeat("some words\n", 900), Address: address}
			ctx, giveUp := context.WithCancel(t.Context())
			if c.fault.Hang {
				go d.server.Await(patience, func() bool {
					called := len(d.server.Calls("chat.postMessage")) == 2
					if called {
						giveUp()
					}
					return called
				})
			}
			_, err := d.slack.Say(ctx, bot.Delivery{Reply: r, Key: "k1"})
			giveUp()
			var send *bot.SendError
			if !errors.As(err, &send) || send.Gone || send.Closed || !send.Unsure || send.Blind || send.RetryAfter != 0 {
				t.Fatalf("the first try gives %+v", err)
			}
			d.tell("k1", r)
			said := d.server.ByBot(shared)
			texts := ""
			for _, m := range said {
				texts += m.Text
			}
			if len(said) != 3 || visible(texts) != visible(r.Text) {
				t.Errorf("after two tries there are %d messages", len(said))
			}
			if n := len(d.server.Calls("conversations.replies")); n != c.lookups {
				t.Errorf("looked %d times", n)
			}
			d.tell("k2", agent.Reply{Kind: agent.Final, Text: "the same", Address: address})
			d.tell("k3", agent.Reply{Kind: agent.Final, Text: "the same", Address: address})
			if n := len(d.server.ByBot(shared)); n != 5 {
				t.Errorf("the same words under other keys are lost: %d messages", n)
			}
		})
	}
}

func TestAnEarlierProcessHadSaidIt(t *testing.T) {
	d := newDesk(t, brisk)
	begun := time.Now()
	address, _ := d.thread()
	long := agent.Reply{Kind: agent.Final, Text: strings.Repeat("some words\n", 700), Address: address}
	card := agent.Reply{Kind: agent.Approval, ID: "c1", Tool: "rm", Arguments: json.RawMessage(`{}`), Address: annsDM}
	file := agent.Reply{Kind: agent.Final, Text: strings.Repeat("some words\n", 1700), Address: annsDM}
	want := []string{d.tell("parcel-1", long), d.tell("parcel-2", card), d.tell("parcel-3", file)}
	before := len(d.server.ByBot(shared)) + len(d.server.ByBot(slacktest.DM("U0ANN")))
	_ = d.stop()
	d.slack = newSlack(t, d.server, brisk)
	again := func(key string, r agent.Reply) string {
		receipt, err := d.slack.Say(t.Context(), bot.Delivery{Reply: r, Key: key, Doubtful: begun})
		if err != nil {
			t.Fatal(err)
		}
		return receipt
	}
	got := []string{again("parcel-1", long), again("parcel-2", card), again("parcel-3", file)}
	if !slices.Equal(got, want) {
		t.Errorf("the receipts are %q, and were %q", got, want)
	}
	if n := len(d.server.ByBot(shared)) + len(d.server.ByBot(slacktest.DM("U0ANN"))); n != before {
		t.Errorf("%d messages became %d", before, n)
	}
	// Another data file has the same keys for other words.
	again("parcel-1", agent.Reply{Kind: agent.Final, Text: "something else", Address: annsDM})
	if n := len(d.server.ByBot(shared)) + len(d.server.ByBot(slacktest.DM("U0ANN"))); n != before+1 {
		t.Error("new words under an old key were not said")
	}
}

// TestBlind says nothing where a try is in doubt and nothing can be found out.
func TestBlind(t *testing.T) {
	d := newDesk(t, brisk)
	address, _ := d.thread()
	final := agent.Reply{Kind: agent.Final, Text: "hello", Address: address}
	aside := agent.Reply{Kind: agent.Notice, Text: "not yours", Address: address, To: "slack:T0TEST:U0BOB"}
	for _, c := range []struct {
		name  string
		reply agent.Reply
		fault slacktest.Fault
		want  bot.SendError
	}{
		{"may not look", final, slacktest.Fault{Error: "missing_scope"}, bot.SendError{Blind: true}},
		{"may not look there", final, slacktest.Fault{Error: "channel_not_found"}, bot.SendError{Blind: true}},
		{"down", final, slacktest.Fault{Status: 503}, bot.SendError{Unsure: true}},
		{"no token any more", final, slacktest.Fault{Error: "token_revoked"}, bot.SendError{Unsure: true, Closed: true}},
		{"later", final, slacktest.Fault{RetryAfter: 2 * time.Second}, bot.SendError{Unsure: true, RetryAfter: 2 * time.Second}},
		{"seen by one person only", aside, slacktest.Fault{}, bot.SendError{Blind: true}},
	} {
		d.server.Fail("conversations.replies", c.fault)
		_, err := d.slack.Say(t.Context(), bot.Delivery{Reply: c.reply, Key: "k " + c.name, Doubtful: time.Now()})
		var send *bot.SendError
		if !errors.As(err, &send) {
			t.Fatalf("%s: error %v", c.name, err)
		}
		got := *send
		if got.Err = nil; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if n := len(d.server.ByBot(shared)); n > 0 {
			t.Errorf("%s: said all the same", c.name)
		}
	}
}

func TestWhatCannotBeSaid(t *testing.T) {
	d := newDesk(t, brisk)
	address, _ := d.thread()
	for _, c := range []struct {
		code               string
		gone, closed, left bool
	}{
		{"channel_not_found", true, false, true}, {"is_archived", true, false, true}, {"not_in_channel", true, false, true}, {"missing_scope", true, false, false},
		{"message_not_found", false, false, false}, {"ratelimited", false, false, false}, {"internal_error", false, false, false}, {"something_new", false, false, false},
		{"account_inactive", false, true, false}, {"token_revoked", false, true, false}, {"invalid_auth", false, true, false},
	} {
		d.server.Fail("chat.postMessage", slacktest.Fault{Error: c.code})
		_, err := d.slack.Say(t.Context(), bot.Delivery{Reply: agent.Reply{Kind: agent.Final, Text: "x", Address: address}, Key: "k"})
		var send *bot.SendError
		if !errors.As(err, &send) || send.Gone != c.gone || send.Closed != c.closed || send.Left != c.left || code(err) != c.code {
			t.Errorf("%s gives %+v", c.code, err)
		}
	}
	d.server.Archive(shared)
	_, err := d.slack.Say(t.Context(), bot.Delivery{Reply: agent.Reply{Kind: agent.Final, Text: "x", Address: address}, Key: "k"})
	if code(err) != "is_archived" {
		t.Errorf("an archived channel gives %v", err)
	}
	if d.slack.Stale() == nil {
		t.Error("refused for good, and not stale")
	}
	for _, address := range []string{"slack:T0TEST:dm:U0NOBODY", "slack:T0TEST:C0GONE:1.2", "slack:T0TEST", "terminal:local:dm:x", ""} {
		_, err := d.slack.Say(t.Context(), bot.Delivery{Reply: agent.Reply{Kind: agent.Final, Text: "x", Address: address}, Key: "k"})
		var send *bot.SendError
		if !errors.As(err, &send) || !send.Gone {
			t.Errorf("%q gives %+v", address, err)
		}
	}
}

func TestReceipts(t *testing.T) {
	d := newDesk(t, brisk)
	ts := d.say(slacktest.Said{Text: "a correction"})
	id := d.in.all()[0].ID
	steps := []struct{ state, want string }{
		{agent.Stored, "[eyes]"}, {agent.Stored, "[eyes]"}, {agent.SeenAt, "[white_check_mark]"}, {agent.SeenAt, "[white_check_mark]"},
		{agent.NextTurn, "[white_check_mark fast_forward]"}, {"something", "[white_check_mark fast_forward]"},
	}
	for i, step := range steps {
		d.tell(fmt.Sprint("k", i), agent.Reply{Kind: agent.SteerMark, ID: id, State: step.state, Address: annsDM})
		if m, _ := d.server.Message(slacktest.DM("U0ANN"), ts); fmt.Sprint(m.Reactions) != step.want {
			t.Errorf("after %q there is %v", step.state, m.Reactions)
		}
	}
	d.tell("gone", agent.Reply{Kind: agent.SteerMark, ID: "D0ANN:1.1", State: agent.Stored, Address: annsDM})
	d.tell("elsewhere", agent.Reply{Kind: agent.SteerMark, ID: "api-7", State: agent.Stored, Address: annsDM})
	d.server.Fail("reactions.add", slacktest.Fault{RetryAfter: 2 * time.Second})
	_, err := d.slack.Say(t.Context(), bot.Delivery{Reply: agent.Reply{Kind: agent.SteerMark, ID: id, State: agent.Stored, Address: annsDM}, Key: "k"})
	var send *bot.SendError
	if !errors.As(err, &send) || send.RetryAfter != 2*time.Second {
		t.Errorf("a limited receipt gives %v", err)
	}
}

func TestProgressIsOneMessage(t *testing.T) {
	d := newDesk(t, brisk)
	address, ts := d.thread()
	for i := range 5 {
		d.tell("", agent.Reply{Kind: agent.Progress, Turn: "t1", Text: fmt.Sprintf("step %d <&>", i), Address: address})
	}
	d.until("the last line is shown", func() bool {
		said := d.server.ByBot(shared)
		return len(said) == 1 && said[0].Text == "step 4 &lt;&amp;&gt;"
	})
	said := d.server.ByBot(shared)[0]
	if b := said.Buttons(); said.Thread != ts || len(b) != 1 || b[0].ActionID != actionStop || !strings.Contains(said.Shown(), "step 4 <&>") {
		t.Errorf("progress stands there as %+v", said)
	}
	if n := len(d.server.Calls("assistant.threads.setStatus")); n > 2 || d.server.Status(shared, ts) != working {
		t.Errorf("the status was set %d times, and is %q", n, d.server.Status(shared, ts))
	}
	click, _ := d.server.Click("U0ANN", shared, said.TS, actionStop)
	d.acked(click)
	events := d.in.all()
	if e := events[len(events)-1]; !e.Stop || e.Address != address || e.From.ID != "slack:T0TEST:U0ANN" {
		t.Errorf("Stop became %+v", e)
	}
	d.tell("k1", agent.Reply{Kind: agent.Final, Text: "the answer", Address: address})
	d.tell("k2", agent.Reply{Kind: agent.SettledMark, Address: address})
	if said := d.server.ByBot(shared); len(said) != 1 || said[0].Text != "the answer" {
		t.Errorf("at the end there is %+v", said)
	}
	d.tell("k3", agent.Reply{Kind: agent.SettledMark, Address: address})
}

// TestProgressOfAnEarlierProcess has what a process showed that was killed taken away when its turn ends in the next, and
// nothing else.
func TestProgressOfAnEarlierProcess(t *testing.T) {
	const began2021, another = "t3dokpyk2abcdef", "t3dokpyk2ghijkl"
	for name, direct := range map[string]bool{"in a thread": false, "in direct messages": true} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, brisk)
			address, channel := annsDM, slacktest.DM("U0ANN")
			if !direct {
				address, _ = d.thread()
				channel = shared
			}
			d.tell("", agent.Reply{Kind: agent.Progress, Turn: began2021, Text: "at work", Address: address})
			if said := d.server.ByBot(channel); len(said) != 1 || len(said[0].Buttons()) != 1 {
				t.Fatalf("progress stands there as %+v", said)
			}
			d.slack = newSlack(t, d.server, brisk)
			d.tell("k1", agent.Reply{Kind: agent.Final, Turn: another, Text: "an answer", Address: address})
			d.tell("k2", agent.Reply{Kind: agent.SettledMark, Turn: another, Address: address})
			if said := d.server.ByBot(channel); len(said) != 2 {
				t.Errorf("the end of another turn leaves %+v", said)
			}
			d.tell("", agent.Reply{Kind: agent.Progress, Turn: began2021, Text: "at work again", Address: address})
			d.tell("k3", agent.Reply{Kind: agent.SettledMark, Turn: began2021, Address: address})
			if said := d.server.ByBot(channel); len(said) != 1 || said[0].Text != "an answer" {
				t.Errorf("at the end there is %+v", said)
			}
		})
	}
}

// TestLookingForProgressThatIsNotAllowed lets a turn end where Slack does not let the bot look.
func TestLookingForProgressThatIsNotAllowed(t *testing.T) {
	d := newDesk(t, brisk)
	d.server.Fail("conversations.history", slacktest.Fault{Error: "missing_scope"})
	d.tell("k1", agent.Reply{Kind: agent.SettledMark, Turn: "t3dokpyk2abcdef", Address: annsDM})
	if n := len(d.server.Calls("conversations.history")); n != 1 {
		t.Errorf("it was looked %d times", n)
	}
	d.tell("k2", agent.Reply{Kind: agent.SettledMark, Turn: "t1", Address: annsDM})
	if n := len(d.server.Calls("conversations.history")); n != 1 {
		t.Errorf("for a turn of no known time it was looked %d times", n)
	}
}

func TestProgressIsNotEditedTooOften(t *testing.T) {
	timing := brisk
	timing.Edit = time.Hour
	d := newDesk(t, timing)
	address, _ := d.thread()
	for i := range 20 {
		d.tell("", agent.Reply{Kind: agent.Progress, Turn: "t1", Text: fmt.Sprint("step ", i), Address: address})
	}
	if n := len(d.server.Calls("chat.update")); n != 0 {
		t.Errorf("%d edits at once", n)
	}
	// A new turn has a message of its own, and the one of the turn before goes.
	d.tell("", agent.Reply{Kind: agent.Progress, Turn: "t2", Text: "anew", Address: address})
	if said := d.server.ByBot(shared); len(said) != 1 || said[0].Text != "anew" {
		t.Errorf("there is %+v", said)
	}
	d.server.Fail("chat.delete", slacktest.Fault{Error: "cant_delete_message"})
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	if said := d.server.ByBot(shared); len(said) != 1 || len(said[0].Buttons()) != 0 || said[0].Text != "Done." {
		t.Errorf("after the end there is %+v", said)
	}
	d.tell("", agent.Reply{Kind: agent.Progress, Turn: "t3", Text: "after the end", Address: address})
	if n := len(d.server.ByBot(shared)); n != 1 {
		t.Error("progress is shown after the end")
	}
}

func TestOldStopButtons(t *testing.T) {
	d := newDesk(t, brisk)
	d.tell("", agent.Reply{Kind: agent.Progress, Turn: "t1", Text: "at work", Address: annsDM})
	old := d.slack.progress
	d.slack.progress = newProgress(d.slack) // as if a program had been killed
	click, _ := d.server.Click("U0ANN", slacktest.DM("U0ANN"), d.server.ByBot(slacktest.DM("U0ANN"))[0].TS, actionStop)
	d.acked(click)
	d.until("the old message is gone", func() bool { return len(d.server.ByBot(slacktest.DM("U0ANN"))) == 0 })
	old.close()
}

func TestAsides(t *testing.T) {
	d := newDesk(t, brisk)
	address, ts := d.thread()
	r := agent.Reply{Kind: agent.Fault, Text: "not yours <&>", To: "slack:T0TEST:U0BOB", Address: address}
	d.tell("k1", r)
	said := d.server.ByBot(shared)
	if len(said) != 1 || said[0].For != "U0BOB" || said[0].Text != "not yours &lt;&amp;&gt;" || said[0].Thread != ts {
		t.Fatalf("said %+v", said)
	}
	d.server.AddUser(slacktest.User{ID: "U0FAR", Name: "Far"})
	r.To = "slack:T0TEST:U0FAR"
	d.tell("k2", r)
	if dm := d.server.ByBot(slacktest.DM("U0FAR")); len(dm) != 1 || dm[0].Text != "not yours &lt;&amp;&gt;" {
		t.Errorf("somebody who is not in the channel is told %+v", dm)
	}
	r.To, r.Address = "slack:T0TEST:U0ANN", annsDM
	d.tell("k3", r)
	if dm := d.server.ByBot(slacktest.DM("U0ANN")); len(dm) != 1 || dm[0].For != "" {
		t.Errorf("in direct messages there is %+v", dm)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		config Config
		say    string
	}{
		{Config{}, "the bot token is missing"},
		{Config{BotTokenFrom: "BOT", AppTokenFrom: "APP"}, "the bot token from BOT is missing"},
		{Config{BotToken: "xoxb-1", AppTokenFrom: "APP"}, "the app token from APP is missing"},
		{Config{AppToken: "xapp-1", AppTokenFrom: "APP"}, "the bot token is missing"},
		{Config{BotToken: "xapp-1", AppToken: "xoxb-1"}, "the bot token is missing, or is the app token"},
		{Config{BotToken: "xoxp-1", AppToken: "xapp-1"}, "the bot token is a user token"},
		{Config{BotToken: "xoxe.xoxp-1", AppToken: "xapp-1"}, "the bot token is a user token"},
		{Config{BotToken: "xoxb-1", AppToken: "xoxb-1"}, "the app token is missing, or is a bot or user token"},
		{Config{BotToken: "xoxb-1", AppToken: "xapp-1", APIURL: "slack.com/api"}, `"slack.com/api" is not the address`},
		{Config{BotToken: "xoxb-1", AppToken: "xapp-1", APIURL: "ftp://slack.com/"}, `"ftp://slack.com/" is not the address`},
	} {
		if _, err := New(c.config); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%+v is taken, or refused with %v, want %q", c.config, err, c.say)
		} else if c.config.BotToken != "" && strings.Contains(err.Error(), c.config.BotToken) {
			t.Errorf("the error tells the token: %v", err)
		}
	}
}

// TestPlacesOfClicks looks where a click belongs when the buttons say so, and when they do not.
func TestPlacesOfClicks(t *testing.T) {
	for _, c := range []struct{ payload, block, want string }{
		{`{"team":{"id":"T0OTHER"},"user":{"id":"U1"},"container":{"channel_id":"C1","message_ts":"2.0","thread_ts":"1.0"}}`, "slack:T1:C1:1.0", "slack:T1:C1:1.0"},
		{`{"team":{"id":"T1"},"user":{"id":"U1"},"container":{"channel_id":"C1","message_ts":"2.0","thread_ts":"1.0"}}`, "xyz", "slack:T1:C1:1.0"},
		{`{"user":{"id":"U1"},"channel":{"id":"C1"},"message":{"ts":"2.0"}}`, "", "slack:TOWN:C1:2.0"},
		{`{"user":{"id":"U1","team_id":"T2"},"channel":{"id":"D1"},"message":{"ts":"2.0","thread_ts":"2.0"}}`, "", "slack:T2:dm:U1"},
		{`{"team":{"id":"T1"},"user":{"id":"U1"},"channel":{"id":"D1"},"message":{"ts":"2.0","thread_ts":"1.0"}}`, "", "slack:T1:dm:U1:1.0"},
	} {
		var i interaction
		if err := json.Unmarshal([]byte(c.payload), &i); err != nil {
			t.Fatal(err)
		}
		if got := i.place(click{Block: c.block}, "TOWN").String(); got != c.want {
			t.Errorf("%s in the block %q belongs to %q, want %q", c.payload, c.block, got, c.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	for address, ok := range map[string]bool{
		"slack:T1:C1:1.2": true, "slack:T1:dm:U1": true, "slack:T1:dm:U1:1.2": true,
		"slack:T1:C1": false, "slack:T1:C1:1.2:3": false, "slack::C1:1": false, "discord:T1:C1:1.2": false, "slack:T1:dm:U1:": false, "": false,
	} {
		p, got := parsePlace(address)
		if got != ok || ok && p.String() != address {
			t.Errorf("%q gives %v %q", address, got, p)
		}
	}
}
