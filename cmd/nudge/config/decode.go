package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// parse reads the values of a document and where they stand. A panic of the parser's counts as a fault of the file.
func parse(file string, document []byte) (values map[string]any, places *place, err error) {
	defer func() {
		if recover() != nil {
			err = &Error{File: file, Say: "not valid TOML"}
		}
	}()
	// Some editors put a byte order mark in front, which TOML doesn't know.
	document = bytes.TrimPrefix(document, []byte("\xef\xbb\xbf"))
	if err := toml.Unmarshal(document, &values); err != nil {
		return nil, nil, syntaxError(file, err)
	}
	return values, outline(document), nil
}

// syntaxError tells what the parser said, less all that could be a piece of the file.
func syntaxError(file string, err error) error {
	fault := &Error{File: file, Say: "not valid TOML"}
	var decode *toml.DecodeError
	if !errors.As(err, &decode) {
		return fault
	}
	fault.Line, _ = decode.Position()
	reason := strings.TrimPrefix(decode.Error(), "toml: ")
	if strings.Contains(reason, " already ") || strings.Contains(reason, "should be a table") {
		fault.Say = "a key or table stands here that the file already has"
		return fault
	}
	for _, quoting := range []string{": ", " but got", " U+"} {
		reason, _, _ = strings.Cut(reason, quoting)
	}
	fault.Say += ": " + reason
	return fault
}

// filler carries the values of a document into a Config. What doesn't fit is noted and left at its default.
type filler struct {
	*faults
	folder string // of the file; relative paths start there
}

// root sets the whole config.
func (f *filler) root(c *Config, values map[string]any, at *place) {
	f.table(reflect.ValueOf(c).Elem(), values, at, "")
}

// fill sets one value. key is its dotted name without positions.
func (f *filler) fill(into reflect.Value, value any, at *place, key string, rule field) {
	switch target := into.Addr().Interface().(type) {
	case *Duration:
		f.duration(target, value, at, key, rule)
	case *Moment:
		f.moment(target, value, at, key)
	case *Parameter:
		if pattern, ok := value.(string); ok {
			target.Pattern = pattern
			return
		}
		f.table(into, value, at, key)
	case *string:
		f.text(target, value, at, key, rule)
	case *bool:
		if flag, ok := value.(bool); ok {
			*target = flag
			return
		}
		f.add(at, key, "wants true or false")
	case *int, *float64:
		f.number(into, value, at, key, rule)
	default:
		f.group(into, value, at, key, rule)
	}
}

// group sets what holds other values.
func (f *filler) group(into reflect.Value, value any, at *place, key string, rule field) {
	switch {
	case into.Kind() == reflect.Struct:
		f.table(into, value, at, key)
	case into.Kind() == reflect.Map:
		f.named(into, value, at, key, rule)
	case into.Type().Elem().Kind() == reflect.Struct:
		f.tables(into, value, at, key)
	default:
		f.texts(into, value, at, key)
	}
}

func (f *filler) table(into reflect.Value, value any, at *place, key string) {
	table, ok := value.(map[string]any)
	if !ok {
		f.add(at, key, "wants a table")
		return
	}
	known := fields(into.Type())
	write, fixed := onlyDefaults(key)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		inner := dotted(key, name)
		here := at.key(name)
		i := slices.IndexFunc(known, func(rule field) bool { return rule.name == name })
		if i < 0 {
			f.unknown(table[name], here, inner, siblings(key, known))
			continue
		}
		if write, yes := notYet(inner, ""); yes {
			f.refuse(here, inner, write)
			continue
		}
		value := into.Field(known[i].index)
		before := reflect.New(value.Type()).Elem()
		before.Set(value)
		f.fill(value, table[name], here, inner, known[i])
		if fixed && !same(before, value) {
			f.refuse(here, inner, write)
			value.Set(before)
		}
	}
}

// same compares two values of a key. An empty list is the same as none.
func same(a, b reflect.Value) bool {
	return a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 || reflect.DeepEqual(a.Interface(), b.Interface())
}

// refuse notes the use of something that this version doesn't have.
func (f *filler) refuse(at *place, key, write string) {
	f.say(at, key, write+" is not available in this version")
}

// unknown notes a key that doesn't exist. Of a key written with dots the whole is shown.
func (f *filler) unknown(value any, at *place, key string, siblings []string) {
	table, ok := value.(map[string]any)
	if ok && !at.header && len(table) > 0 && !strings.Contains(key, ".") {
		name := slices.Sorted(maps.Keys(table))[0]
		f.unknown(table[name], at.key(name), dotted(key, name), nil)
		return
	}
	say := fmt.Sprintf("unknown key %q", shown(key))
	if near, found := nearest(key, siblings); found {
		say += fmt.Sprintf("; did you mean %q?", near)
	}
	f.say(at, shown(key), say)
}

