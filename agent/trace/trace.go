// Package trace shows what happened in a run: as text for people, as JSON lines for scripts, or as spans.
//
// It reads the journal, the only record, so a trace of last year's run is as good as that of one under way. Start
// with [Run].
package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"nudge/agent"
	"nudge/memory"
)

// Run reads the events of a run, or of all runs of a turn, by id. An id that there is not gives an error that says so.
func Run(tx memory.Tx, id string) ([]agent.Event, error) {
	session, found, err := agent.FindTurn(tx, id)
	if err != nil {
		return nil, fmt.Errorf("look for run %s: %w", id, err)
	}
	turn, _, oneRun := strings.Cut(id, ".")
	var events []agent.Event
	unknown := fmt.Errorf("there is no run or turn %q; `nudge sessions` lists the newest", id)
	if !found {
		return nil, unknown
	}
	ran := !oneRun
	err = agent.Events(tx, session, 0, func(e agent.Event) error {
		if e.Turn == turn && (!oneRun || e.Run == id || e.Run == "") {
			events = append(events, e)
			ran = ran || e.Run == id
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read run %s: %w", id, err)
	}
	if !ran {
		return nil, unknown
	}
	return events, nil
}

// Text writes events a line each, with the time since the first.
func Text(w io.Writer, events []agent.Event) error {
	for _, e := range events {
		if _, err := fmt.Fprintf(w, "%9.3fs  %-17s %s\n", e.Time.Sub(events[0].Time).Seconds(), e.Kind, words(e)); err != nil {
			return err
		}
	}
	return nil
}

// words are what a line of text says of an event besides its kind.
func words(e agent.Event) string {
	var parts []string
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(e.Kind == "run_started", "%s", e.Run)
	add(e.Step > 0, "step %d", e.Step)
	add(e.Tool != "", "%s", e.Tool)
	add(e.Call != "", "(%s)", e.Call)
	add(e.Card != "", "card %s", e.Card)
	add(e.Heartbeat != "", "%s", e.Heartbeat)
	add(e.Model != "", "%s", e.Model)
	add(e.Decision != "", "%s by %s", e.Decision, e.By)
	add(e.TokensIn > 0 || e.TokensOut > 0, "%d tokens in, %d out", e.TokensIn, e.TokensOut)
	add(e.Unknown, "tokens unknown")
	add(e.CostUSD > 0, "$%.6f", e.CostUSD)
	add(e.Calls > 0, "%d calls", e.Calls)
	add(e.DurationMS > 0, "%.1f ms", e.DurationMS)
	add(e.Size > 0 && e.Tool != "", "%d bytes", e.Size)
	add(e.Failed, "failed")
	add(e.Reason != "", "%s", e.Reason)
	return strings.Join(parts, "  ")
}

// Lines writes events as lines of JSON.
func Lines(w io.Writer, events []agent.Event) error {
	encoder := json.NewEncoder(w)
	for _, e := range events {
		if err := encoder.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// Span is a stretch of time with a name. Attribute names are those of OpenTelemetry's conventions for generative AI.
type Span struct {
	Trace      string         `json:"trace_id"`
	ID         string         `json:"span_id"`
	Parent     string         `json:"parent_span_id,omitempty"`
	Name       string         `json:"name"`
	Start      time.Time      `json:"start_time"`
	End        time.Time      `json:"end_time"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// Spans makes a span of each run, model call and tool call.
func Spans(events []agent.Event) []Span {
	var spans []Span
	runs := map[string]int{} // run → its span
	for _, e := range events {
		span := Span{Trace: e.Turn, ID: fmt.Sprintf("%s-%d", e.Turn, e.Sequence), Parent: e.Run, Start: e.Time, End: e.Time}
		span.Start = e.Time.Add(-time.Duration(e.DurationMS * float64(time.Millisecond)))
		switch e.Kind {
		case "run_started":
			span.ID, span.Parent, span.Name = e.Run, "", "invoke_agent nudge"
			span.Attributes = map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": e.Session}
			runs[e.Run] = len(spans)
		case "run_stopped":
			if at, ok := runs[e.Run]; ok {
				spans[at].End = e.Time
				spans[at].Attributes["nudge.reason"] = e.Reason
			}
			continue
		case "model_call":
			span.Name = strings.TrimSpace("chat " + e.Model)
			span.Attributes = map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.response.model": e.Model,
				"gen_ai.usage.input_tokens": e.TokensIn, "gen_ai.usage.output_tokens": e.TokensOut, "nudge.cost_usd": e.CostUSD,
			}
		case "tool_result":
			span.Name = "execute_tool " + e.Tool
			span.Attributes = map[string]any{
				"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": e.Tool, "gen_ai.tool.call.id": e.Call, "nudge.failed": e.Failed,
			}
		default:
			continue
		}
		spans = append(spans, span)
	}
	return spans
}

// SpanLines writes spans as lines of JSON.
func SpanLines(w io.Writer, spans []Span) error {
	encoder := json.NewEncoder(w)
	for _, s := range spans {
		if err := encoder.Encode(s); err != nil {
			return err
		}
	}
	return nil
}
