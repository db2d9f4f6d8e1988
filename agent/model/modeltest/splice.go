package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// Writer is how a client writes its requests, each spliced from the one before.
type Writer struct {
	Encode func(ctx context.Context, req model.Request) (wire.Pieces, error)
	Kept   func(memo *model.Memo) *wire.Beginning // what the client keeps of a conversation
}

// RunSplices checks that of a conversation that goes on only the end is written, and that nothing is written over.
func RunSplices(t *testing.T, w Writer) {
	t.Run("only the end is written", func(t *testing.T) { runOnlyTheEnd(t, w) })
	t.Run("bodies stay", func(t *testing.T) { runBodiesStay(t, w) })
}

// history returns a conversation of about so many bytes: people ask, and an assistant calls a tool and answers.
func history(size int) []model.Message {
	page := strings.Repeat("- a line of a file, with \"quotes\", a <tag> and a word like Grüße\n", 15)
	var out []model.Message
	for n := 0; size > 0; n++ {
		id := fmt.Sprintf("call_%04d", n)
		turn := []model.Message{
			{Role: model.User, Text: fmt.Sprintf("Question %d: what does the next file say about the weather in Oslo, and is it right?", n)},
			{Role: model.Assistant, Calls: []model.Call{{ID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"notes/%d.md","offset":0}`, n)}}},
			{Role: model.ToolRole, CallID: id, Text: fmt.Sprint(n, page)},
			{Role: model.Assistant, Text: fmt.Sprint(n, " ", strings.Repeat("It says that it rains. ", 15))},
		}
		for _, m := range turn {
			size -= len(m.Text)
			for _, c := range m.Calls {
				size -= len(c.Arguments)
			}
		}
		out = append(out, turn...)
	}
	return out
}

// offer returns as many tools as an agent mostly has.
func offer() []model.Tool {
	var out []model.Tool
	for n := range 16 {
		out = append(out, model.Tool{Name: fmt.Sprint("tool_", n), Description: "Reads a file or lists a folder, <whatever> it is.", Schema: json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string","description":"where it is"},"limit":{"type":"integer"}},"required":["path"]}`)})
	}
	return out
}

// runOnlyTheEnd: of a conversation that goes on, only what is new is written, back to where an answer begins; the tools are not.
func runOnlyTheEnd(t *testing.T, w Writer) {
	messages := history(10_000)
	for n := 3; n < len(messages); n++ {
		req := model.Request{System: "s", Messages: messages[:n], Tools: offer(), Memo: &model.Memo{}}
		if _, err := w.Encode(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if err := w.Kept(req.Memo).Open("s", offer(), func() (any, error) { return nil, errors.New("it is") }); err != nil {
			t.Errorf("whether the head is written again: %v", err)
		}
		want := n
		for messages[want].Role != model.Assistant {
			want--
		}
		if from := w.Kept(req.Memo).Resume(messages[:n+1]); from != want {
			t.Errorf("of %d messages, one of which is new, all from %d on are written", n+1, from)
		}
	}
}

// runBodiesStay: a request that was written, and may be under way, is not changed when the next is written.
func runBodiesStay(t *testing.T, w Writer) {
	messages := history(5_000)
	req := model.Request{System: "s", Tools: offer(), Memo: &model.Memo{}}
	var bodies []wire.Pieces
	var reading sync.WaitGroup
	defer reading.Wait()
	var asWritten []string
	for i, n := range []int{5, 9, 6, 2, 9, 9} {
		req.Messages = slices.Clone(messages[:n])
		for k := range req.Messages[1:] {
			req.Messages[1+k].Text = fmt.Sprint(i, req.Messages[1+k].Text) // other bytes in the same place
		}
		body, err := w.Encode(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		reading.Go(func() { _, _ = io.Copy(io.Discard, body.Reader()) })
		bodies, asWritten = append(bodies, body), append(asWritten, string(bytes.Join(body, nil)))
	}
	for i, body := range bodies {
		if got := string(bytes.Join(body, nil)); got != asWritten[i] {
			t.Errorf("request %d was\n%s\nand is now\n%s", i, asWritten[i], got)
		}
	}
}

// BenchmarkSpliced compares writing the requests of a conversation that grows from 100 KB to 120 KB, of which two messages
// are new each time, with json.Marshal of its messages. The two take turns in long stretches, since the garbage of one
// should not be cleared away in the time of the other.
func BenchmarkSpliced(b *testing.B, w Writer) {
	messages := history(120_000)
	first := len(history(100_000))
	req := model.Request{System: "You help.", Tools: offer(), MaxOutput: 1000}
	write := func(n int) {
		req.Messages = messages[:n]
		if _, err := w.Encode(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
	marshal := func(n int) {
		if _, err := json.Marshal(messages[:n]); err != nil {
			b.Fatal(err)
		}
	}
	each := func(do func(n int)) time.Duration {
		begin := time.Now()
		for n := first + 1; n <= len(messages); n += 2 {
			do(n)
		}
		return time.Since(begin)
	}
	var spliced, marshalled time.Duration
	for b.Loop() {
		req.Memo = &model.Memo{}
		write(first - 1)
		spliced += each(write)
		marshalled += each(marshal)
	}
	requests := float64(b.N * ((len(messages) - first + 1) / 2))
	b.ReportMetric(float64(spliced.Nanoseconds())/requests, "spliced-ns")
	b.ReportMetric(float64(marshalled.Nanoseconds())/requests, "marshal-ns")
	b.ReportMetric(float64(marshalled)/float64(spliced), "marshal/spliced")
	b.ReportMetric(float64(req.Memo.Size()), "memo-bytes")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkWhole writes the same request without a memo.
func BenchmarkWhole(b *testing.B, w Writer) {
	req := model.Request{System: "You help.", Tools: offer(), MaxOutput: 1000, Messages: history(100_000)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Encode(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
