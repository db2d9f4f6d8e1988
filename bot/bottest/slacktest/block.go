package slacktest

import (
	"encoding/json"
	"unicode/utf16"
)

// Slack's limits, in characters and pieces.
const (
	mostText     = 40_000
	splitText    = 4_040 // a longer text without blocks becomes several messages
	updateText   = 4_000
	mostBlocks   = 50
	allBlocks    = 13_200
	sectionText  = 3_000
	buttonText   = 75
	valueText    = 2_000
	idText       = 255
	rowElements  = 25
	holderText   = 150
	optionText   = 75
	mostOptions  = 100
	contextParts = 10
	titleText    = 24
	privateText  = 3_000
	inputText    = 3_000
)

func size(text string) int { return len(utf16.Encode([]rune(text))) }

// readBlocks reads blocks, and says with which error Slack would refuse them; "" when it would not.
func readBlocks(raw string, most int) (blocks []Block, refusal string) {
	if raw == "" {
		return nil, ""
	}
	if json.Unmarshal([]byte(raw), &blocks) != nil {
		return nil, "invalid_blocks_format"
	}
	if len(blocks) > most {
		return nil, "invalid_blocks"
	}
	total, ids, actions := 0, map[string]bool{}, map[string]bool{}
	for _, b := range blocks {
		if !soundBlock(b) || size(b.BlockID) > idText || b.BlockID != "" && ids[b.BlockID] {
			return nil, "invalid_blocks"
		}
		ids[b.BlockID] = true
		if b.Text != nil {
			total += size(b.Text.Text)
		}
		for _, e := range b.Elements {
			if e.ActionID != "" && actions[e.ActionID] {
				return nil, "invalid_blocks"
			}
			actions[e.ActionID] = true
			total += size(e.Label())
		}
	}
	if total > allBlocks {
		return nil, "msg_blocks_too_long"
	}
	return blocks, ""
}

func soundBlock(b Block) bool {
	switch b.Type {
	case "section":
		return b.Text != nil && b.Text.Text != "" && size(b.Text.Text) <= sectionText && (b.Text.Type == "plain_text" || b.Text.Type == "mrkdwn")
	case "context":
		if len(b.Elements) == 0 || len(b.Elements) > contextParts {
			return false
		}
		for _, e := range b.Elements {
			if e.Label() == "" || size(e.Label()) > sectionText {
				return false
			}
		}
		return true
	case "actions":
		if len(b.Elements) == 0 || len(b.Elements) > rowElements {
			return false
		}
		for _, e := range b.Elements {
			if size(e.ActionID) > idText || !soundButton(e) && !soundMenu(e) {
				return false
			}
		}
		return true
	case "input":
		return b.Label != nil && b.Label.Text != "" && b.Element != nil && size(b.Element.Initial) <= inputText && b.Element.MaxLength <= inputText
	case "divider":
		return true
	}
	return false
}

func soundButton(e Element) bool {
	return e.Type == "button" && e.Label() != "" && size(e.Label()) <= buttonText && size(e.Value) <= valueText
}

// soundMenu holds a menu against Slack's limits. Its values may be as long as the strictest of the documents says.
func soundMenu(e Element) bool {
	if e.Type != "static_select" || e.Holder == nil || e.Holder.Type != "plain_text" || size(e.Holder.Text) > holderText ||
		len(e.Options) == 0 || len(e.Options) > mostOptions {
		return false
	}
	for _, o := range e.Options {
		if o.Text == nil || o.Text.Type != "plain_text" || o.Text.Text == "" || size(o.Text.Text) > optionText || o.Value == "" || size(o.Value) > optionText {
			return false
		}
	}
	return true
}

// View is a form that the app has opened.
type View struct {
	ID       string
	User     string
	Trigger  string
	Title    string
	Callback string
	Private  string
	Submit   string
	Blocks   []Block
	Errors   map[string]string // shown in the form after it was sent
	Shut     bool
}

// readView reads a view, and says with which error Slack would refuse it.
func readView(raw json.RawMessage) (v View, refusal string) {
	var w struct {
		Type     string          `json:"type"`
		Title    *Text           `json:"title"`
		Submit   *Text           `json:"submit"`
		Close    *Text           `json:"close"`
		Callback string          `json:"callback_id"`
		Private  string          `json:"private_metadata"`
		Blocks   json.RawMessage `json:"blocks"`
	}
	if json.Unmarshal(raw, &w) != nil || w.Type != "modal" || w.Title == nil {
		return v, "invalid_arguments"
	}
	blocks, refusal := readBlocks(string(w.Blocks), 100)
	if refusal != "" || len(blocks) == 0 {
		return v, "invalid_arguments"
	}
	for _, b := range blocks {
		if b.Type == "input" && w.Submit == nil {
			return v, "invalid_arguments"
		}
	}
	v = View{Title: w.Title.Text, Callback: w.Callback, Private: w.Private, Blocks: blocks}
	if w.Submit != nil {
		v.Submit = w.Submit.Text
	}
	if v.Title == "" || size(v.Title) > titleText || size(v.Submit) > titleText || size(v.Private) > privateText || size(v.Callback) > idText {
		return v, "invalid_arguments"
	}
	return v, ""
}
