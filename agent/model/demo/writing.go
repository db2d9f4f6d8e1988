package demo

import "strings"

const (
	fileLead = `(?:(?:a|an|the|my|new|another|empty|text|file|note|called|named|to|in|into|me)\s+)*`
	sayMark  = `\s*,?\s*(?:(?:saying|that says|which says|says|with the (?:text|content|contents|words|line)|with content|with text|with|containing|that contains|content|text)\b\s*:?|:)\s*`
	oneFile  = `(?:` + fileLead + `(?P<name>` + fileName + `)|` + fileLead + `(?:file|called|named)\s+(?P<bare>` + bareName + `))`
)

var (
	writeSaying = phrase(`(?:write|create|make|save|start|put|store)\s+` + oneFile + sayMark + `(?P<content>.+)`)
	writeInto   = phrase(`(?:write|save|put|store|note|jot)(?: down)?(?: the (?:text|words|line|sentence))?\s*:?\s*(?P<content>.+?)\s+(?:to|in|into|as)\s+` + oneFile + `[.!]?`)
	writeOnly   = phrase(`(?P<verb>write|create|make|touch|start)\s+(?P<empty>an? empty\s+)?` + oneFile + `[.!]?`)
	appendTo    = phrase(`(?:append|add)(?: the| a)?(?: line| text| words)?(?: saying)?\s*:?\s*(?P<content>.+?)\s+(?:to|in|into|at the end of|to the end of)\s+` + oneFile + `[.!]?`)
	appendText  = phrase(`(?:append|add) (?:to|in|into) ` + oneFile + `(?:` + sayMark + `|\s+(?:the line|the text|a line)?\s*:?\s*)(?P<content>.+)`)
	copyFile    = phrase(`(?:copy|duplicate)\s+` + fileLead + `(?P<name>` + fileName + `)\s+(?:to|into|as)\s+` + fileLead + `(?P<to>` + fileName + `)`)
)

// fileOf is the file that a pattern with oneFile found; "it" means that one from then on.
func (r *reading) fileOf(m map[string]string) string {
	name := m["name"]
	if name == "" {
		name = m["bare"]
	}
	r.it = unquote(name)
	return r.it
}

func writeIntent(r *reading, c clause) act {
	for _, p := range []*pattern{writeSaying, writeInto} {
		if m := groups(p, c.raw); m != nil && m["content"] != "" {
			return writing(r.fileOf(m), unquote(m["content"]))
		}
	}
	m := groups(writeOnly, c.raw)
	switch {
	case m == nil:
		return nil
	case m["empty"] != "" || m["verb"] == "touch" || !r.offers("ask_person"):
		return writing(r.fileOf(m), "")
	}
	path := r.fileOf(m)
	return func(t *turn) {
		reply, ok := t.need("ask_person", map[string]any{"question": "What shall " + path + " say?"})
		switch {
		case !ok:
		case reply.fate != answered:
			t.say("%s", report(reply))
		default:
			writing(path, reply.text)(t)
		}
	}
}

func writing(path, content string) act {
	return func(t *turn) { t.perform("write_file", map[string]any{"path": path, "content": content}) }
}

func appendIntent(r *reading, c clause) act {
	for _, p := range []*pattern{appendText, appendTo} {
		if m := groups(p, c.raw); m != nil && m["content"] != "" {
			path, text := r.fileOf(m), unquote(m["content"])
			return func(t *turn) { appendTurn(t, path, text) }
		}
	}
	return nil
}

// absent is how a tool says that there is no such file.
var absent = expression(`(?i)\b(?:there is no|there's no|no such|no file|does not exist|doesn't exist|not found)\b`)

// partly is how a tool says that there is more of a file than it showed.
var partly = expression(`(?im)^\[.*\b(?:truncated|cut (?:off|here)|offset|left out|omitted|more lines)\b.*\]$|\A\s*binary, \d+ bytes\s*\z`)

// emptyFile is how a tool says that there is nothing in a file or folder.
var emptyFile = expression(`(?i)^\s*(?:the|this) (?:file|folder|directory|workspace) is empty\.?\s*$`)

// doubtful reports whether what was read may be less than the file, or a message instead of it. Such a text must not
// be written back.
func doubtful(text string) bool {
	return partly.MatchString(text) || oneShortLine(text) && !emptyFile.MatchString(text) && failedResult.MatchString(text)
}

// appendTurn reads a file and writes it back with a text behind it, unless not all of it could be read.
func appendTurn(t *turn, path, text string) {
	old, ok := t.need("read_file", map[string]any{"path": path})
	switch {
	case !ok:
	case old.fate == failed && absent.MatchString(old.text):
		t.bad--
		writing(path, text)(t)
	case !old.went():
		t.say("%s", report(old))
	case doubtful(old.text):
		t.fail("I did not add to %s, because the result of reading it does not look like the whole file, and I can only write whole files.", path)
	case old.text == "" || emptyFile.MatchString(old.text):
		writing(path, text)(t)
	default:
		writing(path, strings.TrimRight(old.raw, "\n")+"\n"+text)(t)
	}
}

func copyIntent(r *reading, c clause) act {
	m := groups(copyFile, c.plain)
	if m == nil {
		return nil
	}
	from, to := unquote(m["name"]), unquote(m["to"])
	r.it = to
	return func(t *turn) {
		old, ok := t.need("read_file", map[string]any{"path": from})
		switch {
		case !ok:
		case !old.went():
			t.say("%s", report(old))
		case doubtful(old.text):
			t.fail("I did not copy %s, because the result of reading it does not look like the whole file.", from)
		case emptyFile.MatchString(old.text):
			writing(to, "")(t)
		default:
			writing(to, old.raw)(t)
		}
	}
}

// otherFileIntent takes a bare name, as in "no, b.txt", for the file that the last call should have had.
func otherFileIntent(r *reading, c clause) act {
	if len(r.cutOff) == 0 {
		return nil
	}
	names := r.names(c.plain, true)
	last := r.cutOff[len(r.cutOff)-1].call
	if names == nil || argument(last, "path") == "" || (last.Name != "read_file" && last.Name != "delete_file") {
		return nil
	}
	return eachFile(names, last.Name)
}
