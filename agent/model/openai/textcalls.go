package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

// The tags that calls written as text begin with.
const (
	toolCallTag  = "<tool_call>"
	toolCallEnd  = "</tool_call>"
	functionTag  = "<function="
	functionEnd  = "</function>"
	parameterTag = "<parameter="
	parameterEnd = "</parameter>"
)

// textCalls is what a text is found to be made of.
type textCalls struct {
	calls []model.Call
	text  string // what is left without the calls, without white space around it
	cut   bool   // it ended in the middle of a call, which is neither in calls nor in text
}

// written is how far one call written as text could be read.
type written int

const (
	notCall written = iota
	cutCall
	wholeCall
)

// findCalls looks for calls to the offered tools outside code; with offered nil, for calls of any name.
func findCalls(s string, offered []model.Tool) textCalls {
	var (
		found textCalls
		lex   lexer
		text  strings.Builder
	)
	for i := 0; i < len(s); {
		kind, n := lex.next(s[i:], true)
		if kind != callMarkup {
			text.WriteString(s[i : i+n])
			i += n
			continue
		}
		r := &callReader{rest: s[i:], offered: offered}
		switch r.read() {
		case wholeCall:
			found.calls = append(found.calls, r.call)
			n = len(s) - i - len(r.rest)
		case cutCall:
			found.cut = true
			n = len(s) - i
		case notCall:
			text.WriteString(s[i : i+n])
		}
		i += n
	}
	found.text = strings.TrimSpace(text.String())
	wire.NameCalls(found.calls)
	return found
}

// callReader reads one call from the start of rest, and leaves in rest what follows it.
type callReader struct {
	rest    string
	offered []model.Tool
	call    model.Call
}

func (r *callReader) read() written {
	if hasPrefixFold(r.rest, functionTag) {
		return r.readFunction()
	}
	r.skip(toolCallTag)
	r.blank()
	var got written
	switch {
	case hasPrefixFold(r.rest, functionTag):
		got = r.readFunction()
	case strings.HasPrefix(r.rest, "{"):
		got = r.readHermes()
	case isCut(r.rest, functionTag):
		return cutCall
	default:
		got = r.readGLM()
	}
	if got != wholeCall {
		return got
	}
	return r.end(toolCallEnd)
}

// readHermes reads {"name":…,"arguments":…}.
func (r *callReader) readHermes() written {
	raw, got := r.object()
	if got != wholeCall {
		return got
	}
	var body struct {
		Name       wire.Text `json:"name"`
		Arguments  arguments `json:"arguments"`
		Parameters arguments `json:"parameters"`
	}
	if json.Unmarshal(raw, &body) != nil || !r.offers(string(body.Name)) {
		return notCall
	}
	r.call = model.Call{Name: string(body.Name), Arguments: string(body.Arguments)}
	if r.call.Arguments == "" {
		r.call.Arguments = string(body.Parameters)
	}
	if r.call.Arguments == "" {
		r.call.Arguments = "{}"
	}
	return wholeCall
}

