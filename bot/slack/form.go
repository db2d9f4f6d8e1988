package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
	"nudge/bot/form"
)

// forms are the buttons behind which there is a form, with what a filled-in form decides.
var forms = map[string]agent.Verdict{
	actionDeny: agent.Deny, actionEdit: agent.Edit, actionAnswer: agent.AnswerIt, actionAlways: agent.Always,
}

const (
	formCallback = "nudge_decide"
	formBlock    = "words"
	formInput    = "input"
	openBlock    = "open" // what a rule leaves open
	inputLimit   = 3000   // characters of one input
)

// sentForm is a view as Slack sends it back.
type sentForm struct {
	ID       string `json:"id"`
	Callback string `json:"callback_id"`
	Private  string `json:"private_metadata"`
	State    struct {
		Values map[string]map[string]entered `json:"values"`
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
	Fields  string        `json:"fields,omitempty"` // stands for the fields of an edit; "" when it is one of JSON
}

// ask opens the form behind a button. It opens none, and gives false, where something speaks against the decision already:
// then the click is one that comes too late or from somebody else, and gets its answer from the agent.
func (s *Slack) ask(ctx context.Context, in bot.Receiver, i interaction, c click, event bot.Event) (opened bool, err error) {
	card, waiting, err := in.Card(ctx, c.Value)
	if err != nil {
		return false, fmt.Errorf("look up the card %s: %w", c.Value, err)
	}
	if !waiting {
		return false, nil
	}
	event.From, event.Standing = s.person(ctx, i.team(s.me().team), i.User.ID)
	event.Click = &agent.Decision{Card: c.Value, Verdict: forms[c.Action]}
	objection, err := in.Weigh(ctx, event)
	if err != nil {
		return false, fmt.Errorf("look at what speaks against a form for the card %s: %w", c.Value, err)
	}
	if objection != nil {
		return false, nil
	}
	if !s.shown.Put(event.Keys[0], true) {
		return true, nil // a redelivery: the form is open, and its trigger is spent
	}
	why := purpose{
		Card: c.Value, Verdict: forms[c.Action], Address: event.Address, Channel: i.channel(),
		Thread: i.thread(), Message: i.message(),
	}
	if err := s.openForm(ctx, i.Trigger, why, card, in.Schema(card.Tool)); err != nil {
		s.log.Warn("cannot open a form", "error", err)
		s.whisper(ctx, i, "Slack would not open the form. Please press the button once more.")
	}
	return true, nil
}

// openForm opens the form for a verdict on a card. One with fields that Slack does not take becomes one of JSON.
func (s *Slack) openForm(ctx context.Context, trigger string, why purpose, card agent.Reply, schema json.RawMessage) error {
	view := s.formFor(why.Verdict, card)
	if fields, ok := form.Fields(schema, card.Arguments, formLimits); ok && len(fields) < mostBlocks && why.Verdict == agent.Edit {
		why.Fields = form.Stamp(fields)
		withFields := view
		withFields.Submit = label(submitEdit)
		withFields.Blocks = slack.Blocks{BlockSet: blocksOf(fields)}
		err := s.openView(ctx, trigger, why, withFields)
		if c := code(err); c == "" || strings.Contains(c, "trigger") {
			return err // it is open, or no other would be
		}
		s.log.Error("slack refuses a form with fields, which is opened as one of JSON", "tool", card.Tool, "error", err)
		why.Fields = ""
	}
	return s.openView(ctx, trigger, why, view)
}

func (s *Slack) openView(ctx context.Context, trigger string, why purpose, view slack.ModalViewRequest) error {
	private, err := json.Marshal(why)
	if err != nil {
		return fmt.Errorf("encode the purpose of a form: %w", err)
	}
	view.PrivateMetadata = string(private)
	_, err = s.api.OpenViewContext(ctx, trigger, view)
	return err
}

const submitEdit = "Run with these"

// formFor is the form in which a verdict on a card is filled in; that of an edit has the arguments as JSON.
func (s *Slack) formFor(verdict agent.Verdict, card agent.Reply) slack.ModalViewRequest {
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
	case agent.Always:
		return s.alwaysForm(v, card)
	case agent.Edit:
		v.Title, v.Submit = label("Edit"), label(submitEdit)
		block.Label = label("Arguments, as a JSON object")
		var kept string
		if input.InitialValue, kept = bot.Editable(card.Arguments); kept != "" {
			block.Hint = label(cut(kept, hintLimit))
		}
		if length(input.InitialValue) > inputLimit {
			return tooLong(v, card)
		}
	}
	v.Blocks = slack.Blocks{BlockSet: []slack.Block{block}}
	return v
}

// alwaysForm shows the rule that would be saved: the call, whole, for whom, where, and until when. What may be left
// open of the call is there to be chosen, and nothing of it is chosen at first.
func (s *Slack) alwaysForm(v slack.ModalViewRequest, card agent.Reply) slack.ModalViewRequest {
	v.Title, v.Submit = label("Always allow this"), label("Always allow")
	rule := "From now on " + escape(bot.AlwaysText("")) + clock(*card.Always) + ". Everything else is asked about as before. " +
		"_nudge approvals_ lists this and ends it."
	v.Blocks = slack.Blocks{BlockSet: append(call(card, math.MaxInt), paragraph(rule))}
	if len(card.Open) > 0 {
		v.Blocks.BlockSet = append(append(v.Blocks.BlockSet,
			paragraph("Where something is left open, "+escape(bot.OpenedText(""))+clock(*card.Always)+". What may be left open:")), letters(bot.OpenLines(card))...)
		v.Blocks.BlockSet = append(v.Blocks.BlockSet, openChoice(card.Open))
	}
	return v
}

