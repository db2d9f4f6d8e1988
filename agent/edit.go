package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// longestDiff is how many bytes of a change are kept.
const longestDiff = 4 << 10

// editDiff shows how arguments were changed: of both as JSON a line for each value, those lines that differ, the old ones
// behind a minus and the new ones behind a plus.
func editDiff(before, after json.RawMessage) string {
	was, is := lineByLine(before), lineByLine(after)
	unified, err := udiff.ToUnified("was", "is", was, udiff.Lines(was, is), 0)
	if err != nil {
		return "" // the arguments themselves are journaled
	}
	var changed strings.Builder
	for line := range strings.Lines(unified) {
		if head := strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "@@"); !head && line[0] != '\\' {
			changed.WriteString(line)
		}
	}
	diff := strings.TrimSuffix(changed.String(), "\n")
	if len(diff) > longestDiff {
		kept := diff[:runeStart(diff, longestDiff)]
		diff = fmt.Sprintf("%s\n[… %d bytes more …]", kept, len(diff)-len(kept))
	}
	return diff
}

// lineByLine is an object a line for each value, without what JSON needs around them, so that no line of it begins as the
// head of a diff does.
func lineByLine(arguments json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, arguments, "", "  ") != nil {
		return string(arguments)
	}
	return b.String() + "\n"
}