// readFunction reads <function=NAME>, then a JSON object or parameters, then </function>.
func (r *callReader) readFunction() written {
	r.skip(functionTag)
	name, got := r.until(">")
	switch {
	case got == cutCall && r.mayOffer(r.rest):
		return cutCall
	case got == cutCall || !r.offers(name):
		return notCall
	}
	r.blank()
	if strings.HasPrefix(r.rest, "{") {
		raw, got := r.object()
		if got != wholeCall {
			return got
		}
		r.call = model.Call{Name: name, Arguments: string(raw)}
		return r.end(functionEnd)
	}
	args := newArgs(r.schemaOf(name))
	for hasPrefixFold(r.rest, parameterTag) {
		r.skip(parameterTag)
		key, got := r.until(">")
		if got == cutCall {
			return cutCall
		}
		value, got := r.until(parameterEnd)
		if got == cutCall {
			return cutCall
		}
		args.add(key, strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n"))
		r.blank()
	}
	if isCut(r.rest, parameterTag) {
		return cutCall
	}
	r.call = model.Call{Name: name, Arguments: args.String()}
	return r.end(functionEnd)
}

// readGLM reads NAME, then pairs of <arg_key> and <arg_value>.
func (r *callReader) readGLM() written {
	name := r.rest
	if end := strings.IndexAny(name, "<\n"); end >= 0 {
		name = name[:end]
	} else if r.mayOffer(name) {
		return cutCall
	}
	r.skip(name)
	if name = strings.TrimSpace(name); !r.offers(name) {
		return notCall
	}
	args := newArgs(r.schemaOf(name))
	for r.blank(); hasPrefixFold(r.rest, "<arg_key>"); r.blank() {
		r.skip("<arg_key>")
		key, got := r.until("</arg_key>")
		if got == cutCall {
			return cutCall
		}
		r.blank()
		switch {
		case isCut(r.rest, "<arg_value>"):
			return cutCall
		case !hasPrefixFold(r.rest, "<arg_value>"):
			return notCall
		}
		r.skip("<arg_value>")
		value, got := r.until("</arg_value>")
		if got == cutCall {
			return cutCall
		}
		args.add(strings.TrimSpace(key), value)
	}
	if isCut(r.rest, "<arg_key>") {
		return cutCall
	}
	r.call = model.Call{Name: name, Arguments: args.String()}
	return wholeCall
}

func (r *callReader) skip(tag string) { r.rest = r.rest[len(tag):] }

func (r *callReader) blank() { r.rest = strings.TrimLeft(r.rest, " \t\r\n") }

// until returns what stands before a mark and skips both.
func (r *callReader) until(mark string) (string, written) {
	before, after, ok := strings.Cut(r.rest, mark)
	if !ok {
		return "", cutCall
	}
	r.rest = after
	return before, wholeCall
}

// object returns a JSON object, compact.
func (r *callReader) object() ([]byte, written) {
	dec := json.NewDecoder(strings.NewReader(r.rest))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, cutCall
		}
		return nil, notCall
	}
	r.rest = r.rest[dec.InputOffset():]
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return nil, notCall
	}
	return out.Bytes(), wholeCall
}

// end reads the closing tag of a call that is complete. Servers that stop at this tag leave it out, so at the end of
// the text it may be missing.
func (r *callReader) end(tag string) written {
	r.blank()
	switch {
	case hasPrefixFold(r.rest, tag):
		r.skip(tag)
	case isCut(r.rest, tag):
		r.rest = ""
	default:
		return notCall
	}
	return wholeCall
}

// isCut says whether the text ended before all of tag had come.
func isCut(s, tag string) bool { return len(s) < len(tag) && hasPrefixFold(tag, s) }

// toolName is what a call may name when any name will do.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

func (r *callReader) offers(name string) bool {
	if r.offered == nil {
		return toolName.MatchString(name)
	}
	return slices.ContainsFunc(r.offered, func(t model.Tool) bool { return t.Name == name })
}

// mayOffer says whether a name that was cut could have become one that is offered.
func (r *callReader) mayOffer(start string) bool {
	if r.offered == nil {
		return start == "" || toolName.MatchString(start)
	}
	return slices.ContainsFunc(r.offered, func(t model.Tool) bool { return strings.HasPrefix(t.Name, start) })
}

func (r *callReader) schemaOf(name string) json.RawMessage {
	for _, t := range r.offered {
		if t.Name == name {
			return t.Schema
		}
	}
	return nil
}

// args makes a JSON object of values that were written without quotes, in the order in which they were written.
type args struct {
	out        bytes.Buffer
	properties map[string]struct {
		Type json.RawMessage `json:"type"`
	}
}

func newArgs(schema json.RawMessage) *args {
	a := &args{}
	var s struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) == nil {
		_ = json.Unmarshal(s.Properties, &a.properties)
	}
	return a
}

// add writes a value as a string if the schema wants or takes one, or if it is not JSON.
func (a *args) add(key, value string) {
	if a.out.Len() > 0 {
		a.out.WriteByte(',')
	}
	a.out.Write(quote(key))
	a.out.WriteByte(':')
	var compact bytes.Buffer
	wantsString := bytes.Contains(a.properties[key].Type, []byte(`"string"`))
	if wantsString || json.Compact(&compact, []byte(value)) != nil {
		a.out.Write(quote(value))
		return
	}
	a.out.Write(compact.Bytes())
}

// String returns the object.
func (a *args) String() string { return "{" + a.out.String() + "}" }

func quote(s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
