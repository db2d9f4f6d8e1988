// Package modeltest has what tests of models need: a contract suite that every [model.Model] passes, and providers of
// Chat Completions and of Anthropic's Messages that do as a test says.
//
// [Run] is for models that talk to a provider: a [Driver] says how to reach one that plays a [Script] in that provider's
// wire format. [RunPure] is the part that needs no provider. [RunLine] is for what goes over the line besides answers,
// [RunSplices] for how requests are written, and [AnswerToAnything] for fuzzing; [Canned] and [Slow] are providers without a
// network.
package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"nudge/agent/model"
)

// End says how a provider ends its answer.
type End string

// The ends. Only the first is an answer.
const (
	EndWhole      End = ""           // as it should
	EndOverloaded End = "overloaded" // there is no answer: the provider has too much to do
	EndRefused    End = "refused"    // there is no answer: the key is not accepted
	EndTooLong    End = "too long"   // there is no answer: the request does not fit the model's window
	EndCutOff     End = "cut off"    // the line drops after all of the text and calls, before anything says that they were all
	EndHangs      End = "hangs"      // nothing comes after the text and calls, and the line stays open
)

// Turn is what a provider does with one request, in no provider's words. Usage is reported if it is Known.
type Turn struct {
	Text  string
	Calls []model.Call
	Usage model.Usage
	Limit bool // the output limit ended the answer
	End   End
}

// Script says what to do with the n-th request, counted from 1. It may be called concurrently.
type Script func(n int) Turn

// Driver makes models whose provider plays a script.
type Driver interface {
	// Start returns such a model, and a function that returns the bodies of the requests so far. Whatever it starts ends
	// with the test.
	Start(t *testing.T, play Script) (m model.Model, bodies func() [][]byte)
}

// Reply returns what a [Server] does for a turn.
func (turn Turn) Reply() Reply {
	fail := func(status int, body string) Reply { return Reply{Status: status, Body: body} }
	switch turn.End {
	case EndOverloaded:
		return fail(529, `{"error":{"type":"overloaded_error","message":"<b>Overloaded</b> req_0123"}}`)
	case EndRefused:
		return fail(401, `{"error":{"message":"Incorrect API key provided: sk-test...0001"}}`)
	case EndTooLong:
		return fail(400, `{"error":{"code":"context_length_exceeded","message":"maximum context length is 8192 tokens"}}`)
	}
	reply := Reply{
		Text: turn.Text, Calls: turn.Calls, Usage: turn.Usage,
		Hang: turn.End == EndHangs, BreakOff: turn.End == EndCutOff,
	}
	if turn.Limit {
		reply.Finish = "length"
	}
	return reply
}

// Run checks a model that talks to a provider.
func Run(t *testing.T, d Driver) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Driver)
	}{
		{"pure", func(t *testing.T, d Driver) { RunPure(t, start(t, d, Turn{Text: "Good morning.", Usage: someUsage})) }},
		{"text", runText},
		{"two parallel calls", runCalls},
		{"usage unknown", runUnknownUsage},
		{"output limit", runLimit},
		{"faults", runFaults},
		{"cut off", runCutOff},
		{"cancel while it hangs", runCancelHanging},
		{"cancel while it speaks", runCancelSpeaking},
		{"prefix", runPrefix},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, d) })
	}
}

