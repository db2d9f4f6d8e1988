package demo

import (
	"fmt"
	"strconv"
	"strings"
)

// example is a line to try, and the tools without which it does not work.
type example struct {
	line  string
	tools []string
	needs string // a preset of run_command
}

var repeating = example{line: "remind me every minute to stretch", tools: []string{"create_heartbeat"}}

var allExamples = []example{
	{line: "list the files", tools: []string{"list_files"}},
	{line: "write notes.md saying buy milk", tools: []string{"write_file"}},
	{line: "read notes.md", tools: []string{"read_file"}},
	{line: "wait 10 seconds and then delete notes.md", tools: []string{"run_command", "delete_file"}, needs: "wait"},
	{line: "how full is the disk?", tools: []string{"run_command"}, needs: "disk"},
	{line: "plan: list the files; read notes.md; add call Bob to notes.md", tools: []string{"plan", "list_files", "read_file", "write_file"}},
	{line: "remember that I like green tea", tools: []string{"remember"}},
	repeating,
	{line: "tell me when report.csv appears", tools: []string{"create_heartbeat"}},
	{line: "remind me tomorrow at 8 to call Bob", tools: []string{"create_heartbeat"}},
	{line: "ask me whether I want tea or coffee", tools: []string{"ask_person"}},
	{line: "what do you know about drinks?", tools: []string{"recall"}},
	{line: "what is 2+3*4?"},
	{line: "what time is it?"},
	{line: "what did I say before?"},
}

// examples are lines that work with the tools that are offered, a handful and no more.
func (r *reading) examples() []string {
	const most = 8
	var lines []string
	for _, e := range allExamples {
		works := len(lines) < most && (e.needs == "" || r.preset(e.needs) != "")
		for _, tool := range e.tools {
			works = works && r.offers(tool)
		}
		if works {
			lines = append(lines, e.line)
		}
	}
	return lines
}

const whatIAm = "I'm the demo model that is built into Nudge: no language model, no network and no understanding. " +
	"I follow simple patterns in what you write, and every fact that I tell comes out of a tool's result."

// help introduces the demo model and says what to try.
func (r *reading) help() string {
	var text strings.Builder
	text.WriteString(whatIAm)
	text.WriteString("\nTry one of these, in your words or by its number:")
	for i, line := range r.examples() {
		fmt.Fprintf(&text, "\n%d. %s", i+1, line)
	}
	if r.offers("delete_file") {
		text.WriteString("\nWhile I work you can write on, as in \"no, stop that\", and I take it up.")
	}
	return text.String()
}

var (
	helpWords = phrase(`(?:help(?: me)?|what can (?:you|i) do(?: here| for me)?|what do you do|what (?:else )?(?:can|could|should|may|do) i (?:try|say|ask|write|type)(?: now| here| you)?|who are you|what are you|how does this work|(?:give|show) me (?:some )?examples?|examples?|what tools do you have|introduce yourself|are you (?:a |an )?(?:bot|robot|ai|human|llm|language model|real|chatgpt)|which model are you|what model are you|commands)`)
	greeting  = phrase(`(?:(?:hi|hello|hey|hallo|howdy|greetings|good (?:morning|day|afternoon|evening)|moin|yo)(?: there| nudge| again| everyone| bot)*|start|/start|test|ping)`)
)

func helpIntent(r *reading, c clause) act {
	switch {
	case helpWords.MatchString(c.plain):
		return saying("%s", r.help())
	case !greeting.MatchString(c.whole):
		return nil
	case r.spoken != "":
		return saying("%s", pick(c.plain, "Hello again. What shall I do?", "Hi! Tell me what to do, or say \"help\".", "Hello. I'm still here, and still only the demo model."))
	}
	return saying("Hello! %s", r.help())
}

// exampleIntent takes the number of an example that was just shown for its line.
func exampleIntent(r *reading, c clause) act {
	n, err := strconv.Atoi(c.plain)
	lines := r.examples()
	if err != nil || n < 1 || n > len(lines) || !strings.Contains(r.spoken, strconv.Itoa(n)+". "+lines[n-1]) {
		return nil
	}
	acts, _ := r.parse(lines[n-1])
	return inOrder(acts)
}

// puzzled is said to what no intent fits. It never pretends to have understood.
func puzzled(r *reading, part string, alone bool) act {
	if !alone {
		return func(t *turn) { t.fail("I did not understand \"%s\".", oneLine(part)) }
	}
	lines := r.examples()
	return saying("%s\nTry: %s", pick(part,
		"I'm only the demo model, and there was nothing in that which I could act on.",
		"That is beyond the few patterns that I know, as I'm only the demo model.",
		"I understood nothing there that I can act on: I'm only the demo model."),
		strings.Join(lines[:min(3, len(lines))], " · "))
}
