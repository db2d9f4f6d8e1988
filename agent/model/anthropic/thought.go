package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"
)

// reasoning is what [model.Answer.Reasoning] holds when there are thoughts to send back. The provider takes them only as
// they came and from the model that thought them.
type reasoning struct {
	Model    string    `json:"model"` // as it is configured
	Thoughts []thought `json:"thoughts"`
}

// thought is one block of thinking, open or sealed, and where it stood in the answer.
type thought struct {
	Type       string `json:"type"`
	Thinking   string `json:"thinking,omitempty"`
	Signature  string `json:"signature,omitempty"`
	Data       string `json:"data,omitempty"`
	AfterText  int    `json:"after_text,omitempty"`  // bytes of the answer's text before it
	AfterCalls int    `json:"after_calls,omitempty"` // calls before it
}

// canGoBack says whether the provider takes the thought back. One that was cut off has no signature.
func (t thought) canGoBack() bool {
	return t.Type == kindThinking && t.Signature != "" || t.Type == kindRedacted && t.Data != ""
}

func (t thought) block() block {
	if t.Type == kindRedacted {
		return block{Type: kindRedacted, Data: t.Data}
	}
	return block{Type: kindThinking, Thinking: &t.Thinking, Signature: t.Signature}
}

// packThoughts returns the text to keep of an answer's thoughts. It is plain when none of them can go back.
func packThoughts(thoughts []thought, model string) string {
	var open []string
	goesBack := false
	for _, t := range thoughts {
		goesBack = goesBack || t.canGoBack()
		if t.Thinking != "" {
			open = append(open, t.Thinking)
		}
	}
	if !goesBack {
		return strings.Join(open, "\n\n")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(reasoning{Model: model, Thoughts: thoughts}) // text and numbers can always be encoded
	return strings.TrimSuffix(out.String(), "\n")
}

// unpackThoughts returns the thoughts that can go back to a model; none if another model thought them.
func unpackThoughts(text, model string) []thought {
	var r reasoning
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &r) != nil || r.Model != model {
		return nil
	}
	var out []thought
	for _, t := range r.Thoughts {
		if t.canGoBack() {
			out = append(out, t)
		}
	}
	return out
}