// RunPure checks what holds for every model: that the same request gets the same answer, also concurrently; that the
// answer keeps what model.Answer promises; and that a context that has ended ends the call with its cause. M must
// answer, and do so at once, the user message "Hello" with one tool on offer.
func RunPure(t *testing.T, m model.Model) {
	t.Run("valid", func(t *testing.T) {
		answer, said := ask(t, m, hello())
		checkAnswer(t, answer, said)
		if answer.Text == "" && len(answer.Calls) == 0 {
			t.Error("the answer has neither text nor calls")
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		answer, err := m.Answer(t.Context(), hello(), nil)
		if err != nil {
			t.Fatalf("answer without a listener: %v", err)
		}
		checkCalls(t, answer)
	})
	t.Run("deterministic", func(t *testing.T) { runDeterministic(t, m) })
	t.Run("cancelled before", func(t *testing.T) {
		cause := errors.New("the person said stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		answer, err := m.Answer(ctx, hello(), func(piece string) { t.Errorf("said %q after the end", piece) })
		if !errors.Is(err, cause) {
			t.Errorf("error is %v, want the context's cause", err)
		}
		checkNothing(t, answer)
	})
}

var someUsage = model.Usage{In: 21, Out: 7, Cached: 5, Known: true}

func hello() model.Request {
	return model.Request{
		System:   "You are a good friend.",
		Messages: []model.Message{{Role: model.User, Text: "Hello"}},
		Tools: []model.Tool{{
			Name: "weather", Description: "Says how the weather is.",
			Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`),
		}},
		MaxOutput: 100,
	}
}

func start(t *testing.T, d Driver, turn Turn) model.Model {
	t.Helper()
	m, _ := d.Start(t, func(int) Turn { return turn })
	return m
}

func ask(t *testing.T, m model.Model, req model.Request) (model.Answer, string) {
	t.Helper()
	var said strings.Builder
	ended := false
	answer, err := m.Answer(t.Context(), req, func(piece string) {
		if ended {
			t.Errorf("said %q after the answer", piece)
		}
		said.WriteString(piece)
	})
	ended = true
	if err != nil {
		t.Fatalf("answer: %v", err)
	}
	return answer, said.String()
}

func checkAnswer(t *testing.T, answer model.Answer, said string) {
	t.Helper()
	if said != answer.Text {
		t.Errorf("said %q, but the text is %q", said, answer.Text)
	}
	switch answer.Finish {
	case model.FinishStop, model.FinishCalls, model.FinishLength, model.FinishFilter:
	default:
		t.Errorf("finish is %q", answer.Finish)
	}
	if (answer.Finish == model.FinishCalls) != (len(answer.Calls) > 0) && answer.Finish != model.FinishLength {
		t.Errorf("finish is %q with %d calls", answer.Finish, len(answer.Calls))
	}
	if u := answer.Usage; !u.Known && u != (model.Usage{}) || u.In < 0 || u.Out < 0 || u.Cached < 0 || u.Cached > u.In {
		t.Errorf("usage is %+v", u)
	}
	checkCalls(t, answer)
}

func checkCalls(t *testing.T, answer model.Answer) {
	t.Helper()
	ids := map[string]bool{}
	for _, c := range answer.Calls {
		if c.ID == "" || ids[c.ID] || c.Name == "" {
			t.Errorf("calls have missing names, or missing or repeated ids: %+v", answer.Calls)
		}
		ids[c.ID] = true
	}
}

func checkNothing(t *testing.T, answer model.Answer) {
	t.Helper()
	if !reflect.DeepEqual(answer, model.Answer{}) {
		t.Errorf("an error came with the answer %+v", answer)
	}
}

func runDeterministic(t *testing.T, m model.Model) {
	want, _ := ask(t, m, hello())
	const callers = 4
	got, errs := make([]model.Answer, callers), make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { got[i], errs[i] = m.Answer(t.Context(), hello(), nil) })
	}
	all.Wait()
	for i := range callers {
		if errs[i] != nil || !reflect.DeepEqual(got[i], want) {
			t.Errorf("the same request got %+v, %v; before it got %+v", got[i], errs[i], want)
		}
	}
}

func runText(t *testing.T, d Driver) {
	const text = "Grüße aus Oslo 👋\n\n- `a < b && c > d`\n- done"
	answer, said := ask(t, start(t, d, Turn{Text: text, Usage: someUsage}), hello())
	checkAnswer(t, answer, said)
	if answer.Text != text || answer.Finish != model.FinishStop || answer.Usage != someUsage || len(answer.Calls) != 0 {
		t.Errorf("answer is %+v", answer)
	}
	if answer.Model == "" {
		t.Error("the answer does not say which model gave it")
	}
}

func runCalls(t *testing.T, d Driver) {
	want := []model.Call{
		{ID: "c1", Name: "weather", Arguments: `{"city":"Oslo"}`},
		{ID: "c2", Name: "weather", Arguments: `{"city":"Lima","id":1729876543210987654}`},
	}
	answer, said := ask(t, start(t, d, Turn{Text: "Let me look.", Calls: want, Usage: someUsage}), hello())
	checkAnswer(t, answer, said)
	if !reflect.DeepEqual(answer.Calls, want) || answer.Finish != model.FinishCalls || answer.Text != "Let me look." {
		t.Errorf("answer is %+v, want calls %+v", answer, want)
	}
}

func runUnknownUsage(t *testing.T, d Driver) {
	answer, said := ask(t, start(t, d, Turn{Text: "Hi"}), hello())
	checkAnswer(t, answer, said)
	if answer.Usage.Known {
		t.Errorf("usage is %+v, but none was reported", answer.Usage)
	}
}

func runLimit(t *testing.T, d Driver) {
	turn := Turn{Text: "Let me", Limit: true, Calls: []model.Call{{ID: "c1", Name: "weather", Arguments: `{"city":"Os`}}}
	answer, said := ask(t, start(t, d, turn), hello())
	checkAnswer(t, answer, said)
	if answer.Finish != model.FinishLength || len(answer.Calls) != 0 || answer.Text != "Let me" {
		t.Errorf("answer is %+v, want its text, finish length and no call that was cut", answer)
	}
}

func runFaults(t *testing.T, d Driver) {
	for end, want := range map[End]model.Fault{
		EndOverloaded: model.FaultPassing, EndRefused: model.FaultRefused, EndTooLong: model.FaultTooLong,
	} {
		t.Run(string(end), func(t *testing.T) {
			m, bodies := d.Start(t, func(int) Turn { return Turn{End: end} })
			answer, err := m.Answer(t.Context(), hello(), nil)
			checkNothing(t, answer)
			fault := checkFault(t, err, want)
			if fault.Began || fault.Status < 400 {
				t.Errorf("error is %+v, want one that never began, with its status", fault)
			}
			if n := len(bodies()); n != 1 {
				t.Errorf("asked %d times, want 1: retrying is not the model's business", n)
			}
		})
	}
}

// checkFault checks an error's kind and that a person may read its line.
func checkFault(t *testing.T, err error, want model.Fault) *model.Error {
	t.Helper()
	var fault *model.Error
	if !errors.As(err, &fault) {
		t.Fatalf("error is %v, want a *model.Error", err)
	}
	if fault.Fault != want {
		t.Errorf("fault is %q, want %q", fault.Fault, want)
	}
	CheckSay(t, fault)
	return fault
}

func runCutOff(t *testing.T, d Driver) {
	m := start(t, d, Turn{
		Text: "I will pay.", End: EndCutOff, Calls: []model.Call{{ID: "c1", Name: "weather", Arguments: `{"city":"Oslo"}`}},
	})
	answer, err := m.Answer(t.Context(), hello(), nil)
	checkNothing(t, answer)
	if fault := checkFault(t, err, model.FaultPassing); !fault.Began {
		t.Error("the error does not say that the answer had begun")
	}
}

func runCancelHanging(t *testing.T, d Driver) {
	cause := errors.New("the person said stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	m, _ := d.Start(t, func(int) Turn {
		cancel(cause)
		return Turn{End: EndHangs}
	})
	answer, err := m.Answer(ctx, hello(), nil)
	checkNothing(t, answer)
	if !errors.Is(err, cause) {
		t.Errorf("error is %v, want the context's cause", err)
	}
}

func runCancelSpeaking(t *testing.T, d Driver) {
	cause := errors.New("the person said stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	m := start(t, d, Turn{Text: "One moment please, I am still looking."})
	said := 0
	answer, err := m.Answer(ctx, hello(), func(string) {
		said++
		cancel(cause)
	})
	checkNothing(t, answer)
	if !errors.Is(err, cause) {
		t.Errorf("error is %v, want the context's cause", err)
	}
	if said != 1 {
		t.Errorf("said %d pieces, want 1: the context ended with the first", said)
	}
}

// runPrefix checks that a conversation that went on begins with the bytes it had before, through its last message.
func runPrefix(t *testing.T, d Driver) {
	m, bodies := d.Start(t, func(int) Turn { return Turn{Text: "fine"} })
	req := hello()
	req.Messages[0].Text = "How is a < b && <c>?"
	ask(t, m, req)
	ask(t, m, req)
	longer := req
	longer.MaxOutput = 50
	longer.Messages = append(longer.Messages,
		model.Message{Role: model.Assistant, Calls: []model.Call{{ID: "c1", Name: "weather", Arguments: `{"city":"Oslo"}`}}},
		model.Message{Role: model.ToolRole, CallID: "c1", Text: "rain"},
		model.Message{Role: model.Assistant, Text: "It rains."},
		model.Message{Role: model.User, Text: "Thanks"},
	)
	ask(t, m, longer)
	got := bodies()
	if len(got) != 3 {
		t.Fatalf("%d requests, want 3", len(got))
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Errorf("the same request gave\n%s\nand then\n%s", got[0], got[1])
	}
	end := bytes.Index(got[0], []byte(req.Messages[0].Text))
	if end < 0 {
		t.Fatalf("the message's text is not in the request as it is: %s", got[0])
	}
	end += len(req.Messages[0].Text)
	if !bytes.HasPrefix(got[2], got[0][:end]) {
		t.Errorf("the longer conversation\n%s\ndoes not begin with the shorter\n%s", got[2], got[0][:end])
	}
}
