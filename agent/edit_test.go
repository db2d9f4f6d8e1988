package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEditDiff(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{`{"path":"a.md","why":"old"}`, `{"path":"b.md","why":"old"}`, "-  \"path\": \"a.md\",\n+  \"path\": \"b.md\","},
		{`{"x":"a"}`, `{"x":"a"}`, ""},
		{`{}`, `{"x":"--- was\n+++ is"}`, "-{}\n+{\n+  \"x\": \"--- was\\n+++ is\"\n+}"},
		{`{"x":1.50}`, `{"x":1.5}`, "-  \"x\": 1.50\n+  \"x\": 1.5"},
	} {
		if got := editDiff(json.RawMessage(c.before), json.RawMessage(c.after)); got != c.want {
			t.Errorf("%s → %s:\n%s\nwant\n%s", c.before, c.after, got, c.want)
		}
	}
	long := editDiff(json.RawMessage(`{}`), json.RawMessage(`{"x":"`+strings.Repeat("日", longestDiff)+`"}`))
	if len(long) > longestDiff+40 || !strings.HasSuffix(long, " bytes more …]") || strings.Contains(long, "\ufffd") {
		t.Errorf("a long change has %d bytes: …%s", len(long), long[len(long)-40:])
	}
}
