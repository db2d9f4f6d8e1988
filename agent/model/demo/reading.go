package demo

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"nudge/agent/model"
)

// exchange is a call and its result. A call without a result has an empty one: it is not made again.
type exchange struct {
	call   model.Call
	result string
}

// reading is a request taken apart. Everything but done and rounds stays the same for the whole turn, so that the
// words are understood the same way at each of its steps.
type reading struct {
	tools   map[string]model.Tool
	system  string
	texts   []string   // of all messages, oldest first
	words   string     // what the person said last, without marks
	marks   []string   // the marks on or after those words, newest first
	news    string     // a mark that began the turn instead of words
	earlier []string   // what was said before, oldest first
	past    []exchange // before the words
	cutOff  []exchange // of past, those of the run that the words broke into
	done    []exchange // since the words
	rounds  int        // answers with calls since the words
	nextID  int        // the number of the next call
	it      string     // the file that "it" means
	// attached are the files that came with the words.
	attached []attachment
	spoken   string // the last text of the assistant before the words
}

// read takes a request apart.
func read(req model.Request) *reading {
	r := &reading{tools: map[string]model.Tool{}, system: req.System, nextID: 1}
	for _, tool := range req.Tools {
		r.tools[tool.Name] = tool
	}
	for _, m := range req.Messages {
		r.texts = append(r.texts, m.Text)
		for _, c := range m.Calls {
			r.nextID++
			if n, err := strconv.Atoi(strings.TrimPrefix(c.ID, "d")); err == nil && n < 1<<30 {
				r.nextID = max(r.nextID, n+1)
			}
		}
	}
	at := r.findWords(req.Messages)
	before, since := req.Messages[:max(at, 0)], req.Messages[at+1:]
	r.past, r.done = exchanges(before), exchanges(since)
	for _, m := range since {
		if len(m.Calls) > 0 {
			r.rounds++
		}
	}
	r.readPast(before)
	r.findAttached()
	return r
}

// findWords finds the message that the turn is about and returns its index, or -1.
func (r *reading) findWords(messages []model.Message) int {
	bare := -1
	goesOn := false // over the line with which a limit had ended the turn
	for i, m := range slices.Backward(messages) {
		switch {
		case m.Role == model.User && letGoOn.MatchString(m.Text):
			goesOn = true
		case m.Role == model.Assistant && len(m.Calls) == 0 && goesOn:
			goesOn = false
		case m.Role == model.User:
			words, marks := splitMarks(m.Text)
			if at := strings.Index(m.Text, "["); at >= 0 && cameOf.MatchString(strings.TrimSpace(m.Text[at:])) {
				words = strings.TrimSpace(m.Text[at:])
			}
			r.marks = append(r.marks, marks...)
			if words != "" {
				r.words = words
				return i
			}
			bare = i
		case m.Role == model.Assistant && len(m.Calls) == 0 && bare >= 0:
			r.news = strings.Join(r.marks, "\n")
			return bare
		}
	}
	if bare >= 0 {
		r.news = strings.Join(r.marks, "\n")
	}
	return bare
}

// readPast learns what was going on before the words.
func (r *reading) readPast(before []model.Message) {
	open := len(before)
	running := true
	for i, m := range slices.Backward(before) {
		words, _ := splitMarks(m.Text)
		switch {
		case m.Role == model.User && words != "":
			r.earlier = append(r.earlier, words)
			running = false
		case m.Role == model.Assistant && len(m.Calls) == 0:
			if r.spoken == "" {
				r.spoken = m.Text
			}
			running = false
		case running:
			open = i
		}
	}
	slices.Reverse(r.earlier)
	r.cutOff = exchanges(before[open:])
	for _, e := range r.past {
		if path := argument(e.call, "path"); path != "" {
			r.it = path
		}
	}
}

// offers reports whether a tool may be called.
func (r *reading) offers(tool string) bool {
	_, ok := r.tools[tool]
	return ok
}

// exchanges pairs calls with their results, which stand between a call and the next message of the assistant.
func exchanges(messages []model.Message) []exchange {
	var list []exchange
	for i, m := range messages {
		for _, c := range m.Calls {
			list = append(list, exchange{c, resultOf(c.ID, messages[i+1:])})
		}
	}
	return list
}

func resultOf(id string, after []model.Message) string {
	for _, m := range after {
		if m.Role == model.Assistant {
			break
		}
		if m.Role == model.ToolRole && m.CallID == id {
			return planTail.ReplaceAllString(m.Text, "")
		}
	}
	return ""
}

// argument returns one text argument of a call, or "".
func argument(c model.Call, name string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(c.Arguments), &fields) != nil {
		return ""
	}
	text, _ := fields[name].(string)
	return text
}

// planTail is how the agent reminds of a plan: behind the newest message, also when that is a result.
var planTail = expression(`(?s)\n\s*\[your plan so far:\n.*\]\s*$`)

// letGoOn is how the agent tells that a turn that a limit had ended goes on.
var letGoOn = expression(`^\[.* lets you go on, with as much again: go on with the work\.\]`)

// splitMarks parts a message from the marks that were put before and after it.
func splitMarks(text string) (words string, marks []string) {
	if at := planTail.FindStringIndex(text); at != nil {
		marks, text = append(marks, strings.TrimSpace(text[at[0]:])), text[:at[0]]
	}
	words = strings.TrimSpace(text)
	for strings.HasPrefix(words, "[") {
		end := closing(words)
		if end < 0 {
			break
		}
		marks = append(marks, words[:end+1])
		words = strings.TrimSpace(strings.TrimPrefix(words[end+1:], ":"))
	}
	for strings.HasSuffix(words, "]") {
		start := opening(words)
		if start < 0 || start > 0 && words[start-1] != '\n' {
			break
		}
		marks = append(marks, words[start:])
		words = strings.TrimSpace(words[:start])
	}
	return words, marks
}

// closing finds the bracket that closes the first one, or -1.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// opening finds the bracket that the last one closes, or -1.
func opening(text string) int {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case ']':
			depth++
		case '[':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
