package demo

import "strings"

var (
	planWords = phrase(`(?:make (?:a|me a) )?plan\b(?: (?:for|of|to do))?(?P<what>[^:\n]*?)(?::\s*|\n)(?P<items>.+)`)
	planEmpty = phrase(`(?:(?:make (?:a|me a) )?plan(?: (?:something|for me|please))?)`)
	itemMark  = expression(`^(?:[-*•]\s+(?:\[[ x]\]\s*)?|\(?\d{1,2}[.)]\s+)`)
	itemJoin  = expression(`(?i)\s*;\s*(?:and\s+)?(?:then\s+)?|\s*\n\s*|\s*,?\s+(?:and\s+)?then\s+|[ ,]+\(?\d{1,2}[.)]\s+`)
	commaJoin = expression(`(?i)\s*,\s*(?:and\s+)?|\s+and\s+`)
)

// mostItems keeps a plan's turn below mostRounds.
const mostItems = 7

func planIntent(r *reading, c clause) act {
	if planEmpty.MatchString(c.plain) {
		return saying("What are its parts? Say: plan my day, a colon, and the parts with semicolons between them.")
	}
	m := groups(planWords, c.raw)
	if m == nil {
		return nil
	}
	items := nonEmpty(itemJoin.Split(m["items"], -1))
	if len(items) == 1 {
		items = nonEmpty(commaJoin.Split(m["items"], -1))
	}
	return planned(r, items)
}

// planned works through items in order: the plan first, then each part, which is ticked when its results say
// nothing against that, and a summary at the end.
func planned(r *reading, parts []string) act {
	if len(parts) > mostItems {
		return saying("That are more parts than I can keep to. Please give me fewer at a time.")
	}
	items := make([]string, 0, len(parts))
	acts := make([]act, 0, len(parts))
	for _, part := range parts {
		item := sentenceEnd.ReplaceAllString(newClause(itemMark.ReplaceAllString(part, "")).raw, "")
		if item == "" {
			continue
		}
		items = append(items, item)
		acts = append(acts, r.item(item))
	}
	if len(items) == 0 {
		return nil
	}
	return func(t *turn) { workThrough(t, items, acts) }
}

// item finds the acts of one item of a plan; nil when there is nothing in it that a tool could do.
func (r *reading) item(text string) act {
	var acts []act
	for _, part := range clauses(text) {
		c := newClause(part)
		if planIntent(r, c) != nil || talkIntent(r, c) != nil {
			return nil
		}
		a := r.match(c)
		if a == nil {
			return nil
		}
		acts = append(acts, a)
	}
	return inOrder(acts)
}

func workThrough(t *turn, items []string, acts []act) {
	done := make([]bool, len(items))
	planned := t.offers("plan")
	if planned {
		t.call("plan", planArguments(items, done))
	}
	for i, a := range acts {
		if a == nil {
			continue
		}
		good, bad := t.good, t.bad
		a(t)
		if t.waits() {
			return
		}
		done[i] = t.good > good && t.bad == bad
		if done[i] && planned {
			t.call("plan", planArguments(items, done))
		}
	}
	if !t.waits() {
		t.say("%s", summary(items, acts, done))
	}
}

func planArguments(items []string, done []bool) map[string]any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = map[string]any{"text": item, "done": done[i]}
	}
	return map[string]any{"items": list}
}

// summary says what was done and what was not.
func summary(items []string, acts []act, done []bool) string {
	lines := []string{"The plan, as far as it went:"}
	for i, item := range items {
		switch {
		case done[i]:
			lines = append(lines, "- [x] "+item)
		case acts[i] == nil:
			lines = append(lines, "- [ ] "+item+" (yours to do: I have no tool for it that I know how to use)")
		default:
			lines = append(lines, "- [ ] "+item+" (not done, see above)")
		}
	}
	return strings.Join(lines, "\n")
}
