package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"nudge/memory"
)

// Event is one thing that happened in a session, in the words of the trace: run_started, step, model_call,
// model_retry, tool_call, tool_progress, tool_result, approval_asked, approval_decided, question_asked,
// question_answered, steer_taken, compacted, woke, run_stopped. Prompts, arguments and results are not in it: the journal
// has them.
type Event struct {
	Kind     string    `json:"kind"`
	Session  string    `json:"session"`
	Turn     string    `json:"turn,omitempty"`
	Run      string    `json:"run,omitempty"`
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"`

	Step       int     `json:"step,omitempty"`
	DurationMS float64 `json:"duration_ms,omitempty"`
	TokensIn   int     `json:"tokens_in,omitempty"`
	TokensOut  int     `json:"tokens_out,omitempty"`
	CostUSD    float64 `json:"cost_usd,omitempty"`
	Unknown    bool    `json:"unknown,omitempty"` // the tokens are not known
	Size       int     `json:"size,omitempty"`    // bytes of a result or an answer; messages that a steer took
	Model      string  `json:"model,omitempty"`
	Tool       string  `json:"tool,omitempty"`
	Call       string  `json:"call,omitempty"`
	Card       string  `json:"card,omitempty"`
	Effect     Effect  `json:"effect,omitempty"`
	Decision   Verdict `json:"decision,omitempty"`
	By         string  `json:"by,omitempty"`
	Calls      int     `json:"calls,omitempty"` // that an answer asked for
	Heartbeat  string  `json:"heartbeat,omitempty"`
	Failed     bool    `json:"failed,omitempty"`
	Reason     string  `json:"reason,omitempty"`
}

// Events calls fn for each event of a session with a number greater than after, in order.
func Events(tx memory.Tx, session string, after uint64, fn func(Event) error) error {
	return tx.Journal().Read(session, after, func(line memory.Entry) error {
		e, err := decode(line)
		if err != nil || e == nil {
			return err
		}
		event, ok := eventOf(e)
		if !ok {
			return nil
		}
		event.Session, event.Sequence, event.Time = session, line.Seq, line.At
		return fn(event)
	})
}

// eventOf is an entry in the words of the trace; entries that it has no word for give false.
func eventOf(e entry) (Event, bool) {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	switch e := e.(type) {
	case *runEntry:
		return Event{Kind: e.kind(), Turn: e.Turn, Run: e.Run, Reason: e.Why}, true
	case *modelAskedEntry:
		if e.Summary {
			return Event{}, false
		}
		return Event{Kind: "step", Turn: e.Turn, Run: e.Run, Step: e.Step}, true
	case *modelRetryEntry:
		return Event{Kind: e.kind(), Turn: e.Turn, Run: e.Run, Step: e.Step, DurationMS: ms(e.Wait), Reason: e.Reason}, true
	case *modelFallbackEntry:
		return Event{Kind: kindModelRetry, Turn: e.Turn, Run: e.Run, Step: e.Step, Model: e.To, CostUSD: e.Charge.USD(), Reason: e.From + " did not answer: " + e.Reason}, true
	case *modelCallEntry:
		return Event{
			Kind: e.kind(), Turn: e.Turn, Run: e.Run, Step: e.Step, DurationMS: ms(e.Took), Model: e.Model,
			TokensIn: e.Usage.In, TokensOut: e.Usage.Out, CostUSD: e.Cost.USD(), Unknown: !e.Usage.Known,
			Size: len(e.Text), Calls: len(e.Calls), Reason: e.why(),
		}, true
	case *modelLostEntry:
		if e.Unsent {
			return Event{}, false
		}
		return Event{
			Kind: kindModelCall, Turn: e.Turn, Run: e.Run, Step: e.Step, CostUSD: e.Charge.USD(), Unknown: e.Unknown, Failed: true, Reason: e.Reason,
		}, true
	case *toolCallEntry:
		event := Event{Kind: e.kind(), Turn: e.Turn, Run: e.Run, Tool: e.Tool, Call: e.Call, Card: e.Card, Effect: e.Effect}
		if e.Rule != "" {
			event.Reason = fmt.Sprintf("allowed by rule %s of %s", e.Rule, e.RuleOf)
		}
		return event, true
	case *progressEntry:
		return Event{Kind: e.kind(), Turn: e.Turn, Run: e.Run, Tool: e.Tool, Call: e.Call, Size: len(e.Line)}, true
	case *toolResultEntry:
		reason := "ran"
		if !e.Ran {
			reason = "answered in words"
		}
		return Event{
			Kind: e.kind(), Turn: e.Turn, Run: e.Run, Tool: e.Tool, Call: e.Call, Card: e.Card, DurationMS: ms(e.Took), Size: e.Size,
			Failed: e.Failed, Reason: reason,
		}, true
	case *cardEntry:
		if e.Resumes {
			return Event{}, false // the run that follows tells it
		}
		return Event{Kind: e.kind(), Turn: e.Turn, Run: e.Run, Tool: e.Tool, Call: e.Call, Card: e.Card, Reason: string(e.Policy)}, true
	case *decidedEntry:
		if e.Resumes {
			return Event{}, false
		}
		event := Event{Kind: e.kind(), Turn: e.Turn, Run: e.Run, Tool: e.Tool, Call: e.Call, Card: e.Card, Decision: e.Verdict, By: string(e.By)}
		if e.Rule != "" {
			event.Reason = fmt.Sprintf("rule %s until %s%s", e.Rule, e.Until.Format(time.RFC3339), withOpen(e.Open))
		}
		return event, true
	case *steerEntry:
		return Event{Kind: e.kind(), Turn: e.Turn, Run: e.Run, Step: e.Step, Size: len(e.IDs)}, true
	case *compactedEntry:
		return Event{Kind: e.kind(), Turn: e.Turn, Run: e.Run, TokensIn: e.Before, TokensOut: e.After}, true
	case *wokeEntry:
		return Event{Kind: e.kind(), Turn: e.Turn, Run: e.Run, Heartbeat: e.Heartbeat}, true
	case *stoppedEntry:
		return Event{Kind: e.kind(), Turn: e.Turn, Run: e.Run, Reason: string(e.Reason)}, true
	}
	return Event{}, false
}

// why is how the answer ended, or what it was for.
func (e *modelCallEntry) why() string {
	if e.Summary {
		return "summary"
	}
	return string(e.Finish)
}

// TurnOf is the turn that a line of a journal belongs to; "" when it belongs to none.
func TurnOf(line memory.Entry) string {
	var of struct {
		Turn string `json:"turn"`
	}
	if json.Unmarshal(line.Data, &of) != nil {
		return ""
	}
	return of.Turn
}
