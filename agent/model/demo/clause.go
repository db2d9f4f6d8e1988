package demo

import "strings"

// clause is one part of what the person said.
type clause struct {
	whole string // as it was said
	raw   string // without politeness
	plain string // in one line and without the sentence's end
}

var (
	politeStart = expression(`(?i)^(?:(?:please|kindly|nudge|hey|hi|hello|ok|okay|so|well|now|also|and|then|next|finally|first|afterwards|after that|can you|could you|would you|will you|i want you to|i'd like you to|i would like you to|i need you to|let's|just|go ahead and)\b[ ,!:-]+)+`)
	politeEnd   = expression(`(?i)[ ,]+(?:please|for me|thanks|thank you|now|right now|if you can)\s*([.!?]*)$`)
	correction  = expression(`(?i)^(?:(?:no|nope|stop|stop that|stop it|wait|hold on|actually|sorry|oops|rather|instead|i meant|i mean|scratch that|never mind|not that|don't do that|not \S+)\b\s*[,.!:;-]+\s*|(?:i meant|i mean|actually|no i meant)\s+)+`)
	insteadEnd  = expression(`(?i)[ ,]+(?:instead|rather|i meant|i mean)\s*[.!?]*$`)
	joiner      = expression(`(?i)\s*[,;.!?]?\s+(?:and\s+)?(?:then|after that|afterwards)\b,?\s+|\s*[,;]\s*and\s+|\s+and\s+|\s*;\s*|\s*,\s+|[.!?]\s+|\s*\n\s*`)
	thenJoiner  = expression(`(?i)\b(?:then|after that|afterwards)\b`)
	verbStart   = expression(`(?i)^(?:(?:also|please|then|finally)\s+)*(?:read|show|open|cat|print|display|view|list|delete|remove|erase|write|create|save|put|append|add|copy|wait|sleep|pause|run|remind|ask me|plan|tell me|notify me|let me know|stop|cancel|remember|recall|forget|fetch|check|how full|how much|what|which|calculate|compute|make|load|delegate)\b`)
	freeText    = expression(`(?i)\b(?:saying|says|containing|with|remind|remember|tell me|notify me|let me know|ask me|every|each|daily|hourly|script|delegate)\b|^\s*(?:append|add)\b|:\s`)
	sentenceEnd = expression(`[\s.!?,;:]+$`)
	quotation   = expression("`[^`\\n]*`|\"[^\"]*\"|“[^”]*”|\\B'[^'\\n]*'\\B")
)

// newClause takes the politeness off.
func newClause(text string) clause {
	raw := strings.TrimSpace(text)
	raw = strings.TrimSpace(politeStart.ReplaceAllString(raw, ""))
	raw = strings.TrimSpace(politeEnd.ReplaceAllString(raw, "$1"))
	return clause{whole: sentenceEnd.ReplaceAllString(strings.TrimSpace(text), ""), raw: raw, plain: sentenceEnd.ReplaceAllString(strings.Join(strings.Fields(raw), " "), "")}
}

// instruction is what the words ask for, without what only says that they correct others.
func instruction(words string) string {
	text := correction.ReplaceAllString(strings.TrimSpace(words), "")
	text = insteadEnd.ReplaceAllString(text, "")
	if strings.TrimSpace(text) == "" {
		return words
	}
	return strings.TrimSpace(text)
}

// longestWords bounds, in bytes, what is taken apart. Longer words are a text that somebody pasted.
const longestWords = 16 << 10

// clauses parts what the person said where a verb follows a joining word, but not inside quotes. Free text, as in
// "write a.txt saying …", goes on until a "then".
func clauses(words string) []string {
	quoted := quotation.FindAllStringIndex(words, -1)
	var list []string
	start, free := 0, false
	for _, at := range joiner.FindAllStringIndex(words, -1) {
		if at[0] < start || inside(quoted, at[0]) || !verbStart.MatchString(words[at[1]:]) {
			continue
		}
		free = free || freeText.MatchString(words[start:at[0]])
		if free && !thenJoiner.MatchString(words[at[0]:at[1]]) {
			continue
		}
		list = append(list, words[start:at[0]])
		start, free = at[1], false
	}
	list = append(list, words[start:])
	return nonEmpty(list)
}

func inside(spans [][]int, at int) bool {
	for _, s := range spans {
		if s[0] <= at && at < s[1] {
			return true
		}
	}
	return false
}

func nonEmpty(list []string) []string {
	var kept []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}
