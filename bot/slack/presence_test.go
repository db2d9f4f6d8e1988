package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
)

// handTime is time that a test moves.
type handTime struct {
	mu     sync.Mutex
	now    time.Time
	timers []*handTimer
}

type handTimer struct {
	of *handTime
	at time.Time
	do func() // nil when it was stopped or has run
}

func newHandTime() *handTime { return &handTime{now: time.Now()} }

func (h *handTime) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *handTime) AfterFunc(d time.Duration, do func()) timer {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &handTimer{of: h, at: h.now.Add(d), do: do}
	h.timers = append(h.timers, t)
	return t
}

func (t *handTimer) Stop() bool {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	was := t.do != nil
	t.do = nil
	return was
}

// waited reports whether something waits for its time.
func (h *handTime) waited() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.timers, func(t *handTimer) bool { return t.do != nil })
}

// pass lets time pass, and does what is due.
func (h *handTime) pass(d time.Duration) {
	h.mu.Lock()
	h.now = h.now.Add(d)
	var due []func()
	for _, t := range h.timers {
		if t.do != nil && !t.at.After(h.now) {
			due, t.do = append(due, t.do), nil
		}
	}
	h.mu.Unlock()
	for _, do := range due {
		do()
	}
}

// newOffice is a desk of an app that is declared as an agent, in time that the test moves.
func newOffice(t *testing.T, o slacktest.Options) (*desk, *handTime) {
	t.Helper()
	hand := newHandTime()
	o.Now = hand.Now
	server := newServerWith(t, o)
	d := &desk{T: t, server: server, slack: newSlack(t, server, brisk), in: &inbox{cards: map[string]agent.Reply{}}}
	d.slack.time = hand
	d.listen()
	d.linked()
	return d, hand
}

// working lets Ann ask for something in the channel, and waits until the session says that it is worked on.
func (d *desk) working() (address, thread string) {
	d.Helper()
	address, thread = d.thread()
	d.until("it is worked on", func() bool {
		status, _ := d.server.Session(shared, thread)
		return status == "processing" && d.server.Status(shared, thread) == thinking
	})
	return address, thread
}

// step lets a line of progress be said.
func (d *desk) step(address, text string) {
	d.Helper()
	d.tell("", agent.Reply{Kind: agent.Progress, Turn: "t1", Text: text, Address: address})
}

// line is step, and then as much time passes as an edit has to wait.
func (d *desk) line(address, text string) {
	d.Helper()
	d.step(address, text)
	if hand, moved := d.slack.time.(*handTime); moved {
		hand.pass(d.slack.timing.Edit)
	}
}

func (d *desk) settle(address string) {
	d.Helper()
	d.tell("settled "+address, agent.Reply{Kind: agent.SettledMark, Address: address})
}

func TestStatusOfALongTurn(t *testing.T) {
	for _, ending := range []string{"answer", "failure", "stop", "wait", "end of the program"} {
		t.Run(ending, func(t *testing.T) {
			d, hand := newOffice(t, slacktest.Options{Agent: true})
			address, thread := d.working()
			d.until("the status will be renewed", hand.waited)
			for range 30 {
				hand.pass(10 * time.Second)
				if d.server.Status(shared, thread) == "" {
					t.Fatal("the status is gone while the turn goes on")
				}
			}
			if n := len(d.server.Calls(methodStatus)); n > 5 {
				t.Errorf("the status was set %d times in five minutes", n)
			}
			switch ending {
			case "answer":
				d.tell("k", agent.Reply{Kind: agent.Final, Text: "the answer", Address: address})
				d.settle(address)
			case "failure":
				d.server.Fail("chat.postMessage", slacktest.Fault{Error: "is_archived"})
				_, _ = d.slack.Say(t.Context(), bot.Delivery{Reply: agent.Reply{Kind: agent.Fault, Text: "I failed", Address: address}, Key: "k"})
				d.settle(address)
			case "stop":
				d.acked(d.server.PressStop("U0ANN", shared, thread))
				d.until("the status is gone", func() bool { return d.server.Status(shared, thread) == "" })
			case "wait":
				d.tell("k", agent.Reply{Kind: agent.WaitingMark, Address: address})
			default:
				_ = d.stop()
			}
			d.until("the session rests", func() bool { status, _ := d.server.Session(shared, thread); return status == "active" })
			calls := len(d.server.Calls(methodStatus))
			if last := d.server.Calls(methodStatus)[calls-1]; last.Form.Get("status") != "" || d.server.Status(shared, thread) != "" {
				t.Errorf("at the end the status is %q", d.server.Status(shared, thread))
			}
			hand.pass(5 * time.Minute)
			if n := len(d.server.Calls(methodStatus)); n != calls {
				t.Error("the status is set after the end")
			}
		})
	}
}

