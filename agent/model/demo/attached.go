package demo

import (
	"slices"
	"strconv"
	"strings"
)

// attachedMark is how the agent tells of a file that came with the words, and by which path it is read.
var attachedMark = expression(`^\[attached: (file:[\w.-]+) ("(?:[^"\\]|\\.)*")`)

// meansAttached is how people point at what came with their words.
var meansAttached = expression(`(?i)^(?:(?:all|both|each)(?: of)? )?(?:it|that|this|these|those|them|(?:(?:the|this|that|my|these|those) )?(?:attached )?(?:files?|attachments?|documents?))(?: (?:attached|here))?$`)

// attachment is a file that came with the words.
type attachment struct{ path, name string }

// findAttached finds what came with the words, in the order in which it is told.
func (r *reading) findAttached() {
	for _, mark := range r.marks {
		m := attachedMark.FindStringSubmatch(mark)
		if m == nil {
			continue
		}
		name, err := strconv.Unquote(m[2])
		if err == nil {
			r.attached = append(r.attached, attachment{m[1], name})
		}
	}
	if r.words != "" { // behind words, marks are found from the last to the first
		slices.Reverse(r.attached)
	}
	if n := len(r.attached); n > 0 {
		r.it = r.attached[n-1].path
	}
}

// pathOf is the path by which a file is read, given its name: what came with the words goes before the workspace.
func (r *reading) pathOf(name string) string {
	for _, a := range r.attached {
		if a.name == name {
			return a.path
		}
	}
	return name
}

// readAttached reads all that came with the words.
func readAttached(t *turn) {
	for _, a := range t.attached {
		out, ok := t.call("read_file", map[string]any{"path": a.path})
		if !ok {
			continue
		}
		line := report(out)
		if rest, named := strings.CutPrefix(line, a.path); named {
			line = oneLine(a.name) + rest
		}
		t.say("%s", line)
	}
}