func (f *filler) tables(into reflect.Value, value any, at *place, key string) {
	list, ok := value.([]any)
	if !ok {
		f.add(at, key, "wants a list of tables, each begun with [[%s]]", key)
		return
	}
	for i, element := range list {
		into.Set(reflect.Append(into, fresh(into.Type().Elem())))
		f.table(into.Index(i), element, at.item(i), key)
	}
}

// fresh is a list's element before anything of it was read.
func fresh(element reflect.Type) reflect.Value {
	value := reflect.New(element)
	switch target := value.Interface().(type) {
	case *Command:
		*target = newCommand()
	case *Model:
		*target = newFallback()
	case *Gauge:
		*target = newGauge()
	case *MCP:
		*target = newMCP()
	case *Hook:
		*target = newHook()
	case *Heartbeat:
		*target = newHeartbeat()
	case *Condition:
		*target = newPart()
	}
	return value.Elem()
}

// named sets a table whose keys are free.
func (f *filler) named(into reflect.Value, value any, at *place, key string, rule field) {
	table, ok := value.(map[string]any)
	if !ok {
		f.add(at, key, "wants a table")
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		element := reflect.New(into.Type().Elem()).Elem()
		f.fill(element, table[name], at.key(name), dotted(key, shown(name)), rule)
		into.SetMapIndex(reflect.ValueOf(name), element)
	}
}

func (f *filler) texts(into reflect.Value, value any, at *place, key string) {
	list, ok := value.([]any)
	if !ok {
		f.add(at, key, `wants a list of texts, such as ["one", "two"]`)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(list), len(list)))
	for i, element := range list {
		text, ok := element.(string)
		if !ok {
			f.add(at.item(i), key, "wants nothing but texts in its list")
			continue
		}
		into.Index(i).SetString(text)
	}
}

func (f *filler) text(into *string, value any, at *place, key string, rule field) {
	text, ok := value.(string)
	switch {
	case !ok:
		f.add(at, key, "wants a text in quotes")
		return
	case rule.one != nil && !slices.Contains(rule.one, text):
		f.add(at, key, "must be %s", choice(available(key, rule.one))+meant(text, available(key, rule.one)))
		return
	case strings.HasSuffix(key, "_env") && text != "" && !isFile(text) && !variableName.MatchString(text):
		f.add(at, key, "wants the name of an environment variable, or a file that begins with / or ./; the secret itself doesn't belong here")
		return
	case strings.HasSuffix(key, "_env") && strings.HasPrefix(text, "./"):
		text = filepath.Join(f.folder, text)
	}
	if write, yes := notYet(key, text); yes && text != "" {
		f.refuse(at, key, write)
		return
	}
	*into = text
}

func (f *filler) number(into reflect.Value, value any, at *place, key string, rule field) {
	whole := into.Kind() == reflect.Int
	var number float64
	switch n := value.(type) {
	case int64:
		number = float64(n)
	case float64:
		number = n
		if whole {
			number = math.NaN()
		}
	default:
		number = math.NaN()
	}
	switch {
	case whole && math.IsNaN(number):
		f.add(at, key, "wants a whole number")
	case whole && number > math.MaxInt32:
		f.add(at, key, "is too large")
	case math.IsNaN(number) || math.IsInf(number, 0):
		f.add(at, key, "wants a number")
	case number < 0:
		f.add(at, key, "must not be negative")
	case rule.above && number == 0:
		f.add(at, key, "must be more than 0")
	case whole:
		into.SetInt(int64(number))
	default:
		into.SetFloat(number)
	}
}

func (f *filler) duration(into *Duration, value any, at *place, key string, rule field) {
	var read Duration
	text, ok := value.(string)
	switch err := read.UnmarshalText([]byte(text)); {
	case !ok || err != nil:
		f.add(at, key, "%v", errLength)
	case rule.above && read == 0:
		f.add(at, key, "must be more than 0")
	default:
		*into = read
	}
}

// moment takes a text, or one of TOML's own dates.
func (f *filler) moment(into *Moment, value any, at *place, key string) {
	read := Moment("")
	switch v := value.(type) {
	case string:
		read = Moment(v)
	case toml.LocalDate:
		read = Moment(v.String())
	case time.Time:
		read = Moment(v.Format(time.RFC3339))
	}
	if _, err := read.In(time.UTC); err != nil && value != "" {
		f.add(at, key, "%v", err)
		return
	}
	*into = read
}

func dotted(table, name string) string {
	if table == "" {
		return name
	}
	return table + "." + name
}

func siblings(table string, known []field) []string {
	var keys []string
	for _, rule := range known {
		keys = append(keys, dotted(table, rule.name))
	}
	return keys
}

// meant asks for the word that a text is a slip of; "" when it is near none.
func meant(text string, words []string) string {
	near, d := closest(strings.ToLower(text), words)
	if d > slips(near) || len(near) < 4 {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// choice writes words as `"a", "b" or "c"`.
func choice(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = fmt.Sprintf("%q", word)
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
