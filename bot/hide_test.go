package bot

import (
	"encoding/json"
	"strings"
	"testing"

	"nudge/agent"
	"nudge/agent/secret"
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
