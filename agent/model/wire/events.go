package wire

import (
	"bufio"
	"bytes"
	"io"
)

// Event is one event of a stream.
type Event struct {
	Name string
	Data []byte // without white space around it, and not empty
	Cut  bool   // the stream ended without the blank line that should end an event: it may be whole all the same
}

// events cuts a stream of server-sent events. Lines may end in LF, CRLF or CR, and a line that ended in CR is
// used at once, without waiting to see whether LF comes. It keeps no more than one event; its reader bounds that.
type events struct {
	from   *bufio.Reader
	skipLF bool // the last line ended in CR
	begun  bool // a byte order mark cannot come any more
	line   []byte
}

// next returns the next event that has data, io.EOF after the last, or the error that the stream broke with.
func (e *events) next() (Event, error) {
	var ev Event
	has := false
	for {
		line, err := e.readLine()
		if err == io.EOF && len(line) > 0 {
			has = ev.add(line) || has
		}
		switch {
		case err == io.EOF && has:
			ev.Cut = true
			return ev, nil
		case err != nil:
			return Event{}, err
		case len(line) > 0:
			has = ev.add(line) || has
		case has:
			return ev, nil
		default:
			ev = Event{}
		}
	}
}

// add takes in one line and says whether it was data.
func (ev *Event) add(line []byte) bool {
	field, value, _ := bytes.Cut(line, []byte(":"))
	if line[0] == '{' {
		field, value = []byte("data"), line // some servers drop an error into the stream as it is
	}
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		if ev.Data == nil {
			ev.Data = make([]byte, 0, len(value)) // not nil, so that an empty first line is a line too
		} else {
			ev.Data = append(ev.Data, '\n')
		}
		ev.Data = append(ev.Data, value...)
		return true
	case "event":
		ev.Name = string(value)
	}
	return false
}

// readLine returns a line without its end, good until the next call. With io.EOF it returns what came after the last end.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		if _, err := e.from.Peek(1); err != nil {
			return e.trimmed(), err
		}
		seen, _ := e.from.Peek(e.from.Buffered())
		if e.skipLF {
			e.skipLF = false
			if seen[0] == '\n' {
				_, _ = e.from.Discard(1)
				continue
			}
		}
		end := bytes.IndexAny(seen, "\r\n")
		if end < 0 {
			e.line = append(e.line, seen...)
			_, _ = e.from.Discard(len(seen))
			continue
		}
		e.line = append(e.line, seen[:end]...)
		e.skipLF = seen[end] == '\r'
		_, _ = e.from.Discard(end + 1)
		return e.trimmed(), nil
	}
}

func (e *events) trimmed() []byte {
	if e.begun {
		return e.line
	}
	e.begun = true
	return bytes.TrimPrefix(e.line, []byte("\ufeff"))
}
