package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
)

// forms are the buttons behind which there is a form, with what a filled-in form decides.
var forms = map[string]agent.Verdict{actionDeny: agent.Deny, actionEdit: agent.Edit, actionAnswer: agent.AnswerIt}

const (
	formCallback = "nudge_decide"
	formBlock    = "words"
	formInput    = "input"
	inputLimit   = 3000 // characters of one input
)

// form is a view as Slack sends it back.
type form struct {
	ID       string `json:"id"`
	Callback string `json:"callback_id"`
	Private  string `json:"private_metadata"`
	State    struct {
		Values map[string]map[string]struct {
			Value string `json:"value"`
		} `json:"values"`
	} `json:"state"`
}

// purpose is what a form is for. It travels in the form, so that one filled in after a restart is understood.
type purpose struct {
	Card    string        `json:"card"`
	Verdict agent.Verdict `json:"verdict"`
	Address string        `json:"address"`
	Channel string        `json:"channel"`
	Thread  string        `json:"thread,omitempty"`
	Message string        `json:"message"`
}

// ask opens the form behind a button. It opens none, and gives false, for a card that is not waiting any more: then the
// click is a decision that comes too late, and gets its answer from the agent.
func (s *Slack) ask(ctx context.Context, in bot.Receiver, i interaction, c click, p place, id string) (opened bool, err error) {
	card, waiting, err := in.Card(ctx, c.Value)
	if err != nil {
		return false, fmt.Errorf("look up the card %s: %w", c.Value, err)
	}
	if !waiting {
		return false, nil
	}
	if !s.shown.add(id) {
		return true, nil // a redelivery: the form is open, and its trigger is spent
	}
	private, err := json.Marshal(purpose{
		Card: c.Value, Verdict: forms[c.Action], Address: p.String(), Channel: i.channel(),
		Thread: cmp.Or(i.Container.Thread, i.Message.Thread), Message: cmp.Or(i.Container.Message, i.Message.TS),
	})
	if err != nil {
		return false, fmt.Errorf("encode the purpose of a form: %w", err)
	}
	view := formFor(forms[c.Action], card)
	view.PrivateMetadata = string(private)
	if _, err := s.api.OpenViewContext(ctx, i.Trigger, view); err != nil {
		s.log.Warn("cannot open a form", "error", err)
		s.whisper(ctx, i, "Slack would not open the form. Please press the button once more.")
	}
	return true, nil
}

// formFor is the form in which a verdict on a card is filled in.
func formFor(verdict agent.Verdict, card agent.Reply) slack.ModalViewRequest {
	v := slack.ModalViewRequest{Type: slack.VTModal, CallbackID: formCallback, Close: label("Cancel")}
	input := slack.NewPlainTextInputBlockElement(nil, formInput)
	input.Multiline, input.MaxLength = true, inputLimit
	block := slack.NewInputBlock(formBlock, label("Words"), nil, input)
	switch verdict {
	case agent.Deny:
		v.Title, v.Submit = label("Deny"), label("Deny")
		block.Label, block.Optional = label("Why not? The agent reads this."), true
	case agent.AnswerIt:
		v.Title, v.Submit = label("Answer"), label("Answer")
		block.Label = label("Your answer")
	case agent.Edit:
		v.Title, v.Submit = label("Edit"), label("Run with these")
		block.Label = label("Arguments, as a JSON object")
		input.InitialValue = indented(card.Arguments)
		if length(input.InitialValue) > inputLimit {
			return tooLong(v, card)
		}
	}
	v.Blocks = slack.Blocks{BlockSet: []slack.Block{block}}
	return v
}

// tooLong is the form for arguments that do not fit into one: it says what to do instead.
func tooLong(v slack.ModalViewRequest, card agent.Reply) slack.ModalViewRequest {
	v.Submit = nil
	v.Blocks = slack.Blocks{BlockSet: []slack.Block{section(
		"These arguments are too long for a form of Slack's. Write instead, where the card stands:\n\nnudge edit " + card.ID + " {…}")}}
	return v
}

func indented(arguments json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, arguments, "", "  ") != nil {
		return string(arguments)
	}
	return b.String()
}

// submitted takes a filled-in form. What is wrong with it is shown in the form, which then stays open.
func (s *Slack) submitted(ctx context.Context, in bot.Receiver, e envelope, i interaction) {
	var why purpose
	if i.View.Callback != formCallback || json.Unmarshal([]byte(i.View.Private), &why) != nil || why.Card == "" {
		s.acknowledge(ctx, e, nil)
		return
	}
	decision := &agent.Decision{Card: why.Card, Verdict: why.Verdict}
	value := i.View.State.Values[formBlock][formInput].Value
	if fault := fill(decision, value); fault != "" {
		s.acknowledge(ctx, e, slack.NewErrorsViewSubmissionResponse(map[string]string{formBlock: fault}))
		return
	}
	i.Container.Channel, i.Container.Thread, i.Container.Message = why.Channel, why.Thread, why.Message
	s.pressed(ctx, in, e, i, bot.Event{
		Keys: []string{key("form", i.User.ID, i.View.ID)}, Address: why.Address, At: time.Now(),
		ID: message{why.Channel, why.Message}.String(), Click: decision,
	})
}

// fill puts what a person wrote into a form into a decision, and says what is wrong with it; "" when nothing is.
func fill(d *agent.Decision, value string) (fault string) {
	switch d.Verdict {
	case agent.Edit:
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(value), &object); err != nil {
			return "This is not a JSON object: " + err.Error()
		}
		if object == nil {
			return "This is not a JSON object."
		}
		d.Arguments = json.RawMessage(value)
	case agent.AnswerIt:
		if strings.TrimSpace(value) == "" {
			return "An answer needs words."
		}
		d.Text = value
	default:
		d.Text = strings.TrimSpace(value)
	}
	return ""
}
