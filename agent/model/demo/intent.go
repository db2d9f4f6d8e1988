package demo

// intent is something that a person may want. Its match turns a clause into an act, or returns nil when the clause
// says something else.
type intent struct {
	name  string
	match func(r *reading, c clause) act
}

// intents are tried in this order, the more particular before the more general.
var intents []intent

func init() { // not a plain value, because plans and examples look things up in the table themselves
	intents = []intent{
		{"take back", dropIntent},
		{"an example's number", exampleIntent},
		{"help", helpIntent},
		{"fetch a page", fetchIntent},
		{"run a script", scriptIntent},
		{"load a skill", skillIntent},
		{"delegate", delegateIntent},
		{"stop a heartbeat", stopIntent},
		{"watch an address", addressIntent},
		{"check with a command", checkIntent},
		{"watch a file", watchIntent},
		{"make a heartbeat", remindIntent},
		{"plan", planIntent},
		{"ask the person", askIntent},
		{"forget a note", forgetIntent},
		{"remember", rememberIntent},
		{"recall", recallIntent},
		{"append to a file", appendIntent},
		{"copy a file", copyIntent},
		{"write a file", writeIntent},
		{"delete files", deleteIntent},
		{"wait", waitIntent},
		{"how full the disk is", diskIntent},
		{"run a command", commandIntent},
		{"list files", listIntent},
		{"read files", readIntent},
		{"what time it is", timeIntent},
		{"the person's name", nameIntent},
		{"what was said", saidIntent},
		{"arithmetic", sumIntent},
		{"what a heartbeat told", noteIntent},
		{"small talk", talkIntent},
		{"another file", otherFileIntent},
	}
}

// understand makes one act of all that the person said.
func understand(r *reading) act {
	if r.words == "" && len(r.attached) > 0 {
		return readAttached
	}
	if r.words == "" || cameOf.MatchString(r.words) {
		return newsAct(r)
	}
	if len(r.words) > longestWords {
		return longText(r)
	}
	words := instruction(r.words)
	acts, clear := r.parse(words)
	if !clear {
		if bare := speaker.ReplaceAllString(words, ""); bare != words {
			if others, ok := r.parse(bare); ok {
				acts = others
			}
		}
	}
	return inOrder(acts)
}

// longText takes a long text for what shall be written to a file, or for nothing that the demo model understands.
func longText(r *reading) act {
	if a := writeIntent(r, clause{raw: r.words}); a != nil {
		return a
	}
	return saying("That is a long text, and I'm only the demo model: with a long text I can do nothing but write it to a file. Say: write, the file's name, saying, and the text.")
}

// speaker is a name before the words, as in "Ann: list the files".
var speaker = expression(`^[\p{L}][\p{L}\p{N} .'_-]{0,30}:\s+`)

// parse finds the acts of some words, and whether all of them were understood. Many parts make a plan of their own.
func (r *reading) parse(words string) (acts []act, clear bool) {
	const manyParts = 3
	if a := planIntent(r, newClause(words)); a != nil {
		return []act{a}, true
	}
	parts := clauses(words)
	if len(parts) >= manyParts && r.offers("plan") {
		if a := planned(r, parts); a != nil {
			return []act{a}, true
		}
	}
	clear = true
	for _, part := range parts {
		a := r.match(newClause(part))
		if a == nil {
			clear = false
			a = puzzled(r, part, len(parts) == 1)
		}
		acts = append(acts, a)
	}
	return acts, clear
}

// match finds the first intent that fits a clause, or returns nil.
func (r *reading) match(c clause) act {
	for _, i := range intents {
		if a := i.match(r, c); a != nil {
			return a
		}
	}
	return nil
}

func inOrder(acts []act) act {
	return func(t *turn) {
		for _, a := range acts {
			a(t)
		}
	}
}

// saying is an act of words alone.
func saying(format string, values ...any) act {
	return func(t *turn) { t.say(format, values...) }
}
