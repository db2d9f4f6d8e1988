package slacktest

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf16"
)

// Slack's limits, in characters and pieces.
const (
	mostText     = 40_000
	splitText    = 4_040 // a longer text without blocks becomes several messages
	updateText   = 4_000
	mostBlocks   = 50
	mostHome     = 100
	allBlocks    = 13_200
	sectionText  = 3_000
	headerText   = 150
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
	radioOptions = 10
	labelText    = 2_000
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
	total, ids := 0, map[string]bool{}
	for _, b := range blocks {
		if !soundBlock(b) || size(b.BlockID) > idText || b.BlockID != "" && ids[b.BlockID] {
			return nil, "invalid_blocks"
		}
		ids[b.BlockID] = true
		actions := map[string]bool{} // they must differ within a block
		if b.Text != nil {
			total += size(b.Text.Text)
		}
		for _, e := range b.Elements {
			if e.ActionID != "" && actions[e.ActionID] {
				return nil, "invalid_blocks"
			}
			actions[e.ActionID] = true
			total += size(e.Label())
			for _, part := range e.Parts {
				total += size(part.Label())
			}
		}
	}
	if total > allBlocks && most == mostBlocks {
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
		return b.Label != nil && b.Label.Text != "" && size(b.Label.Text) <= labelText && (b.Hint == nil || size(b.Hint.Text) <= labelText && b.Hint.Text != "") &&
			b.Element != nil && soundInput(*b.Element)
	case "rich_text":
		for _, e := range b.Elements {
			if e.Type != "rich_text_section" && e.Type != "rich_text_preformatted" || len(e.Parts) == 0 {
				return false
			}
			for _, part := range e.Parts {
				if part.Type != "text" || part.Label() == "" {
					return false
				}
			}
		}
		return len(b.Elements) > 0
	case "header":
		return b.Text != nil && b.Text.Type == "plain_text" && b.Text.Text != "" && size(b.Text.Text) <= headerText
	case "divider":
		return true
	}
	return false
}

func soundButton(e Element) bool {
	return e.Type == "button" && e.Label() != "" && size(e.Label()) <= buttonText && size(e.Value) <= valueText
}

// soundMenu holds a menu of a message against Slack's limits.
func soundMenu(e Element) bool {
	return e.Type == "static_select" && e.Holder != nil && e.Holder.Type == "plain_text" && size(e.Holder.Text) <= holderText && soundOptions(e, mostOptions)
}

func soundInput(e Element) bool {
	switch e.Type {
	case "plain_text_input":
		return size(e.Initial) <= inputText && e.MaxLength <= inputText && (e.MaxLength == 0 || size(e.Initial) <= e.MaxLength)
	case "number_input":
		for _, number := range []string{e.Initial, e.Min, e.Max} {
			if number != "" && (!plainNumber.MatchString(number) || !e.Decimal && strings.Contains(number, ".")) {
				return false
			}
		}
		return true
	case "static_select":
		return soundOptions(e, mostOptions)
	case "radio_buttons", "checkboxes":
		return soundOptions(e, radioOptions)
	}
	return false
}

// plainNumber is a number as an input shows it.
var plainNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// soundOptions reports whether there are options, no more than most, and the one that stands first is one of them.
func soundOptions(e Element, most int) bool {
	there, values := e.Selected == nil, map[string]bool{}
	for _, o := range e.Options {
		if o.Text.Text == "" || size(o.Text.Text) > optionText || o.Value == "" || size(o.Value) > optionText || values[o.Value] {
			return false
		}
		values[o.Value] = true
		there = there || o == *e.Selected
	}
	return there && len(e.Options) > 0 && len(e.Options) <= most
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
	Updated  bool // it was replaced by another when it was sent
}

// input gives the input of a block of the form.
func (v View) input(block string) (Block, bool) {
	for _, b := range v.Blocks {
		if b.BlockID == block && b.Type == "input" {
			return b, true
		}
	}
	return Block{}, false
}

// Input is the input of the form whose label is the given one. It panics when there is none.
func (v View) Input(label string) Block {
	for _, b := range v.Blocks {
		if b.Type == "input" && b.Label.Text == label {
			return b
		}
	}
	panic("slacktest: the form has no input " + label)
}

// Shown is what the form says, line by line, without what is entered.
func (v View) Shown() string {
	var out []string
	for _, b := range v.Blocks {
		out = append(out, b.shown()...)
	}
	return strings.Join(out, "\n")
}

// Form is a form with the given blocks, or the error with which Slack would refuse it.
func Form(blocks any) (v View, refusal string) {
	raw, err := json.Marshal(map[string]any{
		"type": "modal", "title": Text{Type: "plain_text", Text: "Form"}, "submit": Text{Type: "plain_text", Text: "Send"}, "blocks": blocks,
	})
	if err != nil {
		return v, err.Error()
	}
	return readView(raw)
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