// openChoice is a checkbox for each argument that can be left open. It shows names alone, since their bounds are too long for it.
func openChoice(open []agent.Opening) slack.Block {
	var options []*slack.OptionBlockObject
	for _, o := range open {
		options = append(options, slack.NewOptionBlockObject(o.Name, label("any "+o.Name), nil))
	}
	block := slack.NewInputBlock(openBlock, label("Leave open"), label("Nothing chosen: exactly this call."), slack.NewCheckboxGroupsBlockElement(formInput, options...))
	block.Optional = true
	return block
}

// tooLong is the form for arguments that do not fit into one: it says what to do instead.
func tooLong(v slack.ModalViewRequest, card agent.Reply) slack.ModalViewRequest {
	v.Submit = nil
	v.Blocks = slack.Blocks{BlockSet: []slack.Block{section(
		"These arguments are too long for a form of Slack's. Write instead, where the card stands:\n\nnudge edit " + card.ID + " {…}")}}
	return v
}

// overForm is what becomes of a form that can no longer be sent.
func overForm(text string) *slack.ModalViewRequest {
	return &slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: formCallback, Title: label("Nothing was done"), Close: label("Close"),
		Blocks: slack.Blocks{BlockSet: []slack.Block{section(cut(text, sectionLimit))}},
	}
}

// submitted takes a filled-in form. What is wrong with it is shown in the form, before anything is decided.
func (s *Slack) submitted(ctx context.Context, in bot.Receiver, e envelope, i interaction) {
	var why purpose
	if i.View.Callback != formCallback || json.Unmarshal([]byte(i.View.Private), &why) != nil || why.Card == "" {
		s.acknowledge(ctx, e, nil)
		return
	}
	id := key("form", i.User.ID, i.View.ID)
	i.Container.Channel, i.Container.Thread, i.Container.Message = why.Channel, why.Thread, why.Message
	event := bot.Event{
		Keys: []string{id}, Address: why.Address, At: time.Now(), ID: message{why.Channel, why.Message}.String(),
		Click: &agent.Decision{Card: why.Card, Verdict: why.Verdict}, Keeps: true,
	}
	event.From, event.Standing = s.person(ctx, i.team(s.me().team), i.User.ID)
	if s.sent.Has(id) {
		s.acknowledge(ctx, e, nil) // a redelivery of one that was taken
		return
	}
	fault, err := s.decides(ctx, in, why, i.View, event)
	if err != nil {
		s.lost(ctx, err)
		return
	}
	if fault != nil {
		s.acknowledge(ctx, e, fault)
		return
	}
	if s.pressed(ctx, in, e, i, event) {
		s.sent.Put(id, true)
	}
}

// decides fills in the decision of a form, and gives what the form shows when it cannot be taken; nil when it can.
func (s *Slack) decides(ctx context.Context, in bot.Receiver, why purpose, view sentForm, event bot.Event) (fault any, err error) {
	f, err := fill(ctx, in, why, view, event.Click)
	switch {
	case err != nil:
		return nil, err
	case f.over != "":
		return slack.NewUpdateViewSubmissionResponse(overForm(f.over)), nil
	case len(f.faults) > 0:
		return slack.NewErrorsViewSubmissionResponse(f.faults), nil
	}
	o, err := in.Weigh(ctx, event)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look at what speaks against a decision about the card %s: %w", why.Card, err)
	case o == nil:
		return nil, nil
	case o.Final || why.Verdict == agent.Always:
		return slack.NewUpdateViewSubmissionResponse(overForm(o.Text)), nil
	case f.fields != nil:
		return slack.NewErrorsViewSubmissionResponse(inPlace(f.fields, *o)), nil
	}
	return slack.NewErrorsViewSubmissionResponse(map[string]string{formBlock: cut(o.Text, faultLimit)}), nil
}

// filled is a form that came back.
type filled struct {
	fields []form.Field      // of an edit that has them
	faults map[string]string // what is wrong with it, by block
	over   string            // why it can no longer be sent; "" when it can
}

// fill puts what a person wrote into a form into a decision.
func fill(ctx context.Context, in bot.Receiver, why purpose, view sentForm, d *agent.Decision) (f filled, err error) {
	if why.Verdict == agent.Edit && why.Fields != "" {
		return fillFields(ctx, in, why, view, d)
	}
	if why.Verdict == agent.Always {
		d.Open = view.State.Values[openBlock][formInput].chosen()
	}
	if fault := bot.Fill(d, view.State.Values[formBlock][formInput].Value); fault != "" {
		f.faults = map[string]string{formBlock: fault}
	}
	return f, nil
}

// fillFields is fill for a form with a field for each argument.
func fillFields(ctx context.Context, in bot.Receiver, why purpose, view sentForm, d *agent.Decision) (f filled, err error) {
	card, waiting, err := in.Card(ctx, why.Card)
	if err != nil {
		return f, fmt.Errorf("look up the card %s: %w", why.Card, err)
	}
	if !waiting {
		return f, nil // what became of it is told by whoever knows
	}
	schema := in.Schema(card.Tool)
	fields, _ := form.Fields(schema, card.Arguments, formLimits)
	switch {
	case len(schema) == 0:
		return f, nil // the same
	case form.Stamp(fields) != why.Fields:
		f.over = "The tool " + card.Tool + " has changed since this form was opened, so nothing was decided. Press Edit once more."
		return f, nil
	}
	f.fields = fields
	arguments, faults := form.Arguments(fields, enteredIn(fields, view.State.Values))
	d.Arguments, f.faults = arguments, byBlock(faults)
	return f, nil
}