// TestStatusOfAnAnsweredCommand sets none, and one that stands is set again after the answer has taken it away.
func TestStatusAndCommands(t *testing.T) {
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> nudge usage"})
	d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> stop"})
	d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> stop all"})
	d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> Go on"})
	address, thread := d.working()
	if n := len(d.server.Calls(methodSession)); n != 1 {
		t.Errorf("there are %d sessions", n)
	}
	d.tell("k", agent.Reply{Kind: agent.Notice, Text: "You have spent nothing.", Address: address})
	if got := d.server.Status(shared, thread); got != thinking {
		t.Errorf("after a notice the status is %q", got)
	}
}

// quick is a receiver whose turns are over before it returns.
type quick struct {
	*inbox
	slack *Slack
}

func (q quick) Receive(ctx context.Context, e bot.Event) (bot.Admission, error) {
	admission, err := q.inbox.Receive(ctx, e)
	if _, fault := q.slack.Say(ctx, bot.Delivery{Reply: agent.Reply{Kind: agent.SettledMark, Address: e.Address}}); fault != nil {
		return 0, fault
	}
	return admission, err
}

func TestNoStatusAfterAQuickAnswer(t *testing.T) {
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	_ = d.stop()
	d.slack = newSlack(t, d.server, brisk)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.slack.Listen(ctx, quick{d.in, d.slack}) }()
	d.linked()
	d.say(slacktest.Said{Channel: shared, Text: "<@U0BOT> hi"})
	d.slack.lanes.Wait()
	cancel()
	<-ended
	if n := len(d.server.Calls(methodStatus)) + len(d.server.Calls(methodSession)); n != 0 {
		t.Errorf("%d calls show that something is done that is over", n)
	}
}

func streamed(d *desk) (m slacktest.Message, n int) {
	for _, one := range d.server.ByBot(shared) {
		if len(one.Tasks) > 0 {
			m, n = one, n+1
		}
	}
	return m, n
}

func TestProgressIsStreamed(t *testing.T) {
	d, hand := newOffice(t, slacktest.Options{Agent: true})
	address, thread := d.working()
	for i := range 50 {
		d.step(address, fmt.Sprintf("step %d <!channel> %s", i, strings.Repeat("x", 1000)))
		if i%10 == 9 {
			hand.pass(brisk.Edit)
		}
	}
	d.until("the last line is shown", func() bool {
		m, _ := streamed(d)
		return len(m.Tasks) > 0 && strings.HasPrefix(m.Tasks[len(m.Tasks)-1].Title, "step 49")
	})
	m, n := streamed(d)
	if n != 1 || !m.Streaming || m.Thread != thread || len(m.Tasks) > mostTasks || len(m.Buttons()) != 0 {
		t.Errorf("%d streams, of which one is %+v", n, m)
	}
	for i, task := range m.Tasks {
		if want := map[bool]string{true: "in_progress", false: "complete"}[i == len(m.Tasks)-1]; task.Status != want {
			t.Errorf("line %d is %s", i, task.Status)
		}
	}
	if got := d.server.Status(shared, thread); got != working {
		t.Errorf("the status is %q", got)
	}
	if c := d.server.Calls(methodStream)[0]; c.Form.Get("recipient_user_id") != "U0ANN" || c.Form.Get("recipient_team_id") != "T0TEST" {
		t.Errorf("it is streamed to %v", c.Form)
	}
	if _, title := d.server.Session(shared, thread); title != "begin" {
		t.Errorf("the session is called %q", title)
	}
	d.tell("final", agent.Reply{Kind: agent.Final, Text: "the answer", Address: address})
	d.settle(address)
	if said := d.server.ByBot(shared); len(said) != 1 || said[0].Text != "the answer" || said[0].Metadata == nil {
		t.Errorf("at the end there is %+v", said)
	}
	for _, c := range d.server.Calls("") {
		if c.Error != "" {
			t.Errorf("slack refuses %s: %s", c.Method, c.Error)
		}
	}
}

