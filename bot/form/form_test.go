package form

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"nudge/agent"
)

var limits = Limits{Input: 100, Option: 10, Options: 5, Length: utf8.RuneCountInString}

const schema = `{"properties":{"path":{"type":"string"},"mode":{"enum":["a","b"]},"force":{"type":"boolean"},"count":{"type":"integer"},"text":{"type":"string"}},"required":["path"]}`

// TestSqueeze has more fields than there is room for: what has none is one of JSON, and nothing changes that was not touched.
func TestSqueeze(t *testing.T) {
	arguments := `{"path":"p","mode":"b","force":true,"count":7.0,"text":"` + strings.Repeat("x", 101) + `"}`
	all, ok := Fields(json.RawMessage(schema), json.RawMessage(arguments), limits)
	if !ok || len(all) != 5 {
		t.Fatalf("there are %d fields", len(all))
	}
	for most, want := range map[int]string{5: "path mode force count text", 4: "path mode force count text", 3: "path mode All others text", 1: "All others text"} {
		fields := Squeeze(all, most)
		var names []string
		for _, f := range fields {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("for %d there are %s, want %s", most, got, want)
		}
		untouched := func(n int) string {
			for _, o := range fields[n].Options() {
				if o.Stands {
					return o.Value
				}
			}
			return fields[n].Shown()
		}
		if got, faults := Arguments(fields, untouched); string(got) != arguments || len(faults) > 0 {
			t.Errorf("for %d they became %s %v", most, got, faults)
		}
	}
	fields := Squeeze(all, 1)
	if _, faults := Arguments(fields, func(int) string { return "[]" }); !strings.Contains(faults[0], "not a JSON object") {
		t.Errorf("a list in place of the others has the faults %v", faults)
	}
	objection := agent.Objection{Text: "count is too high", Fields: map[string]string{"count": "too high"}}
	if got := InPlace(fields, objection); got[0] != objection.Text {
		t.Errorf("what is about one of the others stands at %v", got)
	}
}
