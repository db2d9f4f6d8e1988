package bot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"nudge/agent"
)

// CardText is what a card says, whole, in plain text: for platforms and people without buttons, and for the text that a
// message with buttons carries besides them. Nothing in it is hidden: characters that are not seen are written out. Commands
// stand in it as they are typed where slash is [Abilities.Slash].
func CardText(r agent.Reply, slash string) string {
	var b strings.Builder
	if r.IsOffer() {
		return Visible(r.Text) + offered(r, slash)
	}
	if r.Kind == agent.Ask {
		fmt.Fprintf(&b, "%s", Visible(r.Text))
		for i, choice := range r.Choices {
			fmt.Fprintf(&b, "\n  %d) %s", i+1, strings.ReplaceAll(Visible(choice), "\n", `\u{A}`))
		}
		fmt.Fprintf(&b, "\nReply here, or: %s %s your words", spelled(slash, "answer"), r.ID)
		return b.String()
	}
	before, tool, after := Question(r)
	b.WriteString(before + tool + after)
	if r.Why != "" {
		fmt.Fprintf(&b, "\n%s", Visible(r.Why))
	}
	fmt.Fprintf(&b, "\n%s", ArgumentsText(r.Arguments))
	if r.Text != "" {
		fmt.Fprintf(&b, "\n%s", Visible(r.Text))
	}
	fmt.Fprintf(&b, "\n%s may decide", strings.Join(r.MayDecide, ", "))
	if r.Expires != nil {
		fmt.Fprintf(&b, " until %s", r.Expires.Local().Format(time.DateTime))
	}
	approve, deny := spelled(slash, "approve"), spelled(slash, "deny")
	fmt.Fprintf(&b, ".  %s %s   %s %s [reason]", approve, r.ID, deny, r.ID)
	if !r.Parked {
		fmt.Fprintf(&b, "   %s %s {arguments}", spelled(slash, "edit"), r.ID)
	}
	if r.Always != nil {
		fmt.Fprintf(&b, "\n%s %s always: from now on %s.", approve, r.ID, AlwaysText(r.Always.Local().Format(time.DateTime)))
		for _, o := range r.Open {
			fmt.Fprintf(&b, "\n%s %s always any %s: the same with %s.", approve, r.ID, o.Name, Visible(o.String()))
		}
		if len(r.Open) > 1 {
			fmt.Fprintf(&b, "\nSeveral go together: always any %s %s.", r.Open[0].Name, r.Open[1].Name)
		}
	}
	if all := strings.Join(r.Batch, " "); all != "" {
		fmt.Fprintf(&b, "\n%s %s %s   %s %s\n%s", BatchHead(r), approve, all, deny, all, BatchText(r))
	}
	return b.String()
}

// createHeartbeat is the tool whose cards are of something to be kept rather than of something to be run.
const createHeartbeat = "create_heartbeat"

// Question is what an approval asks, in three parts of which the second is a tool's name; "" where it need not be named.
func Question(r agent.Reply) (before, tool, after string) {
	if r.Tool == createHeartbeat {
		return "Shall I save this heartbeat?", "", ""
	}
	return "May I run ", r.Tool, "?"
}

// ButtonWords are what the buttons of an approval are called that let the call run and that do not.
func ButtonWords(r agent.Reply) (approve, deny string) {
	if r.Tool == createHeartbeat {
		return "Save", "Cancel"
	}
	return "Approve", "Deny"
}

// ArgumentsText is what a card says of a call's arguments.
func ArgumentsText(arguments json.RawMessage) string {
	text := Visible(indented(arguments))
	if words := mixed(arguments); words != nil {
		text += "\n" + careful(words)
	}
	return text
}

// careful warns of words that may be others than they look.
func careful(words []string) string {
	return "Careful, letters of several alphabets that look alike stand in: " + Visible(strings.Join(words, ", "))
}

// AlwaysText says what it means to allow a call always, until a time in words. What the call is stands beside it.
func AlwaysText(until string) string {
	return "exactly this call and no other runs without a card, for you alone and in direct messages, until " + until
}

// OpenedText says what it means to allow a call always and to leave something of it open, until a time in words. What the call is,
// and what is left open, stands beside it.
func OpenedText(until string) string {
	return "this call runs without a card, and so does each that differs from it in nothing but what is left open, for you alone and in direct messages, until " + until
}

// OpenLines says what may be left open of an approval's call, each on a line of its own.
func OpenLines(r agent.Reply) string {
	lines := make([]string, len(r.Open))
	for i, o := range r.Open {
		lines[i] = Visible(o.String())
	}
	return strings.Join(lines, "\n")
}

