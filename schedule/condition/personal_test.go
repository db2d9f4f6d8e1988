package condition_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nudge/schedule"
	"nudge/schedule/condition"
)

// TestAPersonalConditionLooksOnce: however many people it is about, a program runs once for a look, and an address is asked once.
func TestAPersonalConditionLooksOnce(t *testing.T) {
	dir := t.TempDir()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"state":"red"}`)
	}))
	defer server.Close()
	spec := schedule.Spec{Kind: "all", Of: []schedule.Spec{
		{Kind: "command", Run: []string{"sh", "-c", "echo ran >> runs"}},
		{Kind: "http", URL: server.URL, Status: 200},
		{Kind: "any", Of: []schedule.Spec{{Kind: "idle", After: time.Hour}, {Kind: "file", Path: "not there", Test: "exists"}}},
	}}
	silent := map[string]time.Duration{"ann": 2 * time.Hour, "bob": time.Minute, "carl": time.Hour}
	for look := range 2 {
		c := build(t, spec, condition.Env{Dir: dir, Silent: func(_ context.Context, person string) (time.Time, error) {
			return time.Now().Add(-silent[person]), nil
		}})
		for person, since := range silent {
			found := check(t, c.(schedule.Personal).For(person), "")
			if found.True != (since >= time.Hour) || found.State != "" {
				t.Errorf("%s: %+v", person, found)
			}
		}
		runs, err := os.ReadFile(filepath.Join(dir, "runs"))
		if err != nil {
			t.Fatal(err)
		}
		if ran := strings.Count(string(runs), "ran"); ran != look+1 || asked != look+1 {
			t.Errorf("after look %d it ran %d times and asked %d times", look+1, ran, asked)
		}
	}
}

// TestAPersonalConditionThatWatches: what each person's state is says what has changed for them.
func TestAPersonalConditionThatWatches(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "list")
	write(t, path, "one")
	spec := schedule.Spec{Kind: "all", Of: []schedule.Spec{{Kind: "file", Path: "list", Test: "changed"}, {Kind: "idle", After: time.Hour}}}
	silent := map[string]bool{"ann": true}
	c := build(t, spec, condition.Env{Dir: dir, Silent: func(_ context.Context, person string) (time.Time, error) {
		if silent[person] {
			return time.Now().Add(-2 * time.Hour), nil
		}
		return time.Now(), nil
	}}).(schedule.Personal)
	states := map[string]string{}
	look := func(person string) bool {
		t.Helper()
		found := check(t, c.For(person), states[person])
		states[person] = found.State
		return found.True
	}
	if look("ann") || look("bob") {
		t.Error("the first look saw a change")
	}
	write(t, path, "two")
	if !look("ann") || look("bob") {
		t.Error("it changed, which is for who is silent")
	}
	silent["bob"] = true
	if look("ann") || !look("bob") {
		t.Error("who is silent later hears of it then, and nobody else")
	}
}
