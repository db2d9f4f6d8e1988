package slack

import (
	"fmt"
	"slices"
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
	cardLimit    = 4000  // of a card that is shown whole, as of a message; a longer one is a file with its beginning shown
	sectionLimit = 3000
	buttonLimit  = 75
	blockIDLimit = 255
	mostChoices  = 20 // as buttons, of the 25 elements that a row may have; more become a menu
	excerptLimit = 1500
	outlineLimit = 2000 // of what is told of a text that became a file
	glimpseLimit = 600  // of the arguments on a card that is a file, and of what the tool says of them
)

// label is plain text in which nothing is markup, not even the names of emoji.
func label(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

func section(text string) slack.Block {
	return slack.NewSectionBlock(label(text), nil, nil)
}

// markup is a text in Slack's markup, in which nothing is made a link or a name that is none.
func markup(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.MarkdownType, text, false, true)
}

// paragraph shows a text in Slack's markup, and remark one in small letters.
func paragraph(text string) slack.Block { return slack.NewSectionBlock(markup(text), nil, nil) }
func remark(text string) slack.Block    { return slack.NewContextBlock("", markup(text)) }

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

// letters shows a text of any length in letters of one width, whole. Nothing in it is markup.
func letters(text string) []slack.Block {
	var blocks []slack.Block
	for _, piece := range pieces(text, sectionLimit) {
		if piece = strings.TrimRight(piece, "\n"); piece != "" {
			blocks = append(blocks, slack.NewRichTextBlock("", &slack.RichTextPreformatted{
				Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(piece, nil)},
			}))
		}
	}
	return blocks
}

// asking is the first line of an approval.
func asking(r agent.Reply) slack.Block {
	before, tool, after := bot.Question(r)
	parts := []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(before, nil)}
	if tool != "" {
		style := &slack.RichTextSectionTextStyle{Code: true, Bold: true}
		parts = append(parts, slack.NewRichTextSectionTextElement(cut(bot.Visible(tool), labelLimit), style), slack.NewRichTextSectionTextElement(after, nil))
	}
	return slack.NewRichTextBlock("", slack.NewRichTextSection(parts...))
}

// call shows the call that an approval is about: the tool, its arguments, and what the tool says of them.
func call(r agent.Reply, limit int) []slack.Block {
	blocks := []slack.Block{asking(r)}
	if r.Why != "" {
		blocks = append(blocks, sections(bot.Visible(r.Why))...)
	}
	blocks = append(blocks, letters(cut(bot.ArgumentsText(r.Arguments), limit))...)
	switch text := cut(bot.Visible(r.Text), limit); {
	case strings.Contains(text, "\n"):
		blocks = append(blocks, letters(text)...) // a diff, or a list
	case text != "":
		blocks = append(blocks, section(text))
	}
	return blocks
}

// cardBlocks show a card with its buttons. rest says where above it the whole card stands, when it is too long to be shown.
func (s *Slack) cardBlocks(r agent.Reply, rest string) []slack.Block {
	limit := cardLimit
	if rest != "" {
		limit = glimpseLimit
	}
	var blocks []slack.Block
	if r.Kind == agent.Approval {
		blocks = call(r, limit)
	} else {
		blocks = sections(cut(body(r), limit))
	}
	if rest != "" {
		blocks = append(blocks, section("This is not all: the whole card is "+rest+" above."))
	}
	switch r.Kind {
	case agent.Ask:
		return append(blocks, row(r.Address, append(choices(r), button(actionAnswer, r.ID, "Answer…", slack.StyleDefault))...))
	case agent.Notice:
		return append(blocks, row(r.Address, choices(r)...))
	}
	blocks = append(blocks, remark(s.deciders(r)))
	if len(r.Batch) > 0 {
		blocks = append(append(blocks, section(bot.BatchHead(r))), letters(bot.BatchText(r))...)
	}
	return append(blocks, row(r.Address, verdicts(r)...))
}

// verdicts are the buttons of an approval.
func verdicts(r agent.Reply) []slack.BlockElement {
	approve, deny := bot.ButtonWords(r)
	buttons := []slack.BlockElement{
		button(actionApprove, r.ID, approve, slack.StylePrimary),
		button(actionDeny, r.ID, deny, slack.StyleDanger),
	}
	if !r.Parked {
		buttons = append(buttons, button(actionEdit, r.ID, "Edit", slack.StyleDefault))
	}
	if r.Always != nil {
		buttons = append(buttons, button(actionAlways, r.ID, "Always allow this…", slack.StyleDefault))
	}
	if len(r.Batch) > 0 {
		approve, deny := bot.BatchWords(r)
		buttons = append(buttons, button(actionApproveAll, r.ID, approve, slack.StylePrimary), button(actionDenyAll, r.ID, deny, slack.StyleDanger))
	}
	return buttons
}

// body is what a question or an offer says, without the commands for which its buttons stand, and without choices that are
// buttons with their whole text.
func body(r agent.Reply) string {
	if r.IsOffer() || !slices.ContainsFunc(r.Choices, func(choice string) bool { return shortened(r, choice) }) {
		return bot.Visible(r.Text)
	}
	text := bot.CardText(r, "")
	if at := strings.LastIndex(text, "\nReply here, or:"); at > 0 {
		return text[:at]
	}
	return text
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
	if name := s.directory.name(userOf(agent.PersonID(id))); name != "" {
		return name + " (" + id + ")"
	}
	return id
}

// clock is an instant that Slack shows in each reader's own zone.
func clock(t time.Time) string {
	return fmt.Sprintf("<!date^%d^{date_short_pretty} {time}|%s>", t.Unix(), t.UTC().Format("2006-01-02 15:04 UTC"))
}

// outcome is what a card says after it was decided: what, by whom, and when, and in short what it asked.
func (s *Slack) outcome(r agent.Reply, now time.Time) string {
	until, open := r.Always, r.Open
	r.Always, r.Open = nil, nil // Slack shows the time in the reader's own zone, and what is left open as code
	text, end := strings.TrimSpace(escape(bot.DecidedText(r))), ""
	if until != nil {
		end = " until " + clock(*until)
	}
	end += " (" + clock(now) + ")" + askedOf(r)
	if len(open) > 0 {
		end += "\nwith " + asCode(bot.Visible(agent.OpenText(open)))
	}
	if user := userOf(agent.PersonID(r.By)); user != "" {
		// A mention in an edit notifies nobody, and shows the name that people know.
		text = strings.Replace(text, "by "+escape(r.By), "by <@"+userID(user)+">", 1)
	}
	return cut(text, textLimit-length(end)) + end
}

// askedOf is the line of an outcome that shows what its card asked, with the answer to a question; "" where none is known.
func askedOf(r agent.Reply) string {
	if r.Told == "" || r.IsFeedback() || r.Decision == agent.Edit {
		return ""
	}
	line := "\n" + asked(bot.Visible(r.Told))
	if r.Decision == agent.AnswerIt {
		line += " → " + cut(escape(bot.Visible(r.Text)), excerptLimit)
	}
	return line
}

// asked shows what a card asked: arguments as code, in which a backtick is written as JSON can, and a question as words.
func asked(about string) string {
	if !strings.HasPrefix(about, "{") || strings.Contains(about, "\n") {
		return cut(escape(about), excerptLimit)
	}
	return "`" + cut(strings.ReplaceAll(escape(about), "`", `\u0060`), excerptLimit) + "`"
}

// asCode shows a line as it is. A backtick would end it.
func asCode(line string) string {
	return "`" + cut(strings.ReplaceAll(escape(line), "`", `\u{60}`), excerptLimit) + "`"
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
