package agent_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nudge/agent"
	"nudge/agent/agenttest"
	"nudge/agent/model/openai"
	"nudge/memory"
)

// counted counts the commits of a store.
type counted struct {
	memory.Store
	commits atomic.Int64
}

// Update is the store's.
func (c *counted) Update(ctx context.Context, fn func(memory.Tx) error) error {
	c.commits.Add(1)
	return c.Store.Update(ctx, fn)
}

// provider is a model without latency on a port of this machine: it asks for one tool a step until as many results
// have come as the first word of the message says, then answers. It notes how long it worked.
type provider struct {
	*httptest.Server
	worked atomic.Int64 // nanoseconds
}

func newProvider(b *testing.B) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(p.answer))
	b.Cleanup(func() { p.CloseClientConnections(); p.Close() })
	return p
}

// chat is what the provider and the floor read and write of Chat Completions.
type chat struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream,omitempty"`
	Tools    json.RawMessage `json:"tools,omitempty"`
	Messages []chatMessage   `json:"messages"`
}

type chatMessage struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (p *provider) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	began := time.Now()
	defer func() { p.worked.Add(int64(time.Since(began))) }()
	var req chat
	if err := errors.Join(err, json.Unmarshal(body, &req)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	results, steps := 0, 0
	for _, m := range req.Messages {
		switch m.Role {
		case "user":
			results = 0
			steps = strings.Count(m.Content, "again")
		case "tool":
			results++
		}
	}
	reply := chatMessage{Role: "assistant", Content: "done"}
	if results < steps {
		c := chatCall{ID: fmt.Sprint("call_", len(req.Messages)), Type: "function"}
		c.Function.Name, c.Function.Arguments = "write", `{"x":"words"}`
		reply.Content, reply.Calls = "", []chatCall{c}
	}
	key := map[bool]string{true: "delta", false: "message"}[req.Stream]
	choice := map[string]any{"index": 0, key: reply, "finish_reason": map[bool]string{true: "tool_calls", false: "stop"}[reply.Calls != nil]}
	data, _ := json.Marshal(map[string]any{"model": "m", "choices": []any{choice}, "usage": map[string]int{"prompt_tokens": 100, "completion_tokens": 10}})
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data) // a client that went away needs no answer
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", data)
}

// floor is the smallest loop that loses nothing: it keeps the conversation as lines, and commits the message, before
// every effect, and at the end. With paid, a model call counts as an effect, since it costs money: then a crash can be
// paid for.
type floor struct {
	store  memory.Store
	client *http.Client
	url    string
	paid   bool
}

func (f *floor) append(session string, lines *[]chatMessage, also func(memory.Tx) error) error {
	return f.store.Update(context.Background(), func(tx memory.Tx) error {
		var entries []memory.Entry
		for _, l := range *lines {
			data, err := json.Marshal(l)
			if err != nil {
				return err
			}
			entries = append(entries, memory.Entry{Kind: l.Role, At: time.Now(), Data: data})
		}
		if len(entries) > 0 {
			if _, err := tx.Journal().Append(session, entries...); err != nil {
				return err
			}
		}
		return also(tx)
	})
}

// turn receives a message and answers it. history grows with it.
func (f *floor) turn(session, text string, history *[]chatMessage) error {
	var mail uint64
	err := f.store.Update(context.Background(), func(tx memory.Tx) (err error) {
		mail, err = tx.Inbox().Put(session, []byte(text))
		return err
	})
	if err != nil {
		return err
	}
	fresh := []chatMessage{{Role: "user", Content: text}}
	taken := func(tx memory.Tx) error { return tx.Inbox().Remove(session, mail) }
	none := func(memory.Tx) error { return nil }
	flush := func(also func(memory.Tx) error) error {
		if err := f.append(session, &fresh, also); err != nil {
			return err
		}
		*history = append(*history, fresh...)
		fresh = nil
		return nil
	}
	also := taken
	for {
		if f.paid {
			if err := flush(also); err != nil {
				return err
			}
			also = none
		}
		reply, err := f.ask(append(slices.Clone(*history), fresh...))
		if err != nil {
			return err
		}
		fresh = append(fresh, reply)
		if len(reply.Calls) == 0 {
			done := also
			return flush(func(tx memory.Tx) error {
				_, err := tx.Outbox().Put(session, []byte(reply.Content))
				return errors.Join(err, done(tx))
			})
		}
		if err := flush(also); err != nil {
			return err
		}
		also = none
		for _, c := range reply.Calls {
			fresh = append(fresh, chatMessage{Role: "tool", CallID: c.ID, Content: "write done with " + c.Function.Arguments})
		}
	}
}