// TestWhereNothingIsStreamed posts and edits instead, with a button: where Slack has no Stop of its own, where it does not
// stream, and for what nobody is known to have asked.
func TestWhereNothingIsStreamed(t *testing.T) {
	for _, c := range []struct {
		name    string
		options slacktest.Options
		fault   string
		streams int // tries in two turns
	}{
		{"no agent", slacktest.Options{}, "", 0},
		{"an agent that does not hear of Stop", slacktest.Options{Agent: true, Unsubscribed: true}, "", 0},
		{"the app may not", slacktest.Options{Agent: true}, "not_allowed_token_type", 1},
		{"not in this channel", slacktest.Options{Agent: true}, "channel_type_not_supported", 1},
		{"not this time", slacktest.Options{Agent: true}, "internal_error", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := newOffice(t, c.options)
			if c.fault != "" {
				d.server.Fail(methodStream, slacktest.Fault{Error: c.fault})
			}
			for turn := range 2 {
				address, thread := d.thread()
				d.until("there is a status", func() bool { return d.server.Status(shared, thread) == thinking })
				d.line(address, "at work")
				said := d.server.ByBot(shared)
				m := said[len(said)-1]
				if turn == 0 && (len(m.Buttons()) != 1 || m.Streaming || m.Thread != thread) {
					t.Errorf("progress is %+v", m)
				}
				d.settle(address)
			}
			if n := len(d.server.Calls(methodStream)); n != c.streams {
				t.Errorf("%d tries to stream, want %d", n, c.streams)
			}
			if n := len(d.server.Calls(methodSession)); !c.options.Agent && n != 1 {
				t.Errorf("an app that is no agent asks %d times for a session", n)
			}
			if said := d.server.ByBot(shared); len(said) != 0 {
				t.Errorf("at the end there is %+v", said)
			}
		})
	}
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	ts, _ := d.server.Say(slacktest.Said{User: "U0ANN", Channel: shared, Text: "nothing for the bot"})
	d.line("slack:T0TEST:"+shared+":"+ts, "unasked")
	if n := len(d.server.Calls(methodStream)); n != 0 {
		t.Errorf("what nobody asked for is streamed %d times", n)
	}
}

func TestNativeStop(t *testing.T) {
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	address, thread := d.working()
	d.line(address, "step 1")
	began := time.Now()
	delivery := d.server.PressStop("U0ANN", shared, thread)
	d.acked(delivery, d.server.Redeliver(delivery))
	events := d.in.all()
	if e := events[len(events)-1]; !e.Stop || e.Address != address || e.From.ID != "slack:T0TEST:U0ANN" || len(events) != 2 {
		t.Errorf("Stop became %+v", events)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %s", took)
	}
	d.until("the session rests", func() bool { status, _ := d.server.Session(shared, thread); return status == "active" })
	appends, posts := len(d.server.Calls("chat.appendStream")), len(d.server.Calls("chat.postMessage"))
	for i := range 5 {
		d.line(address, fmt.Sprint("late ", i))
	}
	if len(d.server.Calls("chat.appendStream")) != appends || len(d.server.Calls("chat.postMessage")) != posts {
		t.Error("something is shown after the Stop")
	}
	d.tell("k", agent.Reply{Kind: agent.Final, Text: "Stopped.", Address: address})
	d.settle(address)
	if said := d.server.ByBot(shared); len(said) != 1 || said[0].Text != "Stopped." {
		t.Errorf("at the end there is %+v", said)
	}
	if n := len(d.server.Calls(methodSession)); n != 2 {
		t.Errorf("the session was set %d times", n)
	}
}

// TestNativeStopThatIsDeclined lets the turn go on, with its button, after Slack has ended the stream.
func TestNativeStopThatIsDeclined(t *testing.T) {
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	address, thread := d.working()
	d.line(address, "step 1")
	d.in.mu.Lock()
	d.in.declined = true
	d.in.mu.Unlock()
	d.acked(d.server.PressStop("U0BOB", shared, thread))
	d.until("the button is there again", func() bool { return len(d.server.Calls(methodSession)) == 2 })
	d.line(address, "step 2")
	d.until("the next line is shown", func() bool {
		said := d.server.ByBot(shared)
		return len(said) == 1 && said[0].Text == "step 2"
	})
	if status, _ := d.server.Session(shared, thread); status != "processing" {
		t.Errorf("the session is %s", status)
	}
}

// TestNativeStopAfterARestart leaves a session that an earlier process has left behind.
func TestNativeStopAfterARestart(t *testing.T) {
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	_, thread := d.working()
	old := d.slack.progress
	d.slack.progress = newProgress(d.slack)
	d.acked(d.server.PressStop("U0ANN", shared, thread))
	d.until("the session rests", func() bool { status, _ := d.server.Session(shared, thread); return status == "active" })
	old.close()
}

