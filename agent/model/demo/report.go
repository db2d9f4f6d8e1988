package demo

import (
	"encoding/json"
	"fmt"
	"strings"
)

const (
	longQuote  = 1500 // bytes of a result in an answer
	shortQuote = 160  // bytes of a result in one line
)

// wrote is how the tool for commands ends its own line before the output.
const wrote = "It wrote:"

// describe says what a call is for, so that it fits behind "I can't".
func describe(tool string, arguments map[string]any) string {
	of := func(name string) string { text, _ := arguments[name].(string); return text }
	switch tool {
	case "list_files":
		return strings.TrimSuffix("list the files in "+of("path"), " in ")
	case "read_file":
		return "read " + of("path")
	case "write_file":
		return "write " + of("path")
	case "delete_file":
		return "delete " + of("path")
	case "run_command":
		return "run the command " + of("name")
	case "ask_person":
		return "ask you"
	case "create_heartbeat":
		return "set up the heartbeat " + of("name")
	case "stop_heartbeat":
		return "stop the heartbeat " + of("name")
	case "remember":
		return "remember that"
	case "recall":
		return "look through my notes"
	case "forget_note":
		return "forget the note " + of("id")
	case "fetch_page":
		return "fetch " + of("url")
	case "run_script":
		return "run the script"
	case "delegate":
		return "hand that to " + of("agent")
	case "load_skill":
		return "load the skill " + of("name")
	case "notify":
		return "tell the person"
	}
	return "use " + tool
}

// what describes the call of an outcome.
func (o outcome) what() string {
	var arguments map[string]any
	if json.Unmarshal([]byte(o.call.Arguments), &arguments) != nil {
		return "use " + o.call.Name
	}
	return describe(o.call.Name, arguments)
}

// report puts an outcome into words that claim no more than the result does. A plan needs no report.
func report(o outcome) string {
	if o.call.Name == "plan" && o.went() {
		return ""
	}
	line := o.told(longQuote)
	if o.edited != "" {
		return o.edited + ".\n" + line
	}
	return line
}

// brief is a report in one line.
func brief(o outcome) string {
	if o.call.Name == "plan" {
		return ""
	}
	switch o.fate {
	case cutShort:
		return "I did not " + o.what() + "."
	case told, worked:
		return fmt.Sprintf("I did %s; the result: %s", o.what(), oneLine(o.text))
	}
	return o.told(shortQuote)
}

func (o outcome) told(size int) string {
	switch o.fate {
	case denied:
		if o.text == "" {
			return fmt.Sprintf("I did not %s: %s denied it and gave no reason.", o.what(), o.who)
		}
		return fmt.Sprintf("I did not %s: %s denied it: %s", o.what(), o.who, trim(o.text, size))
	case cutShort, notRun:
		return fmt.Sprintf("I did not %s. The result says: %s", o.what(), trim(o.text, size))
	case unknown:
		if o.text == "" {
			return fmt.Sprintf("I tried to %s, but there is no result, so I don't know what came of it.", o.what())
		}
		return fmt.Sprintf("I tried to %s, but I don't know whether it was done. The result says: %s", o.what(), trim(o.text, size))
	case waiting:
		return fmt.Sprintf("To %s, I am waiting for %s to decide (id %s). It is not done yet.", o.what(), o.who, o.text)
	case answered:
		return fmt.Sprintf("%s answered: %s", o.who, trim(o.text, size))
	case failed:
		return fmt.Sprintf("I could not %s. The result says: %s", o.what(), trim(o.text, size))
	}
	return o.success(size)
}

// success quotes a result that is no error.
func (o outcome) success(size int) string {
	switch o.call.Name {
	case "read_file":
		if o.text == "" {
			return argument(o.call, "path") + " came back empty."
		}
		return argument(o.call, "path") + " says:\n" + quote(o.text, size)
	case "list_files":
		if o.text == "" {
			return "The list of files came back empty."
		}
		return "The files:\n" + quote(o.text, size)
	case "run_command":
		if first, output, ok := strings.Cut(o.text, wrote+"\n"); ok && !strings.Contains(first, "\n") {
			return first + wrote + "\n" + quote(output, size)
		}
		return argument(o.call, "name") + " says: " + orNothing(quoteShort(o.text, size))
	}
	if o.fate == worked {
		return "Done: " + trim(o.text, size)
	}
	return fmt.Sprintf("I asked to %s; the result: %s", o.what(), quoteShort(o.text, size))
}

func orNothing(text string) string {
	if text == "" {
		return "nothing."
	}
	return text
}

// quoteShort leaves one line as it is and fences more.
func quoteShort(text string, size int) string {
	if !strings.Contains(text, "\n") {
		return trim(text, size)
	}
	return "\n" + quote(text, size)
}

// quote puts text between fences that it can't close itself.
func quote(text string, size int) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + trim(text, size) + "\n" + fence
}

// trim cuts a text between words where it can, and shows that it did.
func trim(text string, size int) string {
	text = strings.TrimSpace(text)
	if len(text) <= size {
		return text
	}
	short := cut(text, size)
	if i := strings.LastIndexAny(short, " \n"); i > 0 {
		short = short[:i]
	} else if i := strings.LastIndexFunc(short, func(c rune) bool { return c > 0x7f }); i > 0 {
		short = short[:i]
	}
	return strings.TrimSpace(short) + " … (trimmed)"
}

func oneLine(text string) string { return trim(strings.Join(strings.Fields(text), " "), shortQuote) }