// told is what the floor tells a model besides what was said, about as much as Nudge does: what it is and its tools. The
// tools are encoded once.
var told = struct {
	system string
	tools  json.RawMessage
}{
	strings.Repeat("You are an agent in a chat and work with tools. ", 20),
	json.RawMessage(`[` + strings.Repeat(`{"type":"function","function":{"name":"write","description":"Does write.","parameters":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}}},`, 7) +
		`{"type":"function","function":{"name":"look","description":"Does look.","parameters":{"type":"object"}}}]`),
}

// ask asks the model as Nudge does: with the tools, streamed.
func (f *floor) ask(messages []chatMessage) (chatMessage, error) {
	body, err := json.Marshal(chat{Model: "m", Stream: true, Tools: told.tools, Messages: append([]chatMessage{{Role: "system", Content: told.system}}, messages...)})
	if err != nil {
		return chatMessage{}, err
	}
	resp, err := f.client.Post(f.url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return chatMessage{}, err
	}
	defer resp.Body.Close()
	var answer struct {
		Choices []struct{ Delta chatMessage } `json:"choices"`
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return chatMessage{}, fmt.Errorf("read the answer: %w", err)
		}
	}
	if err := lines.Err(); err != nil || len(answer.Choices) == 0 {
		return chatMessage{}, fmt.Errorf("read the answer: %w", err)
	}
	return answer.Choices[0].Delta, nil
}

// harness is Nudge as it is wired, but for what speaks on platforms.
type harness struct {
	store *counted
	agent *agent.Agent
}

