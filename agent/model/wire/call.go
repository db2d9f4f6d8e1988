package wire

import (
	"encoding/json"
	"strconv"
	"strings"

	"nudge/agent/model"
)

// NameCalls gives an id to each call that has none, or one that an earlier call has.
func NameCalls(calls []model.Call) {
	taken := map[string]bool{}
	for _, c := range calls {
		taken[c.ID] = true
	}
	kept := map[string]bool{"": true}
	n := 0
	for i := range calls {
		if !kept[calls[i].ID] {
			kept[calls[i].ID] = true
			continue
		}
		for n++; taken["call_"+strconv.Itoa(n)]; n++ {
		}
		calls[i].ID = "call_" + strconv.Itoa(n)
	}
}

// IsObject says whether text is one JSON object and nothing else.
func IsObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && json.Valid([]byte(text))
}
