package slack

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/form"
)

// A form for an edit has a field for each argument ([form.Fields]). The action ids of its inputs are the ways in which they are
// filled in.

// Slack's limits of forms (https://docs.slack.dev/reference/views and .../block-kit/block-elements), in pieces and
// characters.
const (
	mostBlocks  = 100
	mostOptions = 100
	optionLimit = 75
	labelLimit  = 150 // of ours: a name
	hintLimit   = 300 // of ours: a description
	faultLimit  = 500 // of ours: what is wrong with a field
)

var formLimits = form.Limits{Input: inputLimit, Option: optionLimit, Options: mostOptions, Length: length}

// fieldBlockOf is a field in a form; n is its number there.
func fieldBlockOf(f form.Field, n int) slack.Block {
	name := cmp.Or(cut(bot.Visible(f.Name), labelLimit), `""`)
	way := f.Way()
	if way == form.Kept {
		return section(fmt.Sprintf("%s: %d characters, too long for a form. It stays as it is.", name, length(f.Shown())))
	}
	if way == form.JSON {
		name += " (JSON)"
	}
	block := slack.NewInputBlock(fieldBlock(n), label(name), nil, inputOf(f, way))
	if f.Hint != "" {
		block.Hint = label(cut(f.Hint, hintLimit))
	}
	block.Optional = f.Optional()
	return block
}

func fieldBlock(n int) string { return fmt.Sprint("argument-", n) }

func inputOf(f form.Field, way form.Way) slack.BlockElement {
	shown := f.Shown()
	switch way {
	case form.Number:
		input := slack.NewNumberInputBlockElement(nil, string(way), f.Decimal())
		input.InitialValue = shown
		input.MinValue, input.MaxValue = f.Bounds()
		return input
	case form.Choice:
		menu := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, string(way))
		menu.Options, menu.InitialOption = options(f)
		return menu
	case form.Switch:
		buttons := slack.NewRadioButtonsBlockElement(string(way))
		buttons.Options, buttons.InitialOption = options(f)
		return buttons
	}
	input := slack.NewPlainTextInputBlockElement(nil, string(way))
	input.InitialValue, input.MaxLength = shown, inputLimit
	input.Multiline = way == form.JSON || strings.Contains(shown, "\n") || length(shown) > 80
	return input
}

// options are values to choose from, and the one that stands.
func options(f form.Field) (options []*slack.OptionBlockObject, stands *slack.OptionBlockObject) {
	for _, o := range f.Options() {
		option := slack.NewOptionBlockObject(o.Value, label(o.Name), nil)
		if o.Stands {
			stands = option
		}
		options = append(options, option)
	}
	return options, stands
}

// entered is what came back in one input.
type entered struct {
	Value    string `json:"value"`
	Selected option `json:"selected_option"`
	// Several are what was chosen with checkboxes.
	Several []option `json:"selected_options"`
}

type option struct {
	Value string `json:"value"`
}

func (e entered) chosen() (values []string) {
	for _, o := range e.Several {
		values = append(values, o.Value)
	}
	return values
}

// blocksOf are the blocks of a form with these fields.
func blocksOf(fields []form.Field) []slack.Block {
	var blocks []slack.Block
	for n, f := range fields {
		blocks = append(blocks, fieldBlockOf(f, n))
	}
	return blocks
}

// enteredIn gives what came back in the inputs of fields, by their numbers.
func enteredIn(fields []form.Field, values map[string]map[string]entered) func(n int) string {
	return func(n int) string {
		got := values[fieldBlock(n)][string(fields[n].Way())]
		return cmp.Or(got.Selected.Value, got.Value)
	}
}

// byBlock are faults of fields as Slack takes them.
func byBlock(faults map[int]string) map[string]string {
	blocks := map[string]string{}
	for n, fault := range faults {
		blocks[fieldBlock(n)] = cut(fault, faultLimit)
	}
	return blocks
}

// inPlace puts an objection to arguments where the fields are that it is about.
func inPlace(fields []form.Field, o agent.Objection) map[string]string {
	return byBlock(form.InPlace(fields, o))
}