// newHarness makes one whose model has a price, if priced: then what a call may cost is on disk before it is made.
func newHarness(b *testing.B, p *provider, priced bool) *harness {
	b.Helper()
	spec, limits := agent.ModelSpec{Name: "m", Window: 128000, MaxOutput: 1000}, agent.Limits{Steps: 20, ToolCalls: 50, Errors: 3}
	if priced {
		spec.PriceIn, spec.PriceOut, limits.Cost = agent.PerMillion(2), agent.PerMillion(12), agent.USD(100)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.WriteBufferSize = 1024, 16<<10 // as the program has it
	b.Cleanup(transport.CloseIdleConnections)
	client, err := openai.New(openai.Config{BaseURL: p.URL + "/v1", Model: "m", Stream: true, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		b.Fatal(err)
	}
	h := &harness{store: &counted{Store: open(b)}}
	write := agenttest.Tool("write", agent.Effectful, "", func(_ context.Context, in agent.Invocation) (agent.Result, error) {
		return agent.Result{Text: "write done with " + string(in.Arguments)}, nil
	})
	h.agent, err = agent.New(agent.Config{
		Store: h.store, Model: client, Tools: []agent.Tool{write},
		Spec: spec, Limits: limits,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.agent.Close(context.Background()) })
	return h
}

// turn says something in a thread of a person's, which begins a turn.
func (h *harness) turn(name, thread string, n int, text string) error {
	who := agent.Person{ID: agent.PersonID("terminal:" + name), Name: name}
	at := who.ID.Home() + ":" + thread
	_, err := h.agent.Receive(context.Background(), agent.Message{
		Keys: []string{fmt.Sprint(at, "-", n)}, ID: fmt.Sprint(n), Session: at, Address: at,
		Provenance: agent.Human, From: who, At: time.Now(), Text: text,
	})
	return err
}

func (h *harness) rest() error { return h.agent.WaitIdle(context.Background(), nil) }

func cpu() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// BenchmarkTurn makes one durable turn of three steps, two of them with a tool, in four ways in turns, so that a busy
// machine is as unfair to each: with a model that costs nothing, against the bare floor, and with one that has a price,
// against the floor that pays. Each turn has a session of its own, a thread of one person's. Times are medians of wall minus
// model.
func BenchmarkTurn(b *testing.B) {
	p := newProvider(b)
	free, priced := newHarness(b, p, false), newHarness(b, p, true)
	const text = "do it again and again"
	floors := []*floor{{open(b), p.Client(), p.URL, false}, {open(b), p.Client(), p.URL, true}}
	ways := []func(n int) error{
		func(n int) error { return errors.Join(free.turn("ann", fmt.Sprint(n), n, text), free.rest()) },
		func(n int) error { return errors.Join(priced.turn("ann", fmt.Sprint(n), n, text), priced.rest()) },
		func(n int) error { return floors[0].turn(fmt.Sprint("s", n), text, &[]chatMessage{}) },
		func(n int) error { return floors[1].turn(fmt.Sprint("s", n), text, &[]chatMessage{}) },
	}
	var walls [4][]time.Duration
	var used [4]time.Duration
	n := 0
	for b.Loop() {
		n++
		for i, way := range ways {
			model, began, spent := p.worked.Load(), time.Now(), cpu()
			if err := way(n); err != nil {
				b.Fatal(err)
			}
			walls[i] = append(walls[i], time.Since(began)-time.Duration(p.worked.Load()-model))
			used[i] += cpu() - spent
		}
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	at := [4]time.Duration{}
	for i := range walls {
		at[i] = median(walls[i])
	}
	b.ReportMetric(ms(at[0]), "ms/turn")
	b.ReportMetric(ms(at[1]), "ms/priced-turn")
	b.ReportMetric(ms(at[2]), "ms/floor")
	b.ReportMetric(ms(at[3]), "ms/paid-floor")
	b.ReportMetric(float64(at[0])/float64(at[2]), "×floor")
	b.ReportMetric(float64(at[1])/float64(at[3]), "×paid-floor")
	b.ReportMetric(float64(free.store.commits.Load())/float64(n), "commits/turn")
	b.ReportMetric(float64(priced.store.commits.Load())/float64(n), "commits/priced-turn")
	b.ReportMetric(ms(used[0])/float64(n), "cpu-ms/turn")
	b.ReportMetric(float64(used[0])/float64(used[2]), "×floor-cpu")
	b.ReportMetric(float64(used[1])/float64(used[3]), "×paid-floor-cpu")
}

// BenchmarkMessages answers one-step messages in 64 sessions at once, in the four ways of BenchmarkTurn in turns. After twenty
// messages each session is followed by a new one.
func BenchmarkMessages(b *testing.B) {
	const sessions = 64
	p := newProvider(b)
	harnesses := []*harness{newHarness(b, p, false), newHarness(b, p, true)}
	client := p.Client()
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = sessions
	floors := []*floor{{open(b), client, p.URL, false}, {open(b), client, p.URL, true}}
	round := func(each func(s int) error) {
		var group sync.WaitGroup
		for s := range sessions {
			group.Go(func() {
				if err := each(s); err != nil {
					b.Error(err)
				}
			})
		}
		group.Wait()
	}
	var took [4]time.Duration
	var histories [2][sessions][]chatMessage
	n := 0
	for b.Loop() {
		if n++; n%20 == 0 {
			histories = [2][sessions][]chatMessage{}
		}
		for i := range took {
			began := time.Now()
			if i < len(harnesses) {
				h := harnesses[i]
				round(func(s int) error { return h.turn(fmt.Sprint("p", s), fmt.Sprint(n/20), n, "hello") })
				if err := h.rest(); err != nil {
					b.Fatal(err)
				}
			} else {
				round(func(s int) error {
					return floors[i-2].turn(fmt.Sprint("s", s, "-", n/20), "hello", &histories[i-2][s])
				})
			}
			took[i] += time.Since(began)
		}
	}
	messages := float64(n * sessions)
	b.ReportMetric(messages/took[0].Seconds(), "messages/s")
	b.ReportMetric(messages/took[1].Seconds(), "priced-messages/s")
	b.ReportMetric(messages/took[2].Seconds(), "floor/s")
	b.ReportMetric(messages/took[3].Seconds(), "paid-floor/s")
	b.ReportMetric(took[2].Seconds()/took[0].Seconds(), "×floor")
	b.ReportMetric(took[3].Seconds()/took[1].Seconds(), "×paid-floor")
}

// BenchmarkLongSession compares a whole turn at message 400 of a session with one at message 100, wall minus model.
func BenchmarkLongSession(b *testing.B) {
	for b.Loop() {
		p := newProvider(b)
		h := newHarness(b, p, true)
		var at [2][]time.Duration
		for n := 1; n <= 420; n++ {
			model, began := p.worked.Load(), time.Now()
			if err := errors.Join(h.turn("ann", "1", n, "hello"), h.rest()); err != nil {
				b.Fatal(err)
			}
			switch took := time.Since(began) - time.Duration(p.worked.Load()-model); {
			case n > 80 && n <= 120:
				at[0] = append(at[0], took)
			case n > 380:
				at[1] = append(at[1], took)
			}
		}
		b.ReportMetric(float64(median(at[0]).Microseconds())/1000, "ms/at-100")
		b.ReportMetric(float64(median(at[1]).Microseconds())/1000, "ms/at-400")
		b.ReportMetric(float64(median(at[1]))/float64(median(at[0])), "400/100")
	}
}
