package demo

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent/model"
)

var (
	someVerbs = []string{"read", "show me", "list", "list the files", "write", "delete", "remove", "append", "copy", "wait", "run", "plan:", "ask me", "remind me",
		"every", "tell me when", "stop", "remember", "recall", "what is", "which", "forget", "fetch", "no,", "hello", "help", "what time is it", "save", "create"}
	someThings = []string{"a.txt", "b.txt", "`c d.txt`", "\"notes.md\"", "it", "a file", "the disk", "disk", "wait", "10 seconds", "every 5 minutes", "at 9:30", "to stretch",
		"saying hello", "to", "in", "appears", "2+3*4", "that I like tea", "https://example.com/x", "whether I want tea or coffee", "[", "]", "```", "\n", "é…", "(1", "-", "/"}
	someJoins   = []string{" ", " ", " and ", ", ", " then ", ", and then ", "; ", "\n", ". "}
	someResults = []string{"", "done", "Deleted \"a.txt\".", "Wrote it.", "a.txt (12 bytes)\nb.txt (3 bytes)\n", "The folder is empty.", "one\ntwo\n",
		"not run: Ann denied this call: too risky", "not run: Ann denied this call and gave no reason", "not run: the person said: no", "not run: nobody knows",
		"interrupted, outcome unknown: it ended", "waiting for Bob, id k7", "Ann answered: a.txt", "Ann answered: every hour", "Ann answered: none", "there is no tool x",
		"(Ann changed the arguments to {\"path\":\"z.txt\"})\nDeleted \"z.txt\".", "there is no file \"a.txt\"", "error: exit status 3", "[", "\xff"}
)

func drawWords(t *rapid.T) string {
	if rapid.IntRange(0, 9).Draw(t, "wild") == 0 {
		return rapid.String().Draw(t, "text")
	}
	var b strings.Builder
	for i := range rapid.IntRange(1, 8).Draw(t, "pieces") {
		if i > 0 {
			b.WriteString(rapid.SampledFrom(someJoins).Draw(t, "join"))
		}
		if i%2 == 0 {
			b.WriteString(rapid.SampledFrom(someVerbs).Draw(t, "verb"))
		} else {
			b.WriteString(rapid.SampledFrom(someThings).Draw(t, "thing"))
		}
	}
	return b.String()
}

func drawTools(t *rapid.T) []model.Tool {
	if rapid.IntRange(0, 3).Draw(t, "all tools") > 0 {
		return allTools()
	}
	var names []string
	for name := range schemas {
		names = append(names, name)
	}
	slices.Sort(names)
	return tools(rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "tools")...)
}

// drawMessages draws any messages, also ones that no agent would send.
func drawMessages(t *rapid.T) []model.Message {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) model.Message {
		m := model.Message{Role: rapid.SampledFrom([]model.Role{model.User, model.Assistant, model.ToolRole, "odd"}).Draw(t, "role")}
		switch m.Role {
		case model.ToolRole:
			m.CallID = rapid.SampledFrom([]string{"d1", "d2", "x", ""}).Draw(t, "id")
			m.Text = rapid.SampledFrom(someResults).Draw(t, "result")
		case model.Assistant:
			for range rapid.IntRange(0, 2).Draw(t, "calls") {
				m.Calls = append(m.Calls, model.Call{
					ID:        rapid.SampledFrom([]string{"d1", "d2", "d99999999999999999999", ""}).Draw(t, "id"),
					Name:      rapid.SampledFrom([]string{"read_file", "list_files", "delete_file", "create_heartbeat", "notify", "x"}).Draw(t, "name"),
					Arguments: rapid.SampledFrom([]string{`{}`, `{"path":"a.txt"}`, `{"name":"stretch"}`, `[1]`, `{`, ``, `null`}).Draw(t, "arguments"),
				})
			}
		default:
			m.Text = drawWords(t)
		}
		return m
	}), 0, 8).Draw(t, "messages")
}

