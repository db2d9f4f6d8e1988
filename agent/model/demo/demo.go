// Package demo is the model that Nudge has built in, so that everything can be tried on a fresh machine without a
// key or a network.
//
// It is no language model. An answer is a pure function of the request: the last words of the person are held
// against a table of simple patterns ([intents]), which become the tool calls still to make, and what is said at the
// end is quoted from the results in the request. It knows no facts of its own, says so when asked, and sleeps never.
//
// Reading order: reading.go takes a request apart, clause.go and intent.go find out what is wanted, turn.go replays
// the turn against the results that there are, outcome.go and report.go put results into words, wake.go is what a
// heartbeat gets. The other files hold the intents, by subject.
//
// What it takes for the person's words: the text of a user message without marks, which are pieces in square
// brackets at its beginning (with or without a line of their own) or on lines of their own at its end.
package demo

import (
	"context"
	"strings"
	"unicode/utf8"

	"nudge/agent/model"
)

// bytesPerToken is the usual estimate for English text.
const bytesPerToken = 4

// mostRounds bounds the answers with calls in one turn, so that no conversation goes on for ever.
const mostRounds = 10

// New returns the demo model. It keeps no state, so one value may serve any number of conversations concurrently.
func New() model.Model { return demo{} }

type demo struct{}

// Answer answers at once, without waiting for anything. The only error is the cause of a context that has ended.
// The token counts are estimates, four bytes a token.
func (demo) Answer(ctx context.Context, req model.Request, said func(piece string)) (model.Answer, error) {
	if ctx.Err() != nil {
		return model.Answer{}, context.Cause(ctx)
	}
	text, calls := reply(read(req))
	answer := fit(text, calls, req.MaxOutput)
	if err := speak(ctx, answer.Text, said); err != nil {
		return model.Answer{}, err
	}
	answer.Model = "demo"
	answer.Usage = model.Usage{In: tokens(sizeOf(req)), Out: tokens(len(answer.Text) + sizeOfCalls(answer.Calls)), Known: true}
	return answer, nil
}

// reply runs the turn as far as the results go: either calls are still to be made, or there is a text.
func reply(r *reading) (string, []model.Call) {
	t := &turn{reading: r}
	if r.offers("notify") {
		wake(t)
	} else {
		t.acknowledge()
		understand(r)(t)
	}
	if len(t.wanted) > 0 {
		if r.rounds < mostRounds {
			return "", t.wanted
		}
		t.say("I stop here, as this was already a lot of steps for one request. Ask again for what is left.")
	}
	if len(t.lines) == 0 {
		t.say("That is all.")
	}
	return strings.Join(t.lines, "\n"), nil
}

// fit cuts an answer to the output limit. Calls that do not fit are left out whole, because half a call is none.
func fit(text string, calls []model.Call, limit int) model.Answer {
	most := limit * bytesPerToken
	switch {
	case limit > 0 && len(text)+sizeOfCalls(calls) > most:
		return model.Answer{Text: cut(text, most), Finish: model.FinishLength}
	case len(calls) > 0:
		return model.Answer{Text: text, Calls: calls, Finish: model.FinishCalls}
	default:
		return model.Answer{Text: text, Finish: model.FinishStop}
	}
}

// speak says a text in pieces of a few words.
func speak(ctx context.Context, text string, said func(string)) error {
	if said == nil {
		return nil
	}
	const wordsPerPiece = 4
	for text != "" {
		end, words := len(text), 0
		for i := 1; i < len(text); i++ {
			if text[i] == ' ' || text[i] == '\n' {
				if words++; words == wordsPerPiece {
					end = i
					break
				}
			}
		}
		said(text[:end])
		text = text[end:]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func tokens(size int) int { return (size + bytesPerToken - 1) / bytesPerToken }

func sizeOf(req model.Request) int {
	size := len(req.System)
	for _, m := range req.Messages {
		size += len(m.Text) + len(m.Reasoning) + sizeOfCalls(m.Calls)
	}
	for _, tool := range req.Tools {
		size += len(tool.Name) + len(tool.Description) + len(tool.Schema)
	}
	return size
}

func sizeOfCalls(calls []model.Call) int {
	size := 0
	for _, c := range calls {
		size += len(c.Name) + len(c.Arguments)
	}
	return size
}

// cut returns at most size bytes of a text and never half a character.
func cut(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}