// TestARepeatedStopIsOver does nothing to the turn that has begun since.
func TestARepeatedStopIsOver(t *testing.T) {
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	address, thread := d.working()
	delivery := d.server.PressStop("U0ANN", shared, thread)
	d.acked(delivery)
	d.until("the session rests", func() bool { status, _ := d.server.Session(shared, thread); return status == "active" })
	d.settle(address)
	d.say(slacktest.Said{Channel: shared, Text: "go on then", Thread: thread})
	d.line(address, "at work again")
	d.until("it is streamed", func() bool { _, n := streamed(d); return n == 1 })
	d.acked(d.server.Redeliver(delivery))
	d.slack.lanes.Wait()
	d.line(address, "and on")
	d.until("the next line is shown", func() bool { m, n := streamed(d); return n == 1 && len(m.Tasks) == 2 && m.Streaming })
	if status, _ := d.server.Session(shared, thread); status != "processing" {
		t.Errorf("the session is %s", status)
	}
}

// TestSettledAfterARestart ends the session of a turn that an earlier process began.
func TestSettledAfterARestart(t *testing.T) {
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	address, thread := d.working()
	old := d.slack.progress
	d.slack.progress = newProgress(d.slack)
	d.settle(address)
	if status, _ := d.server.Session(shared, thread); status != "active" {
		t.Errorf("the session is %s", status)
	}
	old.close()
}

// TestStreamConflicts ends a stream before its message goes, whatever Slack says about it first.
func TestStreamConflicts(t *testing.T) {
	t.Run("it was not ended after all", func(t *testing.T) {
		d, _ := newOffice(t, slacktest.Options{Agent: true})
		address, _ := d.working()
		d.line(address, "step 1")
		d.server.Fail("chat.stopStream", slacktest.Fault{Error: "message_not_in_streaming_state"})
		d.settle(address)
		if said := d.server.ByBot(shared); len(said) != 0 || len(d.server.Calls("chat.stopStream")) != 2 {
			t.Errorf("at the end there is %+v", said)
		}
	})
	t.Run("slack has ended it", func(t *testing.T) {
		d, _ := newOffice(t, slacktest.Options{Agent: true})
		address, _ := d.working()
		d.line(address, "step 1")
		d.server.Fail("chat.appendStream", slacktest.Fault{Error: "message_not_in_streaming_state"})
		d.line(address, "step 2")
		d.until("it was tried", func() bool { return len(d.server.Calls("chat.appendStream")) == 1 })
		d.line(address, "step 3")
		d.until("it is posted instead", func() bool {
			said := d.server.ByBot(shared)
			return len(said) == 1 && said[0].Text == "step 3" && len(said[0].Buttons()) == 1
		})
		d.settle(address)
		if said := d.server.ByBot(shared); len(said) != 0 {
			t.Errorf("at the end there is %+v", said)
		}
	})
	t.Run("there were too many calls", func(t *testing.T) {
		d, _ := newOffice(t, slacktest.Options{Agent: true})
		address, _ := d.working()
		d.line(address, "step 1")
		d.server.Fail("chat.stopStream", slacktest.Fault{RetryAfter: 2 * time.Second})
		mark := bot.Delivery{Reply: agent.Reply{Kind: agent.SettledMark, Address: address}, Key: "k"}
		if _, err := d.slack.Say(t.Context(), mark); err == nil {
			t.Error("the mark is taken as said")
		}
		d.slack.limiter.mu.Lock()
		clear(d.slack.limiter.budgets) // as if the two seconds were over
		d.slack.limiter.mu.Unlock()
		if _, err := d.slack.Say(t.Context(), mark); err != nil || len(d.server.ByBot(shared)) != 0 {
			t.Errorf("the next try leaves %+v, %v", d.server.ByBot(shared), err)
		}
	})
}

func TestStreamInDirectMessages(t *testing.T) {
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	dm := slacktest.DM("U0ANN")
	top := d.say(slacktest.Said{Text: "hello"})
	d.line(annsDM, "at the top")
	d.settle(annsDM)
	if n := len(d.server.Calls(methodSession)) + len(d.server.Calls(methodStatus)) + len(d.server.Calls(methodStream)); n != 0 {
		t.Errorf("outside threads there are %d calls that need one", n)
	}
	d.say(slacktest.Said{Text: "Tell me about this. In detail, please", Thread: top})
	address := annsDM + ":" + top
	d.until("it is worked on", func() bool { return d.server.Status(dm, top) == thinking })
	d.line(address, "in the thread")
	d.until("it is streamed", func() bool { return len(d.server.Calls(methodStream)) == 1 })
	if c := d.server.Calls(methodStream)[0]; c.Error != "" || c.Form.Get("recipient_user_id") != "" {
		t.Errorf("the stream is %+v", c)
	}
	if _, title := d.server.Session(dm, top); title != "Tell me about this" {
		t.Errorf("the session is called %q", title)
	}
	d.settle(address)
}

