package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// An opening is an argument whose value a rule may leave open. Only the tool says which arguments these are ([Tool.Open]), and in
// which bounds their values must be; the bounds are the operator's. The core cannot read the bounds. It only compares their words:
// what was left open on a card must be open in the same words for each call that the rule is to let run.

// Opening is an argument of a call that a rule may leave open, and within what.
type Opening struct {
	Name string `json:"name"`
	// Within says in words which values it may then have, to be read behind "any NAME": such as "that matches v[0-9.]+".
	Within string `json:"within"`
}

// String says what is allowed in the place of the argument's value.
func (o Opening) String() string { return "any " + o.Name + " " + o.Within }

// OpenText says what is allowed where a rule leaves arguments open, in one line; "" where it leaves none open.
func OpenText(open []Opening) string {
	words := make([]string, len(open))
	for i, o := range open {
		words[i] = o.String()
	}
	return strings.Join(words, "; ")
}

// withOpen is [OpenText] behind a call.
func withOpen(open []Opening) string {
	if len(open) == 0 {
		return ""
	}
	return " with " + OpenText(open)
}

// The bounds of what a card offers to leave open: all of it is read in one form.
const (
	mostOpen      = 10   // arguments
	mostOpenBytes = 1200 // of what is said of them
)

// openName is how an argument is named that can be left open: so that it can be written behind a command.
var openName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// openings are the arguments of a call that a rule may leave open, in order of their names. frame is a digest of what the call is
// besides its arguments: its person, the tool as it is described to the model, its effect, and what else it depends on.
func (ag *Agent) openings(tool *Tool, in Invocation) (open []Opening, frame string) {
	if tool.Open == nil {
		return nil, ""
	}
	declared, depends := tool.Open(in)
	var arguments map[string]json.RawMessage
	if in.Decode(&arguments) != nil {
		return nil, ""
	}
	words := map[string]string{}
	for _, o := range declared {
		if ag.Secrets.Text(o.String()) != o.String() {
			continue // nobody can agree to bounds that are hidden from them
		}
		if _, given := arguments[o.Name]; given && o.Within != "" && openName.MatchString(o.Name) {
			words[o.Name] = o.Within
		}
	}
	for _, name := range slices.Sorted(maps.Keys(words)) {
		open = append(open, Opening{name, words[name]})
	}
	return open, digestOf(string(in.Person.ID), tool.Name, depends, tool.Description, string(tool.Schema), string(effectOf(tool, in)))
}

// readable are those of some openings that can be read on one card.
func readable(open []Opening) (fit []Opening) {
	size := 0
	for _, o := range open {
		if more := len(o.String()); len(fit) < mostOpen && size+more <= mostOpenBytes {
			fit, size = append(fit, o), size+more
		}
	}
	return fit
}

// chosen finds what is to be left open, of what a card offers, by names; fault says in a sentence why it cannot be.
func chosen(offered []Opening, names []string) (open []Opening, fault string) {
	for _, o := range offered {
		if slices.Contains(names, o.Name) {
			open = append(open, o)
		}
	}
	for _, name := range names {
		switch {
		case slices.ContainsFunc(open, func(o Opening) bool { return o.Name == name }):
		case len(offered) == 0:
			return nil, fmt.Sprintf("Nothing in this call can be left open, so %q cannot be either; exactly this call can be allowed always.", clip(name, maxNameText))
		default:
			return nil, fmt.Sprintf("%q cannot be left open; what can be is %s.", clip(name, maxNameText), nameList(offered))
		}
	}
	return open, ""
}

func nameList(open []Opening) string {
	names := make([]string, len(open))
	for i, o := range open {
		names[i] = o.Name
	}
	return strings.Join(names, ", ")
}

// covers reports whether all that a rule leaves open may be left open of a call, within the same words.
func covers(offered, open []Opening) bool {
	return !slices.ContainsFunc(open, func(o Opening) bool { return !slices.Contains(offered, o) })
}

// parted are a call's arguments in two objects, both in the one form: those that are bound, and those that are left open.
func parted(arguments json.RawMessage, open []Opening) (bound, left json.RawMessage, err error) {
	object, err := readObject(string(arguments))
	if err != nil {
		return nil, nil, fmt.Errorf("part what is bound from what is left open: %w", err)
	}
	apart := map[string]any{}
	for _, o := range open {
		if value, given := object[o.Name]; given {
			apart[o.Name] = value
			delete(object, o.Name)
		}
	}
	if bound, err = canonical(object); err == nil {
		left, err = canonical(apart)
	}
	return bound, left, err
}

// openRule begins the digests of rules that leave arguments open, so that these rules are found without going through all others.
const openRule = "open/"

// openDigest stands for all the calls of such a rule: those of one frame and with the same bound arguments. The names and the words
// of what is left open are part of it.
func openDigest(frame string, bound json.RawMessage, open []Opening) string {
	parts := []string{frame, string(bound)}
	for _, o := range open {
		parts = append(parts, o.Name, o.Within)
	}
	return openRule + digestOf(parts...)
}