// RuleText is a rule in a line.
func RuleText(r agent.Rule) string {
	return fmt.Sprintf("%s  %s until %s", r.ID, Visible(strings.ReplaceAll(r.Text(), "\n", " ")), r.Until.Local().Format(time.DateTime))
}

// offered are the commands that stand for the choices of an offer: the first approves it, the second does not.
func offered(r agent.Reply, slash string) string {
	approve, deny := spelled(slash, "approve"), spelled(slash, "deny")
	if len(r.Choices) == 1 {
		return fmt.Sprintf("  (%s %s)", approve, r.ID)
	}
	return fmt.Sprintf("\n%s: %s %s   %s: %s %s", r.Choices[0], approve, r.ID, r.Choices[1], deny, r.ID)
}

// indented is an object a line for each value, with nothing escaped that JSON does not demand.
func indented(arguments json.RawMessage) string {
	value, ok := decoded(arguments)
	if !ok {
		return string(arguments)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if encoder.Encode(value) != nil {
		return string(arguments)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func decoded(arguments json.RawMessage) (value any, ok bool) {
	if !json.Valid(arguments) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.UseNumber() // a number is shown as it was written
	return value, decoder.Decode(&value) == nil
}

// mixed are the words in a card's arguments that have letters of Latin and of an alphabet with letters like them.
func mixed(arguments json.RawMessage) (words []string) {
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case string:
			words = append(words, mixedWords(value)...)
		case []any:
			for _, part := range value {
				walk(part)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				words = append(words, mixedWords(key)...)
				walk(value[key])
			}
		}
	}
	value, _ := decoded(arguments)
	walk(value)
	return words
}

func mixedWords(text string) []string {
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	return slices.DeleteFunc(strings.FieldsFunc(text, notLetter), func(word string) bool {
		latin := func(r rune) bool { return unicode.Is(unicode.Latin, r) }
		alike := func(r rune) bool {
			return unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee)
		}
		return strings.IndexFunc(word, latin) < 0 || strings.IndexFunc(word, alike) < 0
	})
}

// DecidedText is what a card says after it was decided.
func DecidedText(r agent.Reply) string {
	if r.IsFeedback() {
		return Visible(r.Text)
	}
	what := r.Tool
	if what == "" {
		what = "going on"
	}
	by := r.By
	if by == "" {
		by = "nobody in time"
	}
	approved, denied := "approved", "denied"
	if r.Tool == createHeartbeat {
		approved, denied = "saved", "cancelled" // as the buttons say: see [ButtonWords]
	}
	words := map[agent.Verdict]string{
		agent.Approve: approved + " by " + by, agent.Edit: approved + " with changes by " + by, agent.Always: approved + " by " + by + ", and always", agent.Deny: denied + " by " + by,
		agent.AnswerIt: "answered by " + by, agent.Expire: "expired: decided by nobody in time", agent.Withdrawn: "withdrawn",
	}[r.Decision]
	if r.Text != "" && r.Decision == agent.Deny {
		words += ": " + Visible(r.Text)
	}
	if r.Decision == agent.Always && len(r.Open) > 0 {
		words += ", with " + Visible(agent.OpenText(r.Open))
	}
	if r.Always != nil {
		words += " until " + r.Always.Local().Format(time.DateTime)
	}
	if r.Rule != "" {
		words += " (rule " + r.Rule + ")"
	}
	if r.Decision == agent.Edit && r.Told != "" {
		words += "\n" + Visible(r.Told)
	}
	return fmt.Sprintf("%s (%s): %s", what, r.ID, words)
}

// Visible writes out characters that a reader would not see, or that would change how the text around them looks:
// control and format characters, such as those that turn the direction of writing, those that fonts draw as nothing or
// as a blank, and spaces other than the common one.
func Visible(text string) string {
	hidden := func(r rune) bool {
		switch {
		case r == '\n', r == '\t', r == ' ':
			return false
		}
		const brailleBlank = '\u2800'
		return unicode.IsControl(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar || r == brailleBlank ||
			unicode.In(r, unicode.Cf, unicode.Z, unicode.Co, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	}
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "\\u{%X}", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Fill puts what a person wrote into a form of one input into the decision that the form is for, and says what is wrong with
// it; "" when nothing is. Whether arguments fit their tool is not looked at: see [Receiver].
func Fill(d *agent.Decision, value string) (fault string) {
	switch d.Verdict {
	case agent.Always:
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
