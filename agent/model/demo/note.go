package demo

import (
	"slices"
	"strings"
)

var (
	rememberWords = phrase(`(?:remember|note|keep in mind|don't forget|memorize|memorise)(?: down)?(?: that| this)?[:,]?\s+(?P<text>.+)`)
	rememberAsks  = expression(`(?i)^(?:remember (?:me|when|what|anything|something)\b|note (?:down )?in\b)`)
	recallWords   = []*pattern{
		phrase(`(?:recall|look up in your notes|search your notes for|what do you (?:know|remember) (?:of|about)|do you (?:remember|know)(?: anything about)?|what did i tell you about|remember what|remember when)(?: what| where| when| who| that)? (?P<what>.+)`),
		phrase(`(?P<what>(?:where|when|who|whom|(?:what|which|how)(?: [\p{L}-]+){0,4}?) (?:do|does|did|am|have|can|should|would|will) (?:I|my|we|our) .+)`),
		phrase(`do (?P<what>I (?:like|have|own|prefer|live|work|eat|drink|hate|love|use) .+)`),
		phrase(`(?:what|who|when|where|which)(?: \w+)? (?:is|are|'s) my (?P<what>.+)`),
	}
	myName      = expression(`(?i)^(?:notes|files?|name)\b`)
	forgetWords = phrase(`forget(?: the)?(?: note)? (?P<id>` + "`[^`]+`|\"[^\"]+\"|" + `[\p{L}\p{N}_:./-]+)`)
	forgetIt    = phrase(`forget (?:it|that|this|about it|all of it)`)
	forgetText  = phrase(`forget (?:that|about|what) .+`)
	wordsOnly   = expression(`[\p{L}]+`)
)

// thesaurus is what the demo model knows of other words for a thing, so that notes are found by them too.
var thesaurus = [][]string{
	{"tea", "hot drink", "beverage"}, {"coffee", "espresso", "hot drink"}, {"car", "vehicle", "automobile"},
	{"dog", "puppy", "pet"}, {"cat", "kitten", "pet"}, {"house", "home", "flat", "apartment"}, {"job", "work", "office"},
	{"boss", "manager", "supervisor"}, {"holiday", "vacation", "trip"}, {"doctor", "physician", "medical appointment"},
	{"birthday", "anniversary", "date of birth"}, {"wife", "husband", "spouse", "partner"}, {"child", "kid", "son", "daughter"},
	{"like", "love", "enjoy", "favourite", "favorite", "prefer"}, {"hate", "dislike"}, {"allergic", "allergy", "intolerance"},
	{"phone", "mobile", "telephone"}, {"bike", "bicycle", "cycling"}, {"food", "meal", "dish"}, {"movie", "film"},
	{"meeting", "appointment", "call"}, {"server", "machine", "host"}, {"password", "secret", "login"},
	{"live", "home", "reside", "moved", "city", "address"}, {"called", "name", "named"}, {"works", "job", "profession", "employed"},
	{"train", "rail", "railway"}, {"sister", "brother", "sibling"},
}

// subjects are what a few plain statements are about, so that the next one about the same takes their place.
var subjects = []struct {
	words *pattern
	about string
}{
	{expression(`(?i)^I(?: now)?(?:'m living| live| moved| have moved| am living) (?:in|to|at)\b`), "where the person lives"},
	{expression(`(?i)^I(?: now)? work (?:at|for|as)\b`), "the person's work"},
	{expression(`(?i)^my ([\p{L} ]{2,40}?) (?:is|are|is called|is named)\b`), ""},
}

// subjectIn is what a statement is about; "" for most.
func subjectIn(text string) string {
	for _, s := range subjects {
		if m := s.words.FindStringSubmatch(text); m != nil {
			if s.about != "" {
				return s.about
			}
			return "the person's " + strings.ToLower(m[1])
		}
	}
	return ""
}

// otherWords are the words of the thesaurus that stand beside those of a text.
func otherWords(text string) []string {
	const most = 8
	var found []string
	for _, word := range wordsOnly.FindAllString(strings.ToLower(text), -1) {
		for _, row := range thesaurus {
			if !slices.Contains(row, word) && !slices.Contains(row, strings.TrimSuffix(word, "s")) {
				continue
			}
			for _, other := range row {
				if other != word && !slices.Contains(found, other) && len(found) < most {
					found = append(found, other)
				}
			}
		}
	}
	return found
}

// nameAsked is a question about what somebody or something is called.
var nameAsked = expression(`(?i)^(.+?)(?:['’]s? name| (?:is )?(?:called|named))$`)

func rememberIntent(_ *reading, c clause) act {
	m := groups(rememberWords, c.plain)
	if m == nil || rememberAsks.MatchString(c.plain) {
		return nil
	}
	text := capital(unquote(m["text"]))
	arguments := map[string]any{"text": text}
	aliases := otherWords(text)
	if len(aliases) > 0 {
		arguments["aliases"] = texts(aliases)
	}
	if about := subjectIn(text); about != "" {
		arguments["about"] = about
	}
	return func(t *turn) {
		out, ok := t.call("remember", arguments)
		if !ok {
			return
		}
		t.say("%s", report(out))
		if len(aliases) > 0 && out.went() {
			t.say("To find it by other words too, I gave it some out of my small built-in thesaurus; a language model writes better ones.")
		}
	}
}

func recallIntent(r *reading, c clause) act {
	if saidWords.MatchString(c.plain) {
		return nil
	}
	for _, p := range recallWords {
		m := groups(p, c.plain)
		if m == nil || myName.MatchString(m["what"]) {
			continue
		}
		if !r.offers("recall") {
			if r.offers("remember") {
				return saying("I don't know: nothing is remembered of you yet. Say \"remember that\", and what.")
			}
			return nil
		}
		queries := []string{m["what"]}
		if whose := nameAsked.FindStringSubmatch(m["what"]); whose != nil {
			queries = append(queries, whose[1]) // a note that tells a name need not say that it is one
		}
		if others := otherWords(m["what"]); len(others) > 0 {
			queries = append(queries, strings.Join(others, " "))
		}
		return func(t *turn) {
			if out, ok := t.call("recall", map[string]any{"queries": texts(queries)}); ok {
				t.say("%s", recalled(out))
			}
		}
	}
	return nil
}

func recalled(o outcome) string {
	switch {
	case strings.HasPrefix(o.text, "nothing in the diary fits"):
		return "I don't know: I looked through what I remember of you, and nothing fits. I looked by the words and a small thesaurus; a language model would try more of them."
	case o.fate == told, o.fate == worked:
		return "This is what the notes gave me:\n" + quote(o.text, longQuote)
	}
	return report(o)
}

func forgetIntent(_ *reading, c clause) act {
	if forgetIt.MatchString(c.plain) {
		return nil
	}
	if m := groups(forgetWords, c.plain); m != nil {
		id := unquote(m["id"])
		return func(t *turn) { t.perform("forget_note", map[string]any{"id": id}) }
	}
	if forgetText.MatchString(c.plain) {
		return saying("I can only forget a note by its id. Ask me what I know about it first, then say: forget note, and the id.")
	}
	return nil
}
