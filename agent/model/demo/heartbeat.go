package demo

import (
	"slices"
	"strings"
)

var (
	watchWords = []*pattern{
		phrase(`(?P<lead>tell|notify|ping|warn|message|alert|remind|let)(?: me)?(?: know)?(?: (?:when(?:ever)?|if|once|as soon as|that|about))+ (?:there(?:'s| is) (?P<there>.+)|(?P<file>.+?) (?P<test>(?:appears|exists|shows up|is there|is created|arrives|turns up|is present|comes in|changes|is changed|is modified|is updated|disappears|is gone|is missing|is deleted|is removed|vanishes|grows|gets bigger)))(?P<rest>(?:[ ,].*)?)`),
		phrase(`(?:watch|keep an eye on)(?: for)? (?P<file>.+)`),
	}
	remindLead = expression(`(?i)\b(?:remind|tell|notify|ping|nudge|warn|message|wake|let me know|say|ask me|alert)\b`)
	whenFirst  = expression(`(?i)^(?:every|each|daily|hourly|weekly|monthly|nightly|once an?|on (?:` + dayName + `))\b`)
	remindBare = phrase(`remind me\b(?: (?:to|about|of|that) )?.*`)
	stateWords = expression(`(?i)^(?:exists|is there|is present|is gone|is missing)$`)
	evenThen   = expression(`(?i),? *\beven (?:at night|in (?:my |the )?quiet hours|during (?:my |the )?quiet hours)\b`)
	asksIf     = expression(`(?i)^(?:please )?(?:tell|let|notify|ping|warn|alert|message) (?:me|us)(?: know)? (?:if|when|whenever|once|as soon as|whether)\b`)
	setUp      = expression(`(?i)^(?:set up|create|make|add|start|new)(?: a| an| the)? (?:heartbeat|reminder)s?(?: that| to| for| which)?\s*`)
)

// watchIntent makes a heartbeat that wakes when something becomes of a file.
func watchIntent(r *reading, c clause) act {
	words, w := c.plain, when{cron: "@every 1m"}
	if found, ok := r.findTime(c.plain); ok {
		words, w = found.rest, found
	}
	for _, p := range watchWords {
		m := groups(p, words)
		if m == nil {
			continue
		}
		name := m["file"]
		if name == "" {
			name = m["there"]
		}
		names := r.names(name, true)
		if names == nil {
			return nil
		}
		path, on := names[0], "change"
		if w.cron != "@every 1m" && stateWords.MatchString(m["test"]) {
			on = "true" // it is asked what is so at these times
		}
		arguments := map[string]any{
			"name": slug(path), "cron": w.cron, "prompt": capital(words),
			"condition": map[string]any{"kind": "file", "path": path, "test": fileTest(m["test"]), "on": on},
		}
		w.put(arguments)
		return func(t *turn) { t.perform("create_heartbeat", arguments) }
	}
	return nil
}

// fileTest is the condition's word for what becomes of a file.
func fileTest(words string) string {
	words = strings.ToLower(words)
	for _, test := range []struct{ test, words string }{
		{"changed", "chang modif updat"}, {"missing", "disappear gone missing delet remov vanish"}, {"grows", "grow bigger"},
	} {
		if slices.ContainsFunc(strings.Fields(test.words), func(w string) bool { return strings.Contains(words, w) }) {
			return test.test
		}
	}
	return "exists"
}

// remindIntent makes a heartbeat that wakes at its time, whatever is the case.
func remindIntent(r *reading, c clause) act {
	text := setUp.ReplaceAllString(c.plain, "")
	made := text != c.plain
	if made && strings.HasSuffix(strings.TrimSpace(setUp.FindString(c.plain)), " to") {
		text = "remind me to " + text
	}
	if w, ok := r.findTime(text); ok && (made || whenFirst.MatchString(text) || remindLead.MatchString(text)) {
		prompt := capital(strings.TrimSpace(w.rest))
		return func(t *turn) { reminding(t, prompt, w) }
	}
	if !remindBare.MatchString(c.plain) {
		return nil
	}
	return func(t *turn) { askWhen(t, c.plain) }
}

