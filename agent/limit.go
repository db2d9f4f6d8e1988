package agent

import (
	"fmt"
	"time"

	"nudge/agent/model"
	"nudge/schedule"
)

// StopReason says why a run ended, in the words of the trace.
type StopReason string

// The reasons. Waiting ends a run; every other one settles the turn.
const (
	Completed    StopReason = "completed"
	Waiting      StopReason = "waiting"
	StepLimit    StopReason = "step_limit"
	ToolLimit    StopReason = "tool_limit"
	TokenLimit   StopReason = "token_limit"
	Budget       StopReason = "budget"
	TimedOut     StopReason = "timeout"
	TooManyErrs  StopReason = "errors"
	Cancelled    StopReason = "cancelled"
	ContextLimit StopReason = "context_limit"
	ModelError   StopReason = "model_error"
	Repeated     StopReason = "repeated_call"
	Failed       StopReason = "failed" // a check of the operator's ended it
)

// Money is an amount in millionths of a millionth of a US dollar: a price in dollars per million tokens times 10⁶
// is the Money of one token, without rounding.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1e12

// USD is the amount in US dollars.
func (m Money) USD() float64 { return float64(m) / float64(Dollar) }

// PerMillion is the price of one token when a million cost the given amount in US dollars.
func PerMillion(usd float64) Money { return Money(usd*1e6 + 0.5) }

// USD is the amount of the given US dollars.
func USD(usd float64) Money { return Money(usd * float64(Dollar)) }

// Limits bound a turn. A zero means no limit, for times the default.
type Limits struct {
	Steps       int
	ToolCalls   int
	Tokens      int           // in and out together
	Cost        Money         // of a turn
	DailyCost   Money         // of a person, by their own date; see [moneyDay]
	TurnTimeout time.Duration // the time that a turn works; waiting for a person does not count
	ToolTimeout time.Duration // of one call
	Errors      int           // steps in a row in which every call failed
	// Repeats is the rounds of the same calls with the same results that end a turn. It also turns on the bound of polls, 20
	// of the same calls with nothing else in between; 0 turns both off.
	Repeats  int
	Approval time.Duration // until a card expires
	Question time.Duration // until a question expires
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		value *time.Duration
		is    time.Duration
	}{
		{&l.TurnTimeout, 15 * time.Minute},
		{&l.ToolTimeout, time.Minute},
		{&l.Approval, 72 * time.Hour},
		{&l.Question, 72 * time.Hour},
	} {
		if *d.value <= 0 {
			*d.value = d.is
		}
	}
	return l
}

// cost is what a provider charges for what it reports.
func (m ModelSpec) cost(u model.Usage) Money { return Money(u.In)*m.PriceIn + Money(u.Out)*m.PriceOut }

// minOutput is the smallest output limit in tokens that is worth a model call.
const minOutput = 64

// allowance is what a turn may still spend on its next model call.
type allowance struct {
	input   int   // tokens that the request is estimated to have, rather too many than too few
	output  int   // tokens that the answer may have
	reserve Money // what the call costs at most
}

// allow checks a turn against its limits before a model call and says what the call may cost. today is what the
// turn's person has spent on their present date.
func (l Limits) allow(t *turn, spec ModelSpec, input int, today Money) (allowance, *halt) {
	used := t.used()
	if l.Steps > 0 && used.steps >= l.Steps {
		return allowance{}, &halt{reason: StepLimit, say: fmt.Sprintf("I stopped after %s, which is the limit for one turn.", schedule.Counted(used.steps, "step"))}
	}
	out := spec.MaxOutput
	if l.Tokens > 0 {
		out = min(out, l.Tokens-used.tokens-input)
		if out < minOutput {
			return allowance{}, &halt{reason: TokenLimit, say: fmt.Sprintf("I stopped: this turn has used %d of its %d tokens and the next step would pass that.", used.tokens, l.Tokens)}
		}
	}
	for _, purse := range []struct {
		limit, spent Money
		final        bool
		say          string
	}{
		{l.Cost, used.spent, false, "I stopped: this turn has spent $%.4f of its $%.4f and the next step could pass that."},
		{l.DailyCost, today, true, "I stopped: you have spent $%.4f of the $%.4f a day and the next step could pass that."},
	} {
		if purse.limit <= 0 {
			continue
		}
		out = min(out, buys(purse.limit-purse.spent-Money(input)*spec.PriceIn, spec.PriceOut, out))
		if out < minOutput {
			return allowance{}, &halt{reason: Budget, say: fmt.Sprintf(purse.say, purse.spent.USD(), purse.limit.USD()), final: purse.final}
		}
	}
	return allowance{
		input: input, output: out,
		reserve: Money(input)*spec.PriceIn + Money(out)*spec.PriceOut,
	}, nil
}

// buysTry reports whether there is money to ask the model once more, at the same cost, after a try that is paid for.
// today has that try in it, the turn has not.
func (l Limits) buysTry(t *turn, reserve, today Money) bool {
	return (l.Cost <= 0 || t.used().spent+2*reserve <= l.Cost) && (l.DailyCost <= 0 || today+reserve <= l.DailyCost)
}

// buys is how many output tokens the rest pays for, at most most.
func buys(rest, price Money, most int) int {
	switch {
	case rest < 0:
		return 0
	case price <= 0:
		return most
	}
	return int(min(Money(most), rest/price))
}