// TestStreamGoesOnAfterAWait streams what is done after a decision as well, to whoever asked.
func TestStreamGoesOnAfterAWait(t *testing.T) {
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	address, thread := d.working()
	d.line(address, "before")
	d.tell("k", agent.Reply{Kind: agent.WaitingMark, Address: address})
	d.line(address, "after")
	if m, n := streamed(d); n != 1 || m.Tasks[0].Title != "after" {
		t.Errorf("%d streams, of which one is %+v", n, m)
	}
	if status, _ := d.server.Session(shared, thread); status != "processing" || d.server.Status(shared, thread) != working {
		t.Errorf("the session is %s", status)
	}
}

func TestTitles(t *testing.T) {
	for text, want := range map[string]string{
		"hello":                           "hello",
		"  What is up?  And then?":        "What is up?",
		"one\ntwo":                        "one",
		"v1.2 is out":                     "v1.2 is out",
		"Please do it.":                   "Please do it",
		strings.Repeat("word ", 40):       "word word word word word word word word word word word…",
		strings.Repeat("x", 100):          strings.Repeat("x", 59) + "…",
		strings.Repeat("\U0001F600", 100): strings.Repeat("\U0001F600", 29) + "…",
		"":                                "",
	} {
		if got := titleOf(text); got != want || length(got) > titleLimit {
			t.Errorf("%q is entitled %q, want %q", text, got, want)
		}
	}
}

func TestThePaneOfAnAssistant(t *testing.T) {
	d := newDesk(t, brisk)
	dm := slacktest.DM("U0ANN")
	thread, delivery := d.server.OpenPane("U0ANN")
	d.acked(delivery, d.server.Redeliver(delivery))
	d.until("there are suggestions", func() bool { return len(d.server.Prompts(dm, thread)) > 0 })
	for _, p := range d.server.Prompts(dm, thread) {
		if !bot.IsCommand(p.Message) {
			t.Errorf("%q is no command", p.Message)
		}
	}
	d.say(slacktest.Said{Text: "nudge help", Thread: thread})
	d.say(slacktest.Said{Text: "Plan my week", Thread: thread})
	d.until("it has its title", func() bool { return d.server.Title(dm, thread) == "Plan my week" })
	d.say(slacktest.Said{Text: "And now another thing", Thread: thread})
	d.settle(annsDM + ":" + thread)
	d.say(slacktest.Said{Text: "And one more", Thread: thread})
	d.tell("barrier", agent.Reply{Kind: agent.Final, Text: "done", Address: annsDM})
	if n := len(d.server.Calls("assistant.threads.setTitle")); n != 1 {
		t.Errorf("the title was set %d times", n)
	}
}

func TestTheMessagesOfAnAgent(t *testing.T) {
	d, _ := newOffice(t, slacktest.Options{Agent: true})
	d.acked(d.server.OpenHome("U0ANN", "messages"))
	d.until("there are suggestions", func() bool { return len(d.server.Prompts(slacktest.DM("U0ANN"), "")) > 0 })
	for _, event := range []map[string]any{
		{"type": "app_context_changed", "user": "U0ANN", "channel": "D0ANN", "context": map[string]any{"entities": []any{}}},
		{"type": "agent_session_title_changed", "user": "U0ANN", "channel": "D0ANN", "thread_ts": "1.1", "title": "mine"},
		{"type": "assistant_thread_context_changed", "assistant_thread": map[string]any{"user_id": "U0ANN", "channel_id": "D0ANN", "thread_ts": "1.1"}},
		{"type": "agent_session_stopped", "user": "U0ANN"},
		{"type": "app_home_opened", "tab": "home"},
		{"type": "user_change", "user": 7},
	} {
		d.acked(d.server.Deliver(event))
	}
	if n := len(d.in.all()); n != 0 {
		t.Errorf("%d events", n)
	}
}

// TestThreads takes what is said in a thread without a mention as overheard, for the receiver to judge.
func TestThreads(t *testing.T) {
	d := newDesk(t, brisk)
	address, thread := d.thread()
	d.say(slacktest.Said{User: "U0BOB", Channel: shared, Text: "by the way", Thread: thread})
	events := d.in.all()
	if e := events[len(events)-1]; !e.Overheard || e.Address != address || e.From.Name != "Bob" {
		t.Errorf("a reply became %+v", e)
	}
	if got := slices.IndexFunc(events, func(e bot.Event) bool { return e.Standing != bot.Member }); got >= 0 {
		t.Errorf("a member stands as %d", events[got].Standing)
	}
}
