package slack

import (
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"nudge/agent"
	"nudge/bot"
)

// Slack's limits, in characters.
const (
	textLimit    = 4000  // of a message, as Slack splits or refuses longer ones
	wholeLimit   = 12000 // of a text that is said in messages; longer ones become a file
	cardLimit    = 11500 // of a card, as its buttons count as well and all blocks together may have about 13,200
	sectionLimit = 3000
	buttonLimit  = 75
	blockIDLimit = 255
	mostChoices  = 20 // of the 25 elements that a row of buttons may have
	excerptLimit = 1500
)

// label is plain text in which nothing is markup, not even the names of emoji.
func label(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

func section(text string) slack.Block {
	return slack.NewSectionBlock(label(text), nil, nil)
}

// sections shows a text of any length in plain text, whole.
func sections(text string) []slack.Block {
	var blocks []slack.Block
	for _, piece := range pieces(text, sectionLimit) {
		blocks = append(blocks, section(piece))
	}
	return blocks
}

func button(action, card, text string, style slack.Style) *slack.ButtonBlockElement {
	b := slack.NewButtonBlockElement(action, card, label(cut(text, buttonLimit)))
	b.Style = style
	return b
}

// row is a row of buttons. Its id says for which conversation they were made.
func row(address string, buttons ...slack.BlockElement) slack.Block {
	id := address
	if len(id) > blockIDLimit {
		id = ""
	}
	return slack.NewActionBlock(id, buttons...)
}

// cardBlocks show a card with its buttons. rest says where above it the whole card stands, when it is too long to be shown.
func (s *Slack) cardBlocks(r agent.Reply, rest string) []slack.Block {
	text := body(r)
	if rest != "" {
		text = cut(text, excerptLimit)
	}
	blocks := sections(text)
	if rest != "" {
		blocks = append(blocks, section("This is not all: the whole card is "+rest+" above."))
	}
	switch r.Kind {
	case agent.Ask:
		return append(blocks, row(r.Address, append(choices(r), button(actionAnswer, r.ID, "Answer…", slack.StyleDefault))...))
	case agent.Notice:
		return append(blocks, row(r.Address, choices(r)...))
	}
	blocks = append(blocks, slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, s.deciders(r), false, true)))
	return append(blocks, row(r.Address,
		button(actionApprove, r.ID, "Approve", slack.StylePrimary),
		button(actionDeny, r.ID, "Deny", slack.StyleDanger),
		button(actionEdit, r.ID, "Edit", slack.StyleDefault)))
}

// body is what a card says, without its last line: who may decide is shown in another way, and the buttons stand for the
// commands.
func body(r agent.Reply) string {
	if r.IsOffer() {
		return bot.Visible(r.Text)
	}
	text, last := bot.CardText(r), "\n"+strings.Join(r.MayDecide, ", ")+" may decide"
	if r.Kind == agent.Ask {
		last = "\nReply here, or:"
	}
	if at := strings.LastIndex(text, last); at > 0 {
		return text[:at]
	}
	return text
}

// choices are the buttons of a question. Those for which there is no room stand in its text all the same.
func choices(r agent.Reply) []slack.BlockElement {
	var buttons []slack.BlockElement
	for i, choice := range r.Choices[:min(len(r.Choices), mostChoices)] {
		name := strings.TrimSpace(bot.Visible(choice))
		if name == "" || length(name) > buttonLimit {
			name = fmt.Sprintf("%d) %s", i+1, name)
		}
		buttons = append(buttons, button(fmt.Sprint(actionChoice, i), r.ID, name, slack.StyleDefault))
	}
	return buttons
}

// deciders says who may decide, and until when, in Slack's markup.
func (s *Slack) deciders(r agent.Reply) string {
	var names []string
	for _, who := range r.MayDecide {
		names = append(names, escape(cut(s.called(who), 100)))
	}
	text := cut(strings.Join(names, ", "), 1500) + " may decide"
	if r.Expires != nil {
		text += " until " + clock(*r.Expires)
	}
	return text
}

// called is a person's name where it is known, with the id that tells who it is.
func (s *Slack) called(id string) string {
	user := strings.TrimPrefix(id, "slack:")
	if user == id {
		return id
	}
	if name := s.directory.name(user[strings.LastIndexByte(user, ':')+1:]); name != "" {
		return name + " (" + id + ")"
	}
	return id
}

// clock is an instant that Slack shows in each reader's own zone.
func clock(t time.Time) string {
	return fmt.Sprintf("<!date^%d^{date_short_pretty} {time}|%s>", t.Unix(), t.UTC().Format("2006-01-02 15:04 UTC"))
}

// outcome is what a card says after it was decided: what, by whom, and when.
func (s *Slack) outcome(r agent.Reply, now time.Time) string {
	user, isSlack := strings.CutPrefix(r.By, "slack:")
	text := strings.TrimSpace(escape(bot.DecidedText(r)))
	text = cut(text, textLimit-400)
	if isSlack {
		// A mention in an edit notifies nobody, and shows the name that people know.
		user = user[strings.LastIndexByte(user, ':')+1:]
		text = strings.Replace(text, "by "+escape(r.By), "by <@"+userID(user)+">", 1)
	}
	return text + " (" + clock(now) + ")"
}

// userID is an id with nothing in it but what an id has.
func userID(user string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, user)
}
