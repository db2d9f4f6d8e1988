package demo

import (
	"slices"
	"strings"

	"nudge/agent/model"
)

// fate says how a call ended, as far as its result tells.
type fate int

const (
	told     fate = iota // the result says something, and it is not known whether that is good
	worked               // the result says that it was done
	failed               // an error in words
	denied               // somebody said no
	cutShort             // the person said something else first
	notRun               // not run for another reason
	unknown              // interrupted
	waiting              // somebody is yet to decide
	answered             // a question's answer
)

// outcome is a result, judged.
type outcome struct {
	call   model.Call
	fate   fate
	who    string // who denied, answered or is waited for
	text   string // what the result says: the reason, the answer, the id, or all of it
	raw    string // the result with the space around it
	edited string // "NAME changed the arguments to {...}", when somebody did
}

// went reports whether nothing speaks against the call having done its work.
func (o outcome) went() bool { return o.fate == told || o.fate == worked || o.fate == answered }

var (
	editedResult   = expression(`(?s)^\(([^\n]{1,80}? changed the arguments to \{.*?\})\)(?:\s+(.*))?$`)
	deniedResult   = expression(`(?s)^not run: ([^\n]{1,80}?) denied this call(?:: (.*)| and gave no reason.*|\.?)$`)
	waitingResult  = expression(`(?s)^waiting for ([^\n]{1,80}?), id (\S+?)[.,;:]?(?:\s.*)?$`)
	answeredResult = expression(`(?s)^([^\n]{1,80}?) answered: (.*)$`)
	failedResult   = expression(`(?i)^(?:error|there is no\b|there's no\b|there are no\b|no such|no file|cannot|can't|could not|couldn't|failed|unable|unknown|invalid|refused|bad |missing|not )|` +
		`\b(?:does not exist|doesn't exist|not found|no such|not allowed|not permitted|outside the|is a folder|is a directory|must|cannot be|cannot run|could not|is required|timed out|was killed|by a signal|failed|was not|is not|isn't|wasn't|leads out of|too long|too many|has only|permission denied)\b|exit (?:status|code) -?[1-9]`)
	workedResult = expression(`(?i)\b(?:deleted|removed|wrote|written|saved|created|made|said|stopped|ended|remembered|forgot|forgotten|noted|kept|done|ok|replaced|changed|waited|sent|delivered|queued)\b`)
)

// judge reads the result of a call.
func judge(e exchange) outcome {
	text := strings.TrimSpace(e.result)
	o := outcome{call: e.call, raw: e.result}
	if m := editedResult.FindStringSubmatch(text); m != nil {
		o.edited, text = m[1], m[2]
	}
	o.text = text
	switch {
	case strings.HasPrefix(text, "not run: the person said:"):
		o.fate = cutShort
	case deniedResult.MatchString(text):
		m := deniedResult.FindStringSubmatch(text)
		o.fate, o.who, o.text = denied, m[1], strings.TrimSpace(m[2])
	case strings.HasPrefix(text, "not run:"), strings.HasPrefix(text, "not run, not started"):
		o.fate = notRun
	case strings.HasPrefix(text, "interrupted, outcome unknown"), text == "":
		o.fate = unknown
		if text == "" && readsFile(e) {
			o.fate = told
		}
	case waitingResult.MatchString(text):
		m := waitingResult.FindStringSubmatch(text)
		o.fate, o.who, o.text = waiting, m[1], m[2]
	case e.call.Name == "ask_person" && answeredResult.MatchString(text):
		m := answeredResult.FindStringSubmatch(text)
		o.fate, o.who, o.text = answered, m[1], strings.TrimSpace(m[2])
	default:
		o.fate = judgeWords(e.call.Name, text)
	}
	return o
}

// readsFile reports whether nothing is a result too: a file, a folder or a command's output may be empty.
func readsFile(e exchange) bool {
	return e.call.Name == "read_file" || e.call.Name == "list_files" || e.call.Name == "run_command"
}

// quoting are the tools whose results are text from elsewhere, in which any word may stand.
var quoting = []string{"read_file", "list_files", "fetch_page", "recall", "run_script", "delegate", "load_skill", "ask_person"}

// quotingError is what their own errors look like.
var quotingError = expression(`(?i)^(?:there is no (?:file|folder|page|skill|agent|note|tool)\b|"[^"\n]*" (?:is a|leads out|has only)|` +
	`(?:read|open|list|fetch|get|load|run) (?:"[^"\n]*"|https?://\S+)(?::| failed)|error:|the attached file "|the workspace cannot be opened|bad arguments)`)

// judgeWords tells errors from successes. Only a short line is taken for an error, and of a command the first line,
// which is the tool's own.
func judgeWords(tool, text string) fate {
	switch {
	case slices.Contains(quoting, tool):
		if oneShortLine(text) && quotingError.MatchString(text) {
			return failed
		}
		return told
	case tool == "run_command" && failedResult.MatchString(firstLine(text)), oneShortLine(text) && failedResult.MatchString(text):
		return failed
	case workedResult.MatchString(firstLine(text)):
		return worked
	}
	return told
}

// oneShortLine reports whether a text may be a message and not content.
func oneShortLine(text string) bool { return len(text) < 300 && !strings.Contains(text, "\n") }

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}