// checkAnswer checks what holds of every answer.
func checkAnswer(t *rapid.T, req model.Request, a model.Answer) {
	if (len(a.Calls) > 0) != (a.Finish == model.FinishCalls) || a.Text == "" && len(a.Calls) == 0 && a.Finish == model.FinishStop {
		t.Fatalf("answer is %+v", a)
	}
	used := map[string]bool{}
	for _, m := range req.Messages {
		for _, c := range m.Calls {
			used[c.ID] = true
		}
	}
	for _, c := range a.Calls {
		i := slices.IndexFunc(req.Tools, func(tool model.Tool) bool { return tool.Name == c.Name })
		if i < 0 {
			t.Fatalf("the tool %s isn't offered", c.Name)
		}
		if c.ID == "" || used[c.ID] {
			t.Fatalf("the id %q is empty or used", c.ID)
		}
		used[c.ID] = true
		var fields map[string]any
		if err := json.Unmarshal([]byte(c.Arguments), &fields); err != nil || fields == nil {
			t.Fatalf("arguments of %s are no object: %s", c.Name, c.Arguments)
		}
		if missing := schemaOf(req.Tools[i]).missing(fields); missing != "" {
			t.Fatalf("%s lacks %s: %s", c.Name, missing, c.Arguments)
		}
		if text, ok := fields["path"].(string); ok && text == "" {
			t.Fatalf("%s has an empty path", c.Name)
		}
	}
}

func TestAnyRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := model.Request{System: drawWords(t), Messages: drawMessages(t), Tools: drawTools(t), MaxOutput: rapid.SampledFrom([]int{0, 0, 1, 64}).Draw(t, "limit")}
		ask := func() (model.Answer, string) {
			var pieces strings.Builder
			a, err := New().Answer(t.Context(), req, func(piece string) { pieces.WriteString(piece) })
			if err != nil {
				t.Fatalf("answer: %v", err)
			}
			return a, pieces.String()
		}
		first, pieces := ask()
		second, _ := ask()
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("two answers to one request:\n%+v\n%+v", first, second)
		}
		if pieces != first.Text {
			t.Fatalf("said %q, but the text is %q", pieces, first.Text)
		}
		checkAnswer(t, req, first)
		req.MaxOutput = 0
		whole, _ := ask()
		if !strings.HasPrefix(whole.Text, first.Text) {
			t.Fatalf("%q is no beginning of %q", first.Text, whole.Text)
		}
		checkFacts(t, req, whole.Text)
	})
}

func TestEveryConversationEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const mostSteps = 12
		req := model.Request{Tools: drawTools(t), Messages: []model.Message{user(drawWords(t))}}
		made := map[string]bool{}
		for step := 0; ; step++ {
			if step == mostSteps {
				t.Fatalf("no end after %d steps: %+v", step, req.Messages)
			}
			a, err := New().Answer(t.Context(), req, nil)
			if err != nil {
				t.Fatalf("answer: %v", err)
			}
			checkAnswer(t, req, a)
			checkFacts(t, req, a.Text)
			if len(a.Calls) == 0 {
				return
			}
			req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Calls: a.Calls})
			for _, c := range a.Calls {
				key := c.Name + " " + canonical(c.Arguments)
				if made[key] {
					t.Fatalf("called again: %s", key)
				}
				made[key] = true
				req.Messages = append(req.Messages, result(c.ID, rapid.SampledFrom(someResults).Draw(t, "result")))
			}
		}
	})
}

var (
	factIn    = regexp.MustCompile(`[\p{L}\p{N}_-]+\.(?:txt|md|csv)\b|\d+`)
	sumAnswer = regexp.MustCompile(`(?m)^.* = \S+$`)
)

// checkFacts checks that every name of a file and every number in a text stands somewhere in the request. Examples
// to try and the results of sums need not.
func checkFacts(t *rapid.T, req model.Request, text string) {
	whole := fmt.Sprint(req.System, req.Messages)
	for _, tool := range req.Tools {
		whole += string(tool.Schema)
	}
	examples := slices.Clone(allExamples)
	slices.SortFunc(examples, func(a, b example) int { return len(b.line) - len(a.line) }) // some are part of others
	for i, e := range examples {
		text = strings.ReplaceAll(text, fmt.Sprintf("\n%d. ", i+1), "\n")
		text = strings.ReplaceAll(text, e.line, "")
	}
	for _, fact := range factIn.FindAllString(sumAnswer.ReplaceAllString(text, ""), -1) {
		if !strings.Contains(whole, fact) {
			t.Fatalf("%q is in the text, but not in the request:\n%s\n%s", fact, text, whole)
		}
	}
}
