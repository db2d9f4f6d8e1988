package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is what is wrong with a config file, in one line that holds no value of the file.
type Error struct {
	File string
	Line int    // from 1; 0 when the whole file is meant
	Key  string // dotted, without positions in lists; "" when no key is meant
	Say  string // the whole sentence
	More int    // how many further faults the file has
}

// Error says file, line, what is wrong, and how many more faults there are.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Say)
	if e.Line == 0 {
		text = fmt.Sprintf("%s: %s", e.File, e.Say)
	}
	switch {
	case e.More == 1:
		text += " (and 1 more fault)"
	case e.More > 1:
		text += fmt.Sprintf(" (and %d more faults)", e.More)
	}
	return text
}

// faults collects what is wrong with one file.
type faults struct {
	file string
	list []*Error
}

// add notes that the key at a place is wrong. The sentence is the key followed by what is to be said of it.
func (f *faults) add(at *place, key, format string, args ...any) {
	f.say(at, key, key+" "+fmt.Sprintf(format, args...))
}

// say notes a fault in a sentence of its own. Of a value that doesn't fit at all, no more is said than that.
func (f *faults) say(at *place, key, sentence string) {
	for _, earlier := range f.list {
		if earlier.Line == at.line && (key == earlier.Key || strings.HasPrefix(key, earlier.Key+".")) {
			return
		}
	}
	f.list = append(f.list, &Error{File: f.file, Line: at.line, Key: key, Say: sentence})
}

// in reports whether a fault is that of a key in a table.
func (f *faults) in(table string) bool {
	return slices.ContainsFunc(f.list, func(e *Error) bool { return strings.HasPrefix(e.Key, table+".") })
}

// err is the first fault of the file, or nil.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	first := f.list[0]
	first.More = len(f.list) - 1
	return first
}
