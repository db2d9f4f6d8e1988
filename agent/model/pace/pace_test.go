package pace

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"nudge/agent/model"
	"nudge/agent/model/demo"
	"nudge/agent/model/modeltest"
	"nudge/agent/model/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// driver runs the suite against a provider with a Model before it.
type driver struct{ most int }

func (d driver) Start(t *testing.T, play modeltest.Script) (model.Model, func() [][]byte) {
	server := modeltest.NewServer(t, func(n int, _ modeltest.ChatRequest) modeltest.Reply { return play(n).Reply() })
	m, err := openai.New(openai.Config{BaseURL: server.URL(), Model: "test-model", Stream: true, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return New(m, Config{MaxParallel: d.most}), func() [][]byte {
		var bodies [][]byte
		for _, r := range server.Requests() {
			bodies = append(bodies, r.Body)
		}
		return bodies
	}
}

func TestContract(t *testing.T) {
	t.Run("no bound", func(t *testing.T) { modeltest.Run(t, driver{}) })
	t.Run("one at once", func(t *testing.T) { modeltest.Run(t, driver{most: 1}) })
	t.Run("demo", func(t *testing.T) { modeltest.RunPure(t, New(demo.New(), Config{})) })
	t.Run("demo, one at once", func(t *testing.T) { modeltest.RunPure(t, New(demo.New(), Config{MaxParallel: 1})) })
}

// provider is a model that a function plays.
type provider func(ctx context.Context, req model.Request, said func(string)) (model.Answer, error)

func (p provider) Answer(ctx context.Context, req model.Request, said func(string)) (model.Answer, error) {
	return p(ctx, req, said)
}

// desk is a provider whose calls stay out until the test ends them. A request is named by its System.
type desk struct {
	mu   sync.Mutex
	out  map[string]chan error
	went []string // all that ever went out, in order
}

func (d *desk) Answer(ctx context.Context, req model.Request, _ func(string)) (model.Answer, error) {
	end := make(chan error, 1)
	d.mu.Lock()
	d.out[req.System] = end
	d.went = append(d.went, req.System)
	d.mu.Unlock()
	select {
	case err := <-end:
		return model.Answer{}, err
	case <-ctx.Done():
		return model.Answer{}, context.Cause(ctx)
	}
}

// asker asks a desk through a Model, inside a bubble.
type asker struct {
	*Model
	t     *testing.T
	desk  *desk
	holds []Hold
	ended map[string]error // guarded by desk.mu
}

func newAsker(t *testing.T, most int) *asker {
	a := &asker{t: t, desk: &desk{out: map[string]chan error{}}, ended: map[string]error{}}
	a.Model = New(a.desk, Config{MaxParallel: most, Held: func(h Hold) {
		a.desk.mu.Lock()
		defer a.desk.mu.Unlock()
		a.holds = append(a.holds, h)
	}})
	return a
}

// ask begins calls, one after another, and returns once they are out or wait.
func (a *asker) ask(ctx context.Context, names ...string) {
	for _, name := range names {
		go func() {
			_, err := a.Answer(ctx, model.Request{System: name}, nil)
			a.desk.mu.Lock()
			defer a.desk.mu.Unlock()
			a.ended[name] = err
		}()
		synctest.Wait()
	}
}

// end ends calls that are out, one after another.
func (a *asker) end(err error, names ...string) {
	a.t.Helper()
	for _, name := range names {
		a.desk.mu.Lock()
		end := a.desk.out[name]
		delete(a.desk.out, name)
		a.desk.mu.Unlock()
		if end == nil {
			a.t.Fatalf("%s is not out", name)
		}
		end <- err
		synctest.Wait()
	}
}

// want checks which calls are out. Those that were let out in one moment reach the desk in any order.
func (a *asker) want(out string) {
	a.t.Helper()
	synctest.Wait()
	a.desk.mu.Lock()
	defer a.desk.mu.Unlock()
	var got []string
	for _, name := range a.desk.went {
		if a.desk.out[name] != nil {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if strings.Join(got, " ") != out {
		a.t.Errorf("%q are out, want %q", got, out)
	}
}

// answered makes calls that are answered, one after another.
func (a *asker) answered(n int) {
	a.t.Helper()
	for range n {
		a.ask(a.t.Context(), "one")
		a.end(nil, "one")
	}
}

func passing(status int, after time.Duration) error {
	return &model.Error{Fault: model.FaultPassing, Status: status, RetryAfter: after, Say: "no"}
}

func faultOf(t *testing.T, err error) *model.Error {
	t.Helper()
	var fault *model.Error
	if !errors.As(err, &fault) {
		t.Fatalf("error is %v, want a *model.Error", err)
	}
	return fault
}

func TestPassedThroughUntouched(t *testing.T) {
	want := model.Answer{Text: "ab", Calls: []model.Call{{ID: "c1", Name: "x"}}, Usage: model.Usage{In: 3, Known: true}, Model: "m"}
	wantErr := &model.Error{Fault: model.FaultMalformed, Say: "no"}
	asked := model.Request{System: "s", MaxOutput: 3}
	m := New(provider(func(_ context.Context, req model.Request, said func(string)) (model.Answer, error) {
		if !reflect.DeepEqual(req, asked) {
			t.Errorf("request is %+v", req)
		}
		said("a")
		said("b")
		return want, wantErr
	}), Config{})
	var pieces []string
	got, err := m.Answer(t.Context(), asked, func(piece string) { pieces = append(pieces, piece) })
	if !reflect.DeepEqual(got, want) || err != wantErr || !slices.Equal(pieces, []string{"a", "b"}) {
		t.Errorf("got %+v, %v, said %q", got, err, pieces)
	}
}

func TestThousandGoOutAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		begin := time.Now()
		m := New(provider(func(context.Context, model.Request, func(string)) (model.Answer, error) {
			time.Sleep(time.Second)
			return model.Answer{}, nil
		}), Config{})
		for range 1000 {
			all.Go(func() {
				if _, err := m.Answer(t.Context(), model.Request{}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestNobodyGoesBeforeTheProvidersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 0)
		a.ask(t.Context(), "a", "b", "x")
		a.end(passing(http.StatusTooManyRequests, 10*time.Second), "a")
		a.end(passing(http.StatusTooManyRequests, 10*time.Second+time.Millisecond), "x") // which is hardly news
		a.ask(t.Context(), "c", "d")
		a.want("b") // which was out already
		time.Sleep(4 * time.Second)
		a.end(passing(0, 2*time.Second), "b") // ends sooner, and so changes nothing
		time.Sleep(6*time.Second + time.Millisecond - 1)
		a.want("")
		time.Sleep(1 + maxGap)
		a.ask(t.Context(), "e")
		time.Sleep(2 * maxGap)
		a.want("c d e")
		a.end(nil, "c", "d", "e")
		time.Sleep(spread)
		a.answered(1)
		if !a.open.Load() {
			t.Error("calls are still held back")
		}
		if len(a.holds) != 1 || a.holds[0].Pause != 10*time.Second || a.holds[0].AtOnce != 0 || a.holds[0].Refusal.Status != 429 {
			t.Errorf("told of %+v", a.holds)
		}
	})
}

// TestSpread: those who waited, and those whom the provider told when to come back, do not come all at once.
func TestSpread(t *testing.T) {
	for _, waits := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var went []time.Time
			var all sync.WaitGroup
			refuse := true
			m := New(provider(func(context.Context, model.Request, func(string)) (model.Answer, error) {
				mu.Lock()
				defer mu.Unlock()
				if refuse {
					refuse = false
					return model.Answer{}, passing(429, 5*time.Second)
				}
				went = append(went, time.Now())
				return model.Answer{}, nil
			}), Config{})
			_, _ = m.Answer(t.Context(), model.Request{}, nil)
			gate := time.Now().Add(5 * time.Second)
			if !waits {
				time.Sleep(5 * time.Second)
			}
			for range 1000 {
				all.Go(func() { _, _ = m.Answer(t.Context(), model.Request{}, nil) })
			}
			all.Wait()
			perMilli := map[time.Duration]int{}
			for _, at := range went {
				if at.Before(gate) || at.After(gate.Add(spread+maxGap)) {
					t.Fatalf("one went out %v after the time", at.Sub(gate))
				}
				perMilli[at.Sub(gate).Truncate(time.Millisecond)]++
			}
			if len(went) != 1000 || len(perMilli) < 200 {
				t.Errorf("%d calls went out in %d different milliseconds", len(went), len(perMilli))
			}
		})
	}
}

func TestLongPauseIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 0)
		a.ask(t.Context(), "a", "b")
		a.end(passing(503, 60*time.Second), "a")
		a.ask(t.Context(), "c") // a minute is waited for
		a.end(passing(429, 150*time.Second), "b")
		a.ask(t.Context(), "d")
		for _, name := range []string{"c", "d"} {
			fault := faultOf(t, a.ended[name])
			if fault.Fault != model.FaultPassing || fault.RetryAfter != 150*time.Second || fault.Status != 0 || !strings.HasSuffix(fault.Say, "in 3 minutes") {
				t.Errorf("%s ended with %+v", name, fault)
			}
		}
		time.Sleep(90*time.Second - 1)
		a.ask(t.Context(), "e")
		if fault := faultOf(t, a.ended["e"]); fault.RetryAfter != 60*time.Second+1 {
			t.Errorf("e ended with %+v", fault)
		}
		time.Sleep(time.Nanosecond)
		a.ask(t.Context(), "f")
		time.Sleep(60*time.Second - 1)
		a.want("")
		time.Sleep(1 + maxGap)
		a.want("f")
		a.end(nil, "f")
	})
}

func TestInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Minute + 1: "2 minutes", 2 * time.Hour: "120 minutes", 2*time.Hour + 1: "3 hours", 366 * 24 * time.Hour: "366 days",
	} {
		if got := inWords(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestFewerAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int64 // of eight
	}{
		"429":                     {passing(429, 0), 4},
		"429 that says when":      {passing(429, time.Millisecond), noBound},
		"503":                     {passing(503, 0), 4},
		"529 that says when":      {passing(529, time.Millisecond), 4},
		"wrapped":                 {errors.Join(errors.New("x"), passing(529, 0)), 4},
		"a fault of its own":      {passing(500, 0), noBound},
		"unreachable":             {passing(0, 0), noBound},
		"refused":                 {&model.Error{Fault: model.FaultRefused, Status: 429, RetryAfter: time.Hour}, noBound},
		"malformed":               {&model.Error{Fault: model.FaultMalformed, Status: 503}, noBound},
		"too long":                {&model.Error{Fault: model.FaultTooLong, Status: 529}, noBound},
		"time that runs back":     {passing(503, -time.Hour), 4},
		"no error of a model":     {errors.New("x"), noBound},
		"the context's own end":   {context.Canceled, noBound},
		"a call that was stopped": {context.DeadlineExceeded, noBound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker(t, 0)
				names := strings.Fields("a b c d e f g h")
				a.ask(t.Context(), names...)
				a.end(c.err, "a")
				if a.bound != c.want {
					t.Errorf("bound is %d, want %d", a.bound, c.want)
				}
				a.end(c.err, names[1:]...) // which went out together with a
				if a.bound != c.want {
					t.Errorf("bound is %d after more of the same, want %d", a.bound, c.want)
				}
				if shrunk := c.want != noBound; shrunk && (len(a.holds) != 1 || a.holds[0].AtOnce != int(c.want)) {
					t.Errorf("told of %+v", a.holds)
				}
			})
		})
	}
}

func TestBoundShrinksAndGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 0)
		no := passing(429, 0)
		a.ask(t.Context(), "a", "b", "c", "d")
		a.end(no, "a") // two at once
		a.ask(t.Context(), "e", "f", "g", "h", "i", "j")
		a.want("b c d")
		a.end(nil, "b", "c") // went out before, so they do not count
		a.want("d e")
		a.end(no, "d")
		a.want("e f")
		a.end(nil, "e") // three
		a.want("f g h")
		a.end(no, "f") // one
		a.want("g h")
		a.end(no, "g")
		a.want("h")
		a.end(errors.New("x"), "h")
		a.want("i")
		a.end(no, "i") // never below one
		a.want("j")
		a.end(nil, "j")
		a.answered(enough - 2)
		if a.open.Load() || a.bound != enough {
			t.Errorf("bound is %d", a.bound)
		}
		a.answered(1)
		if !a.open.Load() || a.bound != noBound {
			t.Errorf("bound is %d, want none", a.bound)
		}
		var told []int
		for _, h := range a.holds {
			told = append(told, h.AtOnce)
		}
		if !slices.Equal(told, []int{2, 1}) {
			t.Errorf("told of bounds %v", told)
		}
	})
}

func TestMaxParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 4)
		a.ask(t.Context(), "a", "b", "c", "d", "e", "f")
		a.want("a b c d")
		a.end(passing(529, 0), "a") // two
		a.end(nil, "b")
		a.want("c d")
		a.end(nil, "c", "d")
		a.want("e f")
		a.end(nil, "e", "f") // four
		a.ask(t.Context(), "g", "h", "i", "j", "k")
		a.want("g h i j")
		a.end(nil, "g", "h", "i", "j", "k")
		if a.bound != 4 || a.open.Load() {
			t.Errorf("bound is %d", a.bound)
		}
	})
}

func TestCancelledCallGivesItsPlaceToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 1)
		cause := errors.New("the person said stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		a.ask(t.Context(), "a")
		a.ask(ctx, "b")
		a.ask(t.Context(), "c")
		a.ask(ctx, "d")
		cancel(cause)
		a.ask(ctx, "e")
		for _, name := range []string{"b", "d", "e"} {
			if a.ended[name] != cause {
				t.Errorf("%s ended with %v, want the context's cause", name, a.ended[name])
			}
		}
		a.want("a")
		a.end(nil, "a")
		a.want("c")
		a.end(nil, "c")
		if !slices.Equal(a.desk.went, []string{"a", "c"}) {
			t.Errorf("%q went out", a.desk.went)
		}
	})
}

// TestLetOutAndCancelledTogether is the moment between a call's being let out and its hearing of it.
func TestLetOutAndCancelledTogether(t *testing.T) {
	m := New(demo.New(), Config{MaxParallel: 1})
	first, second := &waiter{out: make(chan struct{})}, &waiter{out: make(chan struct{})}
	place := m.queue.PushBack(first)
	m.queue.PushBack(second)
	m.letOut()
	if n := m.flying.Load(); n != 1 || m.queue.Len() != 1 {
		t.Fatalf("%d are out and %d wait", n, m.queue.Len())
	}
	m.giveUp(place, first)
	if n := m.flying.Load(); n != 1 || m.queue.Len() != 0 {
		t.Errorf("%d are out and %d wait, want the second in the first one's place", n, m.queue.Len())
	}
}

func TestCancelledInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		a.ask(t.Context(), "a")
		a.end(passing(429, 30*time.Second), "a")
		begin := time.Now()
		a.ask(ctx, "b", "c")
		cancel()
		a.want("")
		if a.ended["b"] != context.Canceled || a.ended["c"] != context.Canceled || time.Since(begin) != 0 {
			t.Errorf("ended: %v after %v", a.ended, time.Since(begin))
		}
		if a.timer.Stop() {
			t.Error("a timer runs for nobody")
		}
	})
}

// TestBoundIsNotLiftedForACrowd: those who wait would all go out at once.
func TestBoundIsNotLiftedForACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 0)
		var names []string
		for i := range 3 * enough {
			names = append(names, strconv.Itoa(i))
		}
		a.ask(t.Context(), "a")
		a.end(passing(429, 0), "a")
		a.ask(t.Context(), names...)
		a.end(nil, names[:enough]...)
		if a.bound != enough+1 || len(a.desk.out) != enough+1 {
			t.Errorf("%d are out and the bound is %d", len(a.desk.out), a.bound)
		}
		a.end(nil, names[enough:]...)
		if a.bound != noBound {
			t.Errorf("bound is %d, want none", a.bound)
		}
	})
}

func TestPanicGivesThePlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		m := New(provider(func(context.Context, model.Request, func(string)) (model.Answer, error) {
			if calls++; calls == 1 {
				panic("boom")
			}
			return model.Answer{}, nil
		}), Config{MaxParallel: 2})
		m.bound = 1
		func() {
			defer func() { _ = recover() }()
			_, _ = m.Answer(t.Context(), model.Request{}, nil)
		}()
		if m.flying.Load() != 0 || m.bound != 1 {
			t.Errorf("%d still out, and the bound is %d", m.flying.Load(), m.bound)
		}
		if _, err := m.Answer(t.Context(), model.Request{}, nil); err != nil {
			t.Error(err)
		}
	})
}

// TestSlowListenerHoldsNobodyUp: only the call that was refused waits for what Held does.
func TestSlowListenerHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, 0)
		listening := make(chan struct{})
		a.held = func(Hold) { <-listening }
		a.ask(t.Context(), "a", "b", "c")
		a.end(passing(503, 0), "a")
		a.ask(t.Context(), "d")
		a.end(nil, "b", "c")
		a.want("d")
		a.end(nil, "d")
		if _, ended := a.ended["a"]; ended || len(a.ended) != 3 {
			t.Errorf("ended: %v", a.ended)
		}
		close(listening)
	})
}

func TestHealthyProviderCostsNoMemory(t *testing.T) {
	m := New(provider(func(context.Context, model.Request, func(string)) (model.Answer, error) { return model.Answer{}, nil }), Config{})
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _, _ = m.Answer(ctx, model.Request{}, nil) }); n != 0 {
		t.Errorf("a call takes %v allocations", n)
	}
}
