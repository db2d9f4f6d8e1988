package config

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// field is one key of a table: the tags are read once, here.
type field struct {
	name  string
	index int
	one   []string // the words it may hold; nil means any
	above bool     // must be more than zero
}

// fields lists the keys of a table, in the order of the struct.
func fields(table reflect.Type) []field {
	var list []field
	for i := range table.NumField() {
		tag := table.Field(i).Tag
		name := tag.Get("toml")
		if name == "" || name == "-" {
			continue
		}
		f := field{name: name, index: i, above: tag.Get("above") == "0"}
		if words := tag.Get("one"); words != "" {
			f.one = strings.Split(words, "|")
		}
		list = append(list, f)
	}
	return list
}

// knownKeys lists every key there is, tables included, dotted and without positions. Tables that hold tables of their
// own kind are followed once.
func knownKeys() []string {
	var keys []string
	var list func(table reflect.Type, prefix string, above []reflect.Type)
	list = func(table reflect.Type, prefix string, above []reflect.Type) {
		above = append(slices.Clone(above), table)
		for _, f := range fields(table) {
			keys = append(keys, prefix+f.name)
			inner := table.Field(f.index).Type
			for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
				inner = inner.Elem()
			}
			isTable := inner.Kind() == reflect.Struct && inner != reflect.TypeFor[Parameter]()
			if isTable && !slices.Contains(above, inner) {
				list(inner, prefix+f.name+".", above)
			}
		}
	}
	list(reflect.TypeFor[Config](), "", nil)
	return keys
}

// nearest finds the known key that was most likely meant: one that differs by a slip of the keys, or one beside it
// that is longer, or one of the same name in another table. siblings are the keys that could stand in the same table.
func nearest(wrong string, siblings []string) (key string, found bool) {
	wrong = strings.ToLower(wrong)
	all := slices.Concat(siblings, knownKeys())
	if key, d := closest(wrong, all); d <= slips(key) {
		return key, true
	}
	last := lastPart(wrong)
	for _, key := range siblings {
		if len(last) >= 4 && strings.Contains(lastPart(key), last) {
			return key, true
		}
	}
	for _, key := range all {
		if lastPart(key) == last {
			return key, true
		}
	}
	return "", false
}

// Nearest finds the word that was most likely meant: one that differs by a slip of the keys, or one that begins with what is there.
func Nearest(wrong string, words []string) (word string, found bool) {
	wrong = strings.ToLower(wrong)
	if word, d := closest(wrong, words); d <= slips(word) {
		return word, true
	}
	at := slices.IndexFunc(words, func(word string) bool { return len(wrong) >= 2 && strings.HasPrefix(word, wrong) })
	if at < 0 {
		return "", false
	}
	return words[at], true
}

// closest is the first of the keys with the least distance; "" when there are none.
func closest(wrong string, keys []string) (key string, least int) {
	least = math.MaxInt
	for _, known := range keys {
		if d := distance(wrong, known); d < least {
			key, least = known, d
		}
	}
	return key, least
}

// slips is how many slips still let a key be recognised: fewer in short ones, where anything is near anything.
func slips(key string) int {
	return max(1, min(3, len(lastPart(key))/2-1))
}

func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// distance counts the letters to insert, drop, change or swap with their neighbour to turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(last[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// plainKey matches what people write as keys. Anything else may be a secret that slipped out of its quotes.
var plainKey = regexp.MustCompile(`^[A-Za-z_-]{1,32}[0-9]{0,2}$`)

// shown is a key of the file as a message may show it.
func shown(key string) string {
	parts := strings.Split(key, ".")
	for i, part := range parts {
		if !plainKey.MatchString(part) {
			parts[i] = "?"
		}
	}
	return strings.Join(parts, ".")
}
