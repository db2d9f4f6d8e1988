package demo

import "strings"

var (
	askWords   = phrase(`ask me(?: (?P<how>whether|if|about|for|to|which|what|where|when|who|why|how|a question|something|anything))?(?:[ :,]+(?P<what>.+))?`)
	choiceOf   = phrase(`(?:to )?(?:choose|pick|decide|select)(?: one)?(?: (?:between|from|out of|of|among))?:? (?P<list>.+)`)
	choiceJoin = expression(`(?i)\s*,\s*(?:or\s+|and\s+)?|\s+or\s+|\s+and\s+`)
	wantLead   = expression(`(?i)^(?:you|i)\s+(?:want|prefer|like|would like|'d like|need|take|choose)\s+(?:to\s+)?|^.*\bbetween\s+`)
)

// askIntent asks the person what they want to be asked.
func askIntent(_ *reading, c clause) act {
	m := groups(askWords, c.raw)
	if m == nil && !askWords.MatchString(c.raw) {
		return nil
	}
	question, choices := asking(strings.ToLower(m["how"]), sentenceEnd.ReplaceAllString(m["what"], ""))
	arguments := map[string]any{"question": question}
	if len(choices) > 1 {
		arguments["choices"] = texts(choices)
	}
	return func(t *turn) { t.perform("ask_person", arguments) }
}

// asking makes a question, and the choices that it names.
func asking(how, what string) (question string, choices []string) {
	what = unquote(what)
	if m := groups(choiceOf, what); m != nil {
		return "Which one: " + m["list"] + "?", choicesIn(m["list"])
	}
	to := toPerson(what)
	switch how {
	case "", "a question", "something", "anything":
		if what == "" {
			return "What would you like me to do next?", nil
		}
		question = to
	case "whether", "if":
		if strings.Contains(strings.ToLower(to), " or ") {
			choices = choicesIn(wantLead.ReplaceAllString(to, ""))
		} else {
			choices = []string{"yes", "no"}
		}
		question = "is it so that " + to
		if wantLead.MatchString(to) {
			question = "do " + to
		}
	case "about", "for":
		question = "what about " + to
		if how == "for" {
			question = "can you give me " + to
		}
	default:
		question = turned(how + " " + to)
	}
	return capital(sentenceEnd.ReplaceAllString(question, "")) + "?", choices
}

var (
	endsInIs  = phrase(`(?P<w>what|where|who|when|how|why|which \S+)\s+(?P<of>.+?)\s+(?P<is>is|are|was|were)`)
	whatIWant = phrase(`(?P<w>(?:what|which|where|when|how|why)(?: (?:kind|sort) of)?(?: \S+)?)\s+you\s+(?P<do>like|want|prefer|need|think|love|go|live|work|feel|eat|drink|would like)\b(?P<rest>.*)`)
)

// turned puts the words of an indirect question into the order of a direct one.
func turned(question string) string {
	if m := groups(endsInIs, question); m != nil {
		return m["w"] + " " + m["is"] + " " + m["of"]
	}
	if m := groups(whatIWant, question); m != nil {
		return strings.TrimSpace(m["w"] + " do you " + m["do"] + " " + m["rest"])
	}
	return question
}

// choicesIn parts a list of choices; more than a handful are none.
func choicesIn(list string) []string {
	const mostChoices = 5
	choices := nonEmpty(choiceJoin.Split(list, -1))
	for i := range choices {
		choices[i] = unquote(choices[i])
	}
	if len(choices) > mostChoices {
		return nil
	}
	return choices
}
