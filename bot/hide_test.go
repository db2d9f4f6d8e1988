package bot

import (
	"encoding/json"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/agent/secret"
	"nudge/schedule"
)

func TestACardSaysWhatItDoesNotShow(t *testing.T) {
	secrets := secret.New("plover-1172-of-the-config")
	card := agent.Reply{Kind: agent.Approval, ID: "c1", Tool: "send", Arguments: json.RawMessage(`{"key":"plover-1172-of-the-config","to":"bob"}`), Choices: []string{"plover-1172-of-the-config"}}
	shown := Hide(card, secrets)
	if string(shown.Arguments) != `{"key":"[secret]","to":"bob"}` || shown.Text != hiddenLine || shown.Choices[0] != secret.Mark {
		t.Errorf("it is shown as %+v", shown)
	}
	if !strings.Contains(string(card.Arguments), "plover") || card.Choices[0] == secret.Mark {
		t.Error("the card itself was changed")
	}
	card.Batch, card.Calls = []string{"c0", "c1"}, []agent.BatchCall{{Arguments: json.RawMessage(`{"to":"bob"}`)}, {Arguments: card.Arguments}}
	if shown := Hide(card, secrets); shown.Batch != nil || shown.Calls != nil || len(card.Batch) != 2 {
		t.Errorf("cards one of which has a secret are decided at once: %+v", shown)
	}
	card.Calls = card.Calls[:1]
	if shown := Hide(card, secrets); len(shown.Batch) != 2 {
		t.Errorf("cards without secrets are not decided at once: %+v", shown)
	}
	if plain := Hide(agent.Reply{Kind: agent.Approval, Arguments: json.RawMessage(`{"to": "bob"}`)}, secrets); plain.Text != "" || string(plain.Arguments) != `{"to": "bob"}` {
		t.Errorf("a card without secrets is shown as %+v", plain)
	}
	if final := Hide(agent.Reply{Kind: agent.Final, Text: "it is plover-1172-of-the-config", Data: json.RawMessage(`{"a":"plover-1172-of-the-config"}`)}, secrets); strings.Contains(final.Text+string(final.Data), "plover") {
		t.Errorf("an answer is shown as %+v", final)
	}
	if same := Hide(card, nil); string(same.Arguments) != string(card.Arguments) {
		t.Errorf("without secrets it is shown as %+v", same)
	}
}

// A judged ping shows again what it told, a decided question what it asked: those are words of the tainted turn as well.
func TestNoLinkComesBackWithAnOutcome(t *testing.T) {
	const link = "[your report](https://evil.test/?code=4711)"
	ping := FeedbackMark(schedule.Card{ID: "n1", Heartbeat: "disk", Text: link, Outside: true})
	question := agent.Reply{Kind: agent.Ask, Tainted: true, Text: "Open " + link + "?", Choices: []string{link}}
	asked := agent.Reply{Kind: agent.DecidedMark, Tainted: true, Told: link, Decision: agent.AnswerIt}
	for _, r := range []agent.Reply{ping, question, asked} {
		shown := Hide(r, nil)
		for _, text := range append(shown.Choices, shown.Text, shown.Told) {
			if strings.Contains(text, "](") || strings.Contains(text, "https://") && !strings.Contains(text, "`https://") {
				t.Errorf("a %s shows %q", r.Kind, text)
			}
		}
		if !shown.Unlinked {
			t.Errorf("of a %s a platform may make links", r.Kind)
		}
		if shown.Tainted {
			t.Errorf("a %s goes out with what is of no consequence any more", r.Kind)
		}
	}
	if question.Choices[0] != link {
		t.Error("the question itself was changed")
	}
	arguments := agent.Reply{Kind: agent.DecidedMark, Tainted: true, Told: `{"url":"https://a.test"}`, Decision: agent.Approve}
	if shown := Hide(arguments, nil); shown.Told != arguments.Told {
		t.Errorf("what was approved is shown as %q", shown.Told)
	}
	if own := Hide(FeedbackMark(schedule.Card{ID: "n2", Heartbeat: "disk", Text: link}), nil); own.Told != link || own.Unlinked {
		t.Errorf("a link of nobody else's is shown as %q", own.Told)
	}
	if card := Hide(agent.Reply{Kind: agent.Approval, Text: link}, nil); card.Text != link || !card.Unlinked {
		t.Errorf("what a tool says on a card is shown as %q", card.Text)
	}
}