func reminding(t *turn, prompt string, w when) {
	subject := subjectOf(prompt)
	if subject == "" {
		t.fail("I heard when, but not what. Say it as in: %s", repeating.line)
		return
	}
	arguments := map[string]any{"name": slug(subject), "cron": w.cron, "condition": map[string]any{"kind": "always"}}
	w.put(arguments)
	if loud := evenThen.FindStringIndex(prompt); loud != nil {
		prompt, arguments["break_quiet"] = without(prompt, loud[0], loud[1]), true
		arguments["name"] = slug(subjectOf(prompt))
	}
	if w.once && !asksIf.MatchString(prompt) {
		arguments["text"] = reminderText(prompt)
	} else {
		arguments["prompt"] = prompt
	}
	t.perform("create_heartbeat", arguments)
}

// put puts what was said of a zone to the arguments of a heartbeat.
func (w when) put(arguments map[string]any) {
	if w.zone != "" {
		arguments["timezone"] = w.zone
	}
}

// askWhen asks how often, as that wasn't said.
func askWhen(t *turn, prompt string) {
	if !t.offers("ask_person") || !t.offers("create_heartbeat") {
		t.fail("I need to know how often. Say it as in: %s", repeating.line)
		return
	}
	reply, ok := t.need("ask_person", map[string]any{
		"question": "How often shall I do that?", "choices": []any{"every hour", "every day at nine", "every weekday at nine"},
	})
	switch {
	case !ok:
		return
	case reply.fate != answered:
		t.say("%s", report(reply))
		return
	}
	w, ok := t.findTime(reply.text)
	if !ok {
		w, ok = findWhen("every " + reply.text)
	}
	if !ok {
		t.fail("You answered \"%s\", and I can't make a time of that.", oneLine(reply.text))
		return
	}
	reminding(t, capital(prompt), w)
}

var stopWords = []*pattern{
	phrase(`(?:stop|cancel|end|delete|remove|turn off|disable)(?: the| my| this| that)? (?:heartbeat|reminder|watch)s?(?: (?:called|named|for|about|to))?(?: (?P<name>.+))?`),
	phrase(`(?:stop|cancel|end|delete|remove|turn off|disable)(?: the| my)? (?P<name>.+?) (?:heartbeat|reminder|watch)`),
	phrase(`(?:stop|quit|no more|don't keep|cease) (?:reminding|telling|nudging|pinging|notifying|warning|messaging|alerting)(?: me)?(?: (?:to|about|of|that|when|if))?(?: (?P<name>.+))?`),
	phrase(`(?:don't|do not|never) (?:remind|tell|nudge|ping|notify)(?: me)?(?: (?:to|about|of|that|when|if))?(?: (?P<name>.+?))? (?:any ?more|again|any longer)`),
}

func stopIntent(r *reading, c clause) act {
	for _, p := range stopWords {
		m := groups(p, c.plain)
		if m == nil && !p.MatchString(c.plain) {
			continue
		}
		name := r.heartbeat(unquote(m["name"]))
		if name == "" {
			return saying("Which heartbeat shall I stop? Say: stop heartbeat, and its name.")
		}
		return func(t *turn) { t.perform("stop_heartbeat", map[string]any{"name": name}) }
	}
	return nil
}

// heartbeat finds the name of the heartbeat that some words mean: one that was made in this conversation if they
// fit, otherwise the words themselves as a name.
func (r *reading) heartbeat(words string) string {
	wanted := slug(words)
	last := ""
	for _, e := range slices.Backward(r.past) {
		name := argument(e.call, "name")
		if e.call.Name != "create_heartbeat" || name == "" {
			continue
		}
		if last == "" {
			last = name
		}
		if wanted != "" && (name == wanted || strings.Contains(wanted, name) || strings.Contains(name, wanted)) {
			return name
		}
	}
	if words == "" || itself.MatchString(words) {
		return last
	}
	if surelyFile.MatchString(words) || strings.Contains(words, " ") {
		return wanted
	}
	return words
}

var notSlug = expression(`[^a-z0-9]+`)

// slug makes a short name of some words.
func slug(words string) string {
	const longest = 32
	name := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(words), "-"), "-")
	name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "to-"), "my-"), "the-")
	if len(name) > longest {
		name = name[:longest]
		if i := strings.LastIndex(name, "-"); i > 0 {
			name = name[:i]
		}
	}
	if name = strings.Trim(name, "-"); name == "" && strings.TrimSpace(words) != "" {
		return "heartbeat"
	}
	return name
}

// capital begins a sentence, but leaves names of files as they are.
func capital(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if text == "" || text[0] < 'a' || text[0] > 'z' || surelyFile.MatchString(first) {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
