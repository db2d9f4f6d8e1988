package agent

import (
	"encoding/json"
	"fmt"
)

const askPerson = "ask_person"

type questionArguments struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices"`
}

// askPersonTool asks the turn's person. It has no function: the answer comes as mail and becomes the result.
func askPersonTool() Tool {
	return Tool{Spec: Spec{
		Name:        askPerson,
		Description: "Ask the person a question and wait for the answer. Use it when you cannot go on without a choice of theirs.",
		Schema: json.RawMessage(`{"type":"object","properties":{"question":{"type":"string","minLength":1},` +
			`"choices":{"type":"array","items":{"type":"string"},"maxItems":10}},"required":["question"],"additionalProperties":false}`),
		Effect: Idempotent,
		Place:  WithPerson,
	}}
}

// question is the turn's first question that has no answer.
func (t *turn) question() *card {
	for _, k := range t.undecided() {
		if k.Question {
			return k
		}
	}
	return nil
}

// answerQuestion gives a question its answer: words said in the conversation, a choice, or a decision by its id.
func (a *actor) answerQuestion(l letter, k *card, text string) error {
	a.take(l)
	var owed []receipt
	if l.Steer {
		owed = []receipt{a.receipt(l)}
	}
	verdict := AnswerIt
	if l.Decision != nil && l.Decision.Verdict == Deny {
		verdict = Deny
	}
	if err := a.close(k, decidedEntry{Verdict: verdict, By: l.From.ID, Name: l.From.Name, Text: text, Owed: owed}); err != nil || verdict == Deny {
		return err
	}
	c := a.state.open(k.Call)
	if c == nil {
		return nil
	}
	return a.answer(c, fmt.Sprintf("%s answered: %s", nameOf(l.From), text), false)
}
