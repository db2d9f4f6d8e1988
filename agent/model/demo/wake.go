package demo

import "strings"

var (
	reminderOf  = phrase(`(?:please )?(?:remind|tell|ask|nudge|ping|notify)(?: (?:me|us|her|him|them|the person|\p{Lu}[\p{L}'-]*))? (?:to|it's time to|it is time to|that it's time to) (?P<what>.+)`)
	tellingOf   = phrase(`(?:please )?(?:remind|tell|ask|nudge|ping|notify|warn|message|alert|let)(?: (?:me|us|her|him|them|the person|\p{Lu}[\p{L}'-]*))?(?: know)?(?: (?:that|about|of|when|whenever|if|once|as soon as))? (?P<what>.+)`)
	tellingBare = phrase(`(?:please )?(?:remind|tell|ask|nudge|ping|notify|warn|message|alert)(?: me| us)?`)
	timeTo      = phrase(`(?:it's |it is )?time to (?P<what>.+)`)
	silent      = expression(`(?i)\b(?:say nothing|stay (?:silent|quiet)|do nothing|don't notify|be silent|keep quiet)\b`)
	hasDigit    = expression(`\d`)
)

// wake answers a heartbeat: it tells the person one thing, once, or nothing.
func wake(t *turn) {
	prompt, evidence := wakeWords(t.words)
	for _, e := range t.done {
		if e.call.Name == "notify" {
			t.say("%s", passedOn(judge(e)))
			return
		}
	}
	text := t.wakeText(prompt, evidence)
	switch {
	case t.waits():
	case text == "":
		t.say("There is nothing to say.")
	default:
		t.call("notify", map[string]any{"text": text})
	}
}

// passedOn says in short how telling the person went.
func passedOn(o outcome) string {
	if o.went() {
		return "I passed it on. The result: " + oneLine(o.text)
	}
	return brief(o)
}

// wakeText is what the person shall hear, or "". What the prompt asks to look up is looked up first.
func (t *turn) wakeText(prompt, evidence string) string {
	if prompt == "" && evidence == "" || evidence == "" && silent.MatchString(prompt) {
		return ""
	}
	if w, ok := findWhen(prompt); ok {
		prompt = w.rest
	}
	if evidence != "" {
		if prompt == "" {
			return "The check saw: " + evidence
		}
		return capital(subjectOf(prompt)) + " - the check saw: " + evidence
	}
	if reminderOf.MatchString(prompt) || timeTo.MatchString(prompt) {
		return reminderText(prompt)
	}
	if found := t.lookUp(prompt); found != "" || t.waits() {
		return found
	}
	if asksIf.MatchString(prompt) {
		return "You wanted to know if " + sentence(toPerson(subjectOf(prompt))) + " I can't look that up, being only the demo model."
	}
	return reminderText(prompt)
}

// lookUp does what a prompt asks for, if that only reads, and returns what came of it.
func (t *turn) lookUp(prompt string) string {
	words := subjectOf(prompt)
	for _, i := range []func(*reading, clause) act{diskIntent, listIntent, readIntent} {
		a := i(t.reading, newClause(words))
		if a == nil || !t.offersAny("run_command", "list_files", "read_file") {
			continue
		}
		before := len(t.lines)
		a(t)
		found := strings.Join(t.lines[before:], "\n")
		t.lines = t.lines[:before]
		if _, output, ok := strings.Cut(found, wrote+"\n"); ok {
			return sentence(capital(words)) + " The command wrote: " + telling(strings.Split(strings.Trim(output, "`\n"), "\n"))
		}
		return trim(found, longQuote)
	}
	return ""
}

func (t *turn) offersAny(tools ...string) bool {
	for _, tool := range tools {
		if t.offers(tool) {
			return true
		}
	}
	return false
}

// wakeWords parts a wake's message into the prompt and the telling lines of what the check saw, which stands
// between lines of "<<<" and ">>>".
func wakeWords(words string) (prompt, evidence string) {
	var before, saw []string
	in, seen := false, false
	for line := range strings.Lines(words) {
		line = strings.TrimSpace(line)
		switch {
		case line == "<<<" && !seen:
			in, seen = true, true
			if n := len(before); n > 0 && strings.HasSuffix(before[n-1], ":") {
				before = before[:n-1]
			}
		case line == ">>>" && in:
			in = false
		case in:
			saw = append(saw, line)
		case !seen && line != "" && !strings.HasPrefix(line, "The last time, you told them: "):
			before = append(before, line)
		}
	}
	if n := len(before); n > 1 && strings.HasSuffix(before[0], ":") {
		before = before[1:]
	}
	return sentenceEnd.ReplaceAllString(unquote(strings.Join(before, " ")), ""), telling(saw)
}

// telling picks the first lines that tell something: those with a number if there are any.
func telling(lines []string) string {
	const most = 2
	lines = nonEmpty(lines)
	var numbered []string
	for _, line := range lines {
		if hasDigit.MatchString(line) && !strings.HasPrefix(line, "exit ") {
			numbered = append(numbered, line)
		}
	}
	if len(numbered) > 0 {
		lines = numbered
	}
	return oneLine(strings.Join(lines[:min(most, len(lines))], "; "))
}

// subjectOf is what a prompt is about, without whom to tell it.
func subjectOf(prompt string) string {
	for _, p := range []*pattern{reminderOf, timeTo, tellingOf} {
		if m := groups(p, prompt); m != nil {
			return m["what"]
		}
	}
	if tellingBare.MatchString(prompt) {
		return ""
	}
	return prompt
}

var mineWords = expression(`(?i)\b(?:I am|I'm|I|me|my|mine|myself|am)\b`)

// toPerson turns what a person said of themselves into what is said to them.
func toPerson(text string) string {
	return mineWords.ReplaceAllStringFunc(text, func(word string) string {
		switch strings.ToLower(word) {
		case "i am", "i'm":
			return "you are"
		case "i", "me":
			return "you"
		case "my":
			return "your"
		case "mine":
			return "yours"
		case "myself":
			return "yourself"
		}
		return "are"
	})
}

// sentence ends a text as one.
func sentence(text string) string {
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}
