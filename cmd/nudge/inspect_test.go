package main

import (
	"strings"
	"testing"
	"time"
)

func TestASessionWithoutATurnIsListedWithoutOne(t *testing.T) {
	at := time.Now()
	for name, test := range map[string]struct {
		line sessionLine
		want string
	}{
		"none":   {sessionLine{Session: "s", Entries: 1, LastUsed: at}, "  1 entries  s"},
		"ended":  {sessionLine{Session: "s", Entries: 1, LastUsed: at, LastTurn: "t1"}, "  1 entries  s  last turn t1"},
		"opened": {sessionLine{Session: "s", Entries: 1, LastUsed: at, LastTurn: "t1", OpenTurn: "t2"}, "  1 entries  s  turn t2 is not settled"},
	} {
		var out strings.Builder
		if err := writeSessions(&out, []sessionLine{test.line}, "text"); err != nil || !strings.HasSuffix(out.String(), test.want+"\n") {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
}
