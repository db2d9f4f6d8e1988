package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/bottest/slacktest"
	"nudge/bot/wire"
)

// network is one on which Slack answers at once. It notes when what was called.
type network struct {
	mu    sync.Mutex
	calls []called
	// refuse, if set, says for how long a call is refused.
	refuse func(method, channel string) (wait time.Duration, refused bool)
}

type called struct {
	method, channel string
	at              time.Time
}

func (w *network) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	method := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	c := called{method, formValue(r, "channel"), time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"ok":true}`))}
	if w.refuse != nil {
		if wait, refused := w.refuse(c.method, c.channel); refused {
			answer.StatusCode = http.StatusTooManyRequests
			answer.Header.Set("Retry-After", wholeSeconds(wait))
		}
	}
	return answer, nil
}

// times are the seconds after a start at which a method was called.
func (w *network) times(method string, start time.Time) []float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []float64
	for _, c := range w.calls {
		if c.method == method {
			out = append(out, c.at.Sub(start).Seconds())
		}
	}
	return out
}

func newTestLimiter(w *network) *limiter {
	timing := Timing{}.withDefaults()
	return newLimiter(timing, defaultAPI, w, newPace(timing.Pace))
}

// tryCall calls a method, and gives for how long it was refused.
func tryCall(ctx context.Context, l *limiter, method, channel string) (time.Duration, error) {
	form := strings.NewReader(url.Values{"channel": {channel}}.Encode())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, defaultAPI+method, form)
	if err != nil {
		return 0, err
	}
	answer, err := l.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusTooManyRequests {
		wait, err := time.ParseDuration(answer.Header.Get("Retry-After") + "s")
		return wait, err
	}
	return 0, nil
}

// TestNoMinuteHasTooManyCalls calls each kind of method as fast as can be for a while.
func TestNoMinuteHasTooManyCalls(t *testing.T) {
	for method, limit := range map[string]int{
		"chat.update": 50, "reactions.remove": 20, "chat.postEphemeral": 100, "chat.postMessage": 300, "something.new": 50,
	} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &network{}
				l, start := newTestLimiter(w), time.Now()
				var all sync.WaitGroup
				for i := range 3 * limit {
					all.Go(func() {
						ctx := t.Context()
						if i%3 == 0 {
							ctx = inPassing(ctx)
						}
						if wait, err := tryCall(ctx, l, method, fmt.Sprint("C", i)); wait > 0 || err != nil {
							t.Errorf("refused for %s: %v", wait, err)
						}
					})
				}
				all.Wait()
				at := w.times(method, start)
				if len(at) != 3*limit {
					t.Fatalf("%d calls, want %d", len(at), 3*limit)
				}
				for i := limit; i < len(at); i++ {
					if at[i]-at[i-limit] < 60 {
						t.Fatalf("%d calls within %.1f seconds", limit+1, at[i]-at[i-limit])
					}
				}
				if took := time.Since(start); took > 5*time.Minute {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestWhatIsWaitedForGoesFirst lets a card be settled while edits of progress wait for all that is left of the minute.
func TestWhatIsWaitedForGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &network{}
		l := newTestLimiter(w)
		var edits sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		for range 200 {
			edits.Go(func() { _, _ = tryCall(inPassing(ctx), l, "chat.update", "C1") })
		}
		time.Sleep(50 * time.Second)
		for range 10 {
			start := time.Now()
			if wait, err := tryCall(t.Context(), l, "chat.update", "C2"); wait > 0 || err != nil || time.Since(start) > 0 {
				t.Fatalf("waited %s, refused for %s: %v", time.Since(start), wait, err)
			}
		}
		stop()
		edits.Wait()
	})
}

// TestEditsAreSpread lets twenty turns edit whenever they may: each has its share, and none comes in a rush.
func TestEditsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &network{}
		l, start := newTestLimiter(w), time.Now()
		ctx, stop := context.WithCancel(t.Context())
		var turns sync.WaitGroup
		for i := range 20 {
			turns.Go(func() {
				for ctx.Err() == nil {
					_, _ = tryCall(inPassing(ctx), l, "chat.update", fmt.Sprint("C", i))
					_ = wire.Sleep(ctx, 1200*time.Millisecond)
				}
			})
		}
		time.Sleep(10 * time.Minute)
		stop()
		turns.Wait()
		each := map[string]int{}
		for _, c := range w.calls {
			each[c.channel]++
		}
		for i := range 20 {
			if n := each[fmt.Sprint("C", i)]; n < 15 || n > 25 {
				t.Errorf("turn %d had %d edits of %d", i, n, len(w.calls))
			}
		}
		at := w.times("chat.update", start)
		for i := 30; i < len(at); i++ {
			if at[i]-at[i-1] < 1 || at[i]-at[i-1] > 4 {
				t.Errorf("an edit came %.1f seconds after the one before it", at[i]-at[i-1])
			}
		}
	})
}

// TestARefusedMethodRests lets Slack refuse a method: it is not called before the time that Slack gave, and others are.
func TestARefusedMethodRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := true
		w := &network{refuse: func(method, _ string) (time.Duration, bool) { return 30 * time.Second, busy && method == "chat.update" }}
		l, start := newTestLimiter(w), time.Now()
		if wait, err := tryCall(t.Context(), l, "chat.update", "C1"); wait != 30*time.Second || err != nil {
			t.Fatalf("refused for %s: %v", wait, err)
		}
		busy = false
		time.Sleep(10 * time.Second)
		for _, ctx := range []context.Context{t.Context(), inPassing(t.Context()), nowOrNever(t.Context())} {
			if wait, err := tryCall(ctx, l, "chat.update", "C2"); wait != 20*time.Second || err != nil {
				t.Errorf("refused for %s: %v", wait, err)
			}
			for _, other := range []string{"chat.postMessage", "chat.delete", "reactions.add", "views.open"} {
				if wait, err := tryCall(ctx, l, other, "C1"); wait > 0 || err != nil {
					t.Errorf("%s is refused for %s: %v", other, wait, err)
				}
			}
		}
		if got := w.times("chat.update", start); len(got) != 1 {
			t.Errorf("called after %v seconds", got)
		}
		time.Sleep(20 * time.Second)
		if wait, err := tryCall(t.Context(), l, "chat.update", "C1"); wait > 0 || err != nil {
			t.Errorf("after its rest refused for %s: %v", wait, err)
		}
		if now := time.Since(start); now != 30*time.Second {
			t.Errorf("the refusals took until %s", now)
		}
	})
}

// TestThoseWhoWaitAreRefusedToo refuses a method while others wait for it.
func TestThoseWhoWaitAreRefusedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &network{}
		l := newTestLimiter(w)
		for range usual {
			_, _ = tryCall(t.Context(), l, "chat.update", "C1")
		}
		var waiting sync.WaitGroup
		for range 5 {
			waiting.Go(func() {
				if wait, err := tryCall(t.Context(), l, "chat.update", "C1"); wait != 300*time.Second || err != nil {
					t.Errorf("refused for %s: %v", wait, err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		l.block("chat.update", 300*time.Second)
		waiting.Wait()
		if time.Since(start) > 0 {
			t.Errorf("they heard of it after %s", time.Since(start))
		}
	})
}

// TestARefusedMessageHoldsItsChannel lets Slack refuse a message. It does not tell whether that means the channel or the
// workspace, which is known when it refuses one of another channel too.
func TestARefusedMessageHoldsItsChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := map[string]bool{"C1": true}
		w := &network{refuse: func(_, channel string) (time.Duration, bool) { return 3 * time.Second, refused[channel] }}
		l := newTestLimiter(w)
		post := func(channel string) time.Duration {
			if err := l.pace.await(t.Context(), channel); err != nil {
				return retryAfter(err)
			}
			wait, err := tryCall(t.Context(), l, "chat.postMessage", channel)
			if err != nil {
				t.Error(err)
			}
			return wait
		}
		if wait := post("C1"); wait != 3*time.Second {
			t.Errorf("refused for %s", wait)
		}
		time.Sleep(time.Second)
		if wait := post("C1"); wait != 2*time.Second {
			t.Errorf("in the same channel refused for %s", wait)
		}
		if wait := post("C2"); wait != 0 {
			t.Errorf("another channel is refused for %s", wait)
		}
		refused["C3"] = true
		post("C3")
		if wait := post("C4"); wait != 3*time.Second {
			t.Errorf("after two channels were refused another is refused for %s", wait)
		}
		if n := len(w.calls); n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
		clear(refused)
		time.Sleep(3 * time.Second)
		for _, channel := range []string{"C1", "C3", "C4"} {
			if wait := post(channel); wait != 0 {
				t.Errorf("after the rest %s is refused for %s", channel, wait)
			}
		}
	})
}

// TestThoseWhoWaitInAHeldChannelDoNotPost holds a channel while messages wait for their second in it.
func TestThoseWhoWaitInAHeldChannelDoNotPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(time.Second)
		_ = p.await(t.Context(), "C1")
		late := make(chan error, 1)
		go func() { late <- p.await(t.Context(), "C1") }()
		synctest.Wait()
		p.hold("C1", 10*time.Second)
		if err := <-late; retryAfter(err) != 9*time.Second {
			t.Errorf("it may be posted in a held channel: %v", err)
		}
	})
}

func TestARefusalWithoutATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLimiter(nil)
		l.next = tripper(func(*http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}, Body: http.NoBody}
		})
		for range 2 {
			if wait, err := tryCall(t.Context(), l, "chat.update", "C1"); wait != unsaidRefuse || err != nil {
				t.Errorf("refused for %s: %v", wait, err)
			}
		}
	})
}

type tripper func(*http.Request) *http.Response

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestAWaitEndsWithItsContext ends contexts of calls that wait, which gives their place to those behind.
func TestAWaitEndsWithItsContext(t *testing.T) {
	for _, mark := range []func(context.Context) context.Context{inPassing, func(ctx context.Context) context.Context { return ctx }} {
		synctest.Test(t, func(t *testing.T) {
			w := &network{}
			l, start := newTestLimiter(w), time.Now()
			for range usual {
				_, _ = tryCall(t.Context(), l, "chat.update", "C1")
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 10)
			for range 10 {
				go func() {
					_, err := tryCall(mark(ctx), l, "chat.update", "C1")
					ended <- err
				}()
			}
			time.Sleep(5 * time.Second)
			cancel()
			for range 10 {
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("it ended with %v", err)
				}
			}
			if took := time.Since(start); took != 5*time.Second {
				t.Errorf("they ended after %s", took)
			}
			if _, err := tryCall(ctx, l, "chat.update", "C1"); !errors.Is(err, context.Canceled) {
				t.Errorf("a context that has ended gives %v", err)
			}
			if _, err := tryCall(t.Context(), l, "chat.update", "C1"); err != nil || time.Since(start) != 63*time.Second {
				t.Errorf("the next went after %s: %v", time.Since(start), err)
			}
		})
	}
}

// TestNowOrNever calls methods that are of no use later, and one that is marked so, until there is no room.
func TestNowOrNever(t *testing.T) {
	for method, limit := range map[string]int{
		"users.info": 100, "views.open": 100, "chat.startStream": 20, "agents.sessions.setStatus": 50, "chat.update": 50,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &network{}
			l, start := newTestLimiter(w), time.Now()
			ctx := t.Context()
			if method == "chat.update" {
				ctx = nowOrNever(ctx)
			}
			for range limit {
				if wait, err := tryCall(ctx, l, method, ""); wait > 0 || err != nil {
					t.Fatalf("%s is refused for %s: %v", method, wait, err)
				}
			}
			if wait, err := tryCall(ctx, l, method, ""); wait != 63*time.Second || err != nil {
				t.Errorf("%s is refused for %s: %v", method, wait, err)
			}
			if n := len(w.times(method, start)); n != limit || time.Since(start) > 0 {
				t.Errorf("%d calls of %s in %s", n, method, time.Since(start))
			}
		})
	}
}

// TestUploadsAreNoCalls sends what is no method of the API on as it is.
func TestUploadsAreNoCalls(t *testing.T) {
	w := &network{}
	l := newTestLimiter(w)
	for _, address := range []string{"https://files.slack.com/api/upload/v1/x", "https://slack.com/upload/v1/x"} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if method := l.method(u); method != "" {
			t.Errorf("%s calls %q", address, method)
		}
	}
}

// TestAnAnswerHasItsTime lets an answer begin and never end: the time of a call includes it, but not the wait for a turn.
func TestAnAnswerHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLimiter(nil)
		l.next = tripper(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: stuck{r.Context()}}
		})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, defaultAPI+"chat.update", nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		answer, err := l.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(answer.Body); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != l.timeout {
			t.Errorf("reading ended after %s: %v", time.Since(start), err)
		}
		_ = answer.Body.Close()
	})
}

// stuck is a body that never comes.
type stuck struct{ ctx context.Context }

func (s stuck) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }
func (s stuck) Close() error             { return nil }

// limitedDesk is a desk at a Slack that refuses too many calls, where a minute is shorter.
func limitedDesk(t *testing.T, minute time.Duration) *desk {
	t.Helper()
	server := slacktest.New(slacktest.Options{Trigger: time.Minute, Limits: true, Minute: minute})
	t.Cleanup(server.Close)
	timing := brisk
	timing.Minute, timing.Pace, timing.Edit = minute, minute/60, minute/50
	d := &desk{T: t, server: server, slack: newSlack(t, server, timing), in: &inbox{cards: map[string]agent.Reply{}}}
	d.listen()
	d.linked()
	return d
}

// TestProgressOfAllTurns shows progress in many conversations at once. Edits are left out, but not the last; the answers
// come while edits wait, and Slack need not refuse anything.
func TestProgressOfAllTurns(t *testing.T) {
	const turns, lines = 30, 40
	const minute = 3 * time.Second
	d := limitedDesk(t, minute)
	start := time.Now()
	var talks sync.WaitGroup
	for i := range turns {
		user := fmt.Sprintf("U%02d", i)
		d.server.AddUser(slacktest.User{ID: user, Name: user})
		address := "slack:T0TEST:dm:" + user
		talks.Go(func() {
			for n := range lines {
				d.tell("", agent.Reply{Kind: agent.Progress, Turn: "t1", Text: fmt.Sprint("step ", n), Address: address})
			}
		})
	}
	talks.Wait()
	d.until("each shows its last line", func() bool {
		for i := range turns {
			said := d.server.ByBot(slacktest.DM(fmt.Sprintf("U%02d", i)))
			if len(said) != 1 || said[0].Text != fmt.Sprint("step ", lines-1) {
				return false
			}
		}
		return true
	})
	if n, took := len(d.server.Calls("chat.update")), time.Since(start); n > usual+int(usual*took/minute) {
		t.Errorf("%d edits of %d lines in %s", n, turns*lines, took)
	}
	for i := range turns {
		address := fmt.Sprintf("slack:T0TEST:dm:U%02d", i)
		talks.Go(func() {
			d.tell("", agent.Reply{Kind: agent.Progress, Turn: "t1", Text: "nobody needs this", Address: address})
			d.tell("final "+address, agent.Reply{Kind: agent.Final, Text: "done", Address: address})
			d.tell("", agent.Reply{Kind: agent.SettledMark, Address: address})
		})
	}
	talks.Wait()
	for i := range turns {
		said := d.server.ByBot(slacktest.DM(fmt.Sprintf("U%02d", i)))
		if len(said) != 1 || said[0].Text != "done" {
			t.Errorf("at the end there is %+v", said)
		}
	}
	if n := d.server.Refused(); n > 0 {
		t.Errorf("Slack refused %d calls", n)
	}
}

// TestManyConversationsAtOnce answers in 64 conversations at once, with the limits and the times that Slack really has.
func TestManyConversationsAtOnce(t *testing.T) {
	const conversations = 64
	server := slacktest.New(slacktest.Options{Limits: true})
	t.Cleanup(server.Close)
	d := &desk{T: t, server: server, slack: newSlack(t, server, Timing{}), in: &inbox{}}
	d.listen()
	d.linked()
	var ids []string
	for i := range conversations {
		user := fmt.Sprintf("U%02d", i)
		server.AddUser(slacktest.User{ID: user, Name: user})
		_, deliveries := server.Say(slacktest.Said{User: user, Channel: slacktest.DM(user), Text: "hi"})
		ids = append(ids, deliveries...)
	}
	d.acked(ids...)
	start := time.Now()
	var talks sync.WaitGroup
	for i := range conversations {
		address := fmt.Sprintf("slack:T0TEST:dm:U%02d", i)
		talks.Go(func() { d.tell("k "+address, agent.Reply{Kind: agent.Final, Text: "hello", Address: address}) })
	}
	talks.Wait()
	limit := 10 * time.Second // a message a second for all together would take a minute
	if os.Getenv("NUDGE_LOAD") != "" {
		limit = 1500 * time.Millisecond
	}
	if took := time.Since(start); took > limit {
		t.Errorf("%d answers took %s", conversations, took)
	}
	if n := server.Refused(); n > 0 {
		t.Errorf("Slack refused %d calls", n)
	}
}

// TestARefusedConversationHoldsNoOther lets Slack refuse messages in one conversation, while others are answered, and so is
// it after the time that Slack gave, in order.
func TestARefusedConversationHoldsNoOther(t *testing.T) {
	d := newDesk(t, brisk)
	d.say(slacktest.Said{Text: "hi"})
	d.server.Fail("chat.postMessage", slacktest.Fault{RetryAfter: time.Second})
	say := func(key, address string) error {
		_, err := d.slack.Say(t.Context(), bot.Delivery{Reply: agent.Reply{Kind: agent.Final, Text: key, Address: address}, Key: key})
		return err
	}
	err := say("first", annsDM)
	var send *bot.SendError
	if !errors.As(err, &send) || send.RetryAfter != time.Second || send.Unsure {
		t.Fatalf("refused with %+v", err)
	}
	if err := say("too soon", annsDM); !errors.As(err, &send) || send.RetryAfter <= 0 || send.RetryAfter > time.Second || send.Unsure {
		t.Errorf("before its time it is refused with %+v", err)
	}
	for i := range 5 {
		if err := say(fmt.Sprint("other ", i), "slack:T0TEST:dm:U0BOB"); err != nil {
			t.Errorf("another conversation is refused: %v", err)
		}
	}
	if n := len(d.server.Calls("chat.postMessage")); n != 6 {
		t.Errorf("%d calls, want 6", n)
	}
	var limited *slack.RateLimitedError
	d.slack.pace.mu.Lock() // its time is over
	clear(d.slack.pace.held)
	clear(d.slack.pace.next)
	d.slack.pace.mu.Unlock()
	for _, key := range []string{"first", "second"} {
		if err := say(key, annsDM); errors.As(err, &limited) || err != nil {
			t.Errorf("after its time it is refused: %v", err)
		}
	}
	var texts []string
	for _, m := range d.server.ByBot(slacktest.DM("U0ANN")) {
		texts = append(texts, m.Text)
	}
	if !slices.Equal(texts, []string{"first", "second"}) {
		t.Errorf("said %q", texts)
	}
}

// TestWhatWasNeverSentIsNotInDoubt ends contexts of messages that wait for their channel's second and for the workspace's
// minute.
func TestWhatWasNeverSentIsNotInDoubt(t *testing.T) {
	for _, wait := range []string{"channel", "workspace"} {
		timing := brisk
		if wait == "channel" {
			timing.Pace = time.Hour
		}
		d := newDesk(t, timing)
		d.say(slacktest.Said{Text: "hi"})
		d.tell("first", agent.Reply{Kind: agent.Final, Text: "first", Address: annsDM})
		if wait == "workspace" {
			d.slack.limiter.mu.Lock()
			d.slack.limiter.budget("chat.postMessage").calls = []time.Time{time.Now()}
			d.slack.limiter.budget("chat.postMessage").limit = 1
			d.slack.limiter.mu.Unlock()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := d.slack.Say(ctx, bot.Delivery{Reply: agent.Reply{Kind: agent.Final, Text: "second", Address: annsDM}, Key: "second"})
		cancel()
		var send *bot.SendError
		if !errors.As(err, &send) || send.Unsure || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: it ended with %+v", wait, err)
		}
		if n := len(d.server.Calls("chat.postMessage")); n != 1 {
			t.Errorf("%s: %d messages were sent", wait, n)
		}
	}
}
