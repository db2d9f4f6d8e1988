package compact_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"nudge/agent/compact"
	"nudge/agent/model"
)

var estimate = compact.NewCounter(compact.Estimate)

// history is a conversation and its marks.
type history struct {
	messages []model.Message
	marks    []compact.Mark
}

func (h *history) add(m model.Message, mark compact.Mark) {
	h.messages = append(h.messages, m)
	h.marks = append(h.marks, mark)
}

func (h *history) user(text string) {
	h.add(model.Message{Role: model.User, Text: text}, compact.Mark{Begins: true})
}

func (h *history) says(text string) {
	h.add(model.Message{Role: model.Assistant, Text: text}, compact.Mark{})
}

// step adds an assistant's message with calls of one tool, and their results.
func (h *history) step(tool string, repeatable bool, results ...string) {
	n := len(h.messages)
	var calls []model.Call
	for i := range results {
		calls = append(calls, model.Call{ID: fmt.Sprintf("c%d.%d", n, i), Name: tool, Arguments: fmt.Sprintf(`{"path":"file-%d.%d.txt"}`, n, i)})
	}
	h.add(model.Message{Role: model.Assistant, Calls: calls}, compact.Mark{})
	for i, text := range results {
		h.add(model.Message{Role: model.ToolRole, CallID: calls[i].ID, Text: text}, compact.Mark{Repeatable: repeatable})
	}
}

func (h *history) input(window int) compact.Input {
	return compact.Input{Count: estimate, Messages: h.messages, Marks: h.marks, Window: window}
}

// take makes the history what a compaction left of it.
func (h *history) take(out compact.Output) {
	h.messages, h.marks = out.Messages, out.Marks
}

// text is words of about so many tokens by the estimate.
func text(about string, tokens int) string {
	return strings.Repeat(about+" ", tokens*4/(len(about)+1)+1)
}

// fault says what a provider would refuse in a conversation: every call has one result, right after it and in
// order (Chat Completions); results that follow each other, with the user's words after them, are one turn that
// answers all calls of the turn before, the user speaks first, and no turn is empty (Anthropic).
func fault(messages []model.Message) string {
	var due []string
	for i, m := range messages {
		result := m.Role == model.ToolRole || m.CallID != ""
		switch {
		case result && (len(due) == 0 || due[0] != m.CallID):
			return fmt.Sprintf("message %d answers %q where %q was due", i, m.CallID, due)
		case result:
			due = due[1:]
			continue
		case len(due) > 0:
			return fmt.Sprintf("message %d stands where results of %q were due", i, due)
		case i == 0 && m.Role != model.User:
			return "the user does not speak first"
		case m.Text == "" && len(m.Calls) == 0:
			return fmt.Sprintf("message %d is empty", i)
		}
		for _, c := range m.Calls {
			due = append(due, c.ID)
		}
	}
	if len(due) > 0 {
		return fmt.Sprintf("no results of %q", due)
	}
	return ""
}

func has(messages []model.Message, text string) bool {
	for _, m := range messages {
		if m.Text == text {
			return true
		}
	}
	return false
}

// aHistory is a conversation of any shape, in which ids come again in later steps as some providers' do.
func aHistory(t *rapid.T) history {
	var h history
	sizes := rapid.SampledFrom([]int{0, 1, 20, 300, 2500})
	words := func(label string) string {
		return rapid.SampledFrom([]string{"plain words", "строка слов", "漢字", "👩‍💻", "x", "\xff\x00", "{}[]!="}).Draw(t, label)
	}
	h.add(model.Message{Role: model.User, Text: "first request: " + text(words("first"), rapid.SampledFrom([]int{1, 50}).Draw(t, "size"))}, compact.Mark{Begins: true, Pinned: true})
	for range rapid.IntRange(0, 30).Draw(t, "units") {
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind == 0:
			mark := compact.Mark{Begins: rapid.Bool().Draw(t, "begins"), Pinned: rapid.IntRange(0, 5).Draw(t, "pinned") == 0}
			h.add(model.Message{Role: model.User, Text: "user: " + text(words("said"), sizes.Draw(t, "size"))}, mark)
		case kind == 1:
			h.says("answer: " + text(words("answer"), sizes.Draw(t, "size")))
		default:
			aStep(t, &h, words, sizes)
		}
	}
	return h
}

func aStep(t *rapid.T, h *history, words func(string) string, sizes *rapid.Generator[int]) {
	m := model.Message{Role: model.Assistant, Text: rapid.SampledFrom([]string{"", "let me look"}).Draw(t, "text")}
	if rapid.IntRange(0, 4).Draw(t, "thinks") == 0 {
		m.Reasoning = text("hm", sizes.Draw(t, "size"))
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
		arguments := rapid.SampledFrom([]string{`{}`, `{"path":"a/b.txt"}`, "not json", "\xff" + strings.Repeat("\xfe{", 20), `{"n":12345678901234567890,"text":"` + text("w", 2500) + `"}`}).Draw(t, "arguments")
		m.Calls = append(m.Calls, model.Call{ID: fmt.Sprintf("call%d", i), Name: rapid.SampledFrom([]string{"read_file", "write_file", "send"}).Draw(t, "tool"), Arguments: arguments})
	}
	h.add(m, compact.Mark{})
	for _, c := range m.Calls {
		mark := compact.Mark{Repeatable: c.Name == "read_file", Pinned: rapid.IntRange(0, 20).Draw(t, "pinned") == 0}
		h.add(model.Message{Role: model.ToolRole, CallID: c.ID, Text: text(words("result"), sizes.Draw(t, "size"))}, mark)
	}
}

func anInput(t *rapid.T) compact.Input {
	h := aHistory(t)
	in := h.input(rapid.SampledFrom([]int{0, 500, 2000, 8192, 20000}).Draw(t, "window"))
	in.Reserve = rapid.SampledFrom([]int{-1, 0, 400, 1 << 20}).Draw(t, "reserve")
	in.Keep = rapid.IntRange(-1, 5).Draw(t, "keep")
	in.Marks = in.Marks[:rapid.SampledFrom([]int{len(in.Marks), len(in.Marks), 1}).Draw(t, "marks")]
	counted := compact.Tokens(estimate, "", nil, in.Messages)
	in.Used = rapid.SampledFrom([]int{0, counted, counted + 300, counted / 2, counted * 2}).Draw(t, "used")
	return in
}
