package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nudge/agent/model"
)

// act does one part of what the person wants. It is run anew at each step of the turn: calls that have their result
// give it, and the others become wanted.
type act func(t *turn)

// turn is a replay of a turn. The acts ask it for results, in order; where there are none yet it gathers calls.
type turn struct {
	*reading
	wanted []model.Call
	held   bool     // a result is missing that decides what comes next
	acting bool     // a wanted call may change something
	lines  []string // what will be said at the end
	good   int      // results that went well
	bad    int      // the others, and parts that could not be tried
}

// reads are the tools whose calls run at once, before the other calls of the same answer. Commands are not among
// them, so that what comes after a wait comes after it.
var reads = []string{"list_files", "read_file", "recall", "fetch_page", "load_skill", "plan"}

// say adds to what is said at the end.
func (t *turn) say(format string, values ...any) {
	t.lines = append(t.lines, strings.TrimSpace(fmt.Sprintf(format, values...)))
}

// fail says why a part can't be done.
func (t *turn) fail(format string, values ...any) {
	t.bad++
	t.say(format, values...)
}

// waits reports whether results are missing.
func (t *turn) waits() bool { return t.held || len(t.wanted) > 0 }

// call wants a call made. It returns its outcome, and false while there is none. Calls that are asked for after it
// may go out in the same answer.
func (t *turn) call(tool string, arguments map[string]any) (outcome, bool) {
	if t.held {
		return outcome{}, false
	}
	spec, ok := t.tools[tool]
	if !ok {
		t.fail("I can't %s here: the tool %s isn't offered in this conversation.", describe(tool, arguments), tool)
		return outcome{}, false
	}
	schema := schemaOf(spec)
	schema.trim(tool, arguments)
	if missing := schema.missing(arguments); missing != "" {
		t.fail("I can't %s: the tool %s also wants %q, and I don't know what to put there.", describe(tool, arguments), tool, missing)
		return outcome{}, false
	}
	c := model.Call{Name: tool, Arguments: encode(arguments)}
	for _, e := range t.done {
		if same(e.call, c) {
			return t.judged(e), true
		}
	}
	t.want(c)
	return outcome{}, false
}

// need is a call whose result decides what comes next, so that nothing is asked for after it.
func (t *turn) need(tool string, arguments map[string]any) (outcome, bool) {
	if t.held {
		return outcome{}, false
	}
	before := len(t.wanted)
	out, ok := t.call(tool, arguments)
	if !ok && len(t.wanted) > before {
		t.held = true
	}
	return out, ok
}

// perform is a call of which nothing more is needed than to report on it.
func (t *turn) perform(tool string, arguments map[string]any) {
	if out, ok := t.call(tool, arguments); ok {
		t.say("%s", report(out))
	}
}

// want adds a call to the answer. What only reads waits for what acts, or it would overtake it.
func (t *turn) want(c model.Call) {
	reading := slices.Contains(reads, c.Name)
	if reading && t.acting {
		t.held = true
		return
	}
	if slices.ContainsFunc(t.wanted, func(w model.Call) bool { return same(w, c) }) {
		return
	}
	c.ID = "d" + strconv.Itoa(t.nextID+len(t.wanted))
	t.wanted = append(t.wanted, c)
	t.acting = t.acting || !reading
}

func (t *turn) judged(e exchange) outcome {
	out := judge(e)
	if out.went() {
		t.good++
	} else {
		t.bad++
	}
	return out
}

// acknowledge says what became of the calls that the person's words broke into.
func (t *turn) acknowledge() {
	if len(t.cutOff) == 0 {
		return
	}
	t.say("Understood. Where things stood when you wrote:")
	for _, e := range t.cutOff {
		if line := brief(judge(e)); line != "" {
			t.say("- %s", line)
		}
	}
	if len(t.lines) == 1 {
		t.lines = nil
	}
}

// encode writes arguments the same way each time: json sorts the keys.
func encode(arguments map[string]any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(arguments) != nil {
		return "{}"
	}
	return strings.TrimSpace(text.String())
}

// same reports whether two calls ask for the same, however their arguments are written.
func same(a, b model.Call) bool {
	return a.Name == b.Name && (a.Arguments == b.Arguments || canonical(a.Arguments) == canonical(b.Arguments))
}

func canonical(arguments string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return arguments
	}
	return encode(fields)
}
