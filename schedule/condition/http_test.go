package condition_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"nudge/schedule"
	"nudge/schedule/condition"
)

// page is a server whose answer the test sets.
type page struct {
	*httptest.Server
	status atomic.Int64
	body   atomic.Value
}

func newPage(t *testing.T) *page {
	p := &page{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Cookie"]) > 0 || r.Header.Get("Authorization") != "" {
			t.Errorf("it was sent %v", r.Header)
		}
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(int(p.status.Load()))
		_, _ = io.WriteString(w, p.body.Load().(string))
	}))
	t.Cleanup(p.Close)
	p.set(200, "")
	return p
}

func (p *page) set(status int64, body string) {
	p.status.Store(status)
	p.body.Store(body)
}

func TestHTTPWatchesWhatIsSelected(t *testing.T) {
	p := newPage(t)
	c := build(t, schedule.Spec{Kind: "http", URL: p.URL + "/builds?key=hush", Select: "builds[*].state"}, condition.Env{})
	p.set(200, `{"at": 1, "builds": [{"id": 1, "state": "green"}]}`)
	first := check(t, c, "")
	p.set(200, `{"builds":[{"state":"green","id":1}],"at":2}`)
	if again := check(t, c, first.State); again.True || again.State != first.State {
		t.Errorf("what was not selected changed: %+v", again)
	}
	p.set(200, `{"builds":[{"state":"red","id":1}],"at":3}`)
	found := check(t, c, first.State)
	if !found.True || !strings.Contains(found.Evidence, `["red"]`) || strings.Contains(found.Evidence, "hush") {
		t.Errorf("what was selected changed: %+v", found)
	}
	p.set(200, `{}`)
	if gone := check(t, c, found.State); !gone.True {
		t.Errorf("what was selected went away: %+v", gone)
	}
	for status, body := range map[int64]string{500: `{"builds":[]}`, 200: "<html>"} {
		p.set(status, body)
		if _, err := c.Check(t.Context(), found.State); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%d %q: error %v", status, body, err)
		}
	}
}

func TestHTTPWatchesAPage(t *testing.T) {
	p := newPage(t)
	c := build(t, schedule.Spec{Kind: "http", URL: p.URL}, condition.Env{})
	p.set(200, "one")
	first := check(t, c, "")
	p.set(200, "two")
	if found := check(t, c, first.State); !found.True || !strings.HasSuffix(found.Evidence, "two") {
		t.Errorf("a page that changed: %+v", found)
	}
	p.set(200, strings.Repeat("x", 4<<20+1))
	if _, err := c.Check(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("a page without end: %v", err)
	}
}

func TestHTTPStatus(t *testing.T) {
	p := newPage(t)
	c := build(t, schedule.Spec{Kind: "http", URL: p.URL, Status: 503}, condition.Env{})
	for status, want := range map[int64]bool{200: false, 503: true, 404: false} {
		p.set(status, "whatever")
		if found := check(t, c, ""); found.True != want || found.State != "" || !strings.Contains(found.Evidence, fmt.Sprint(status)) {
			t.Errorf("%d: %+v", status, found)
		}
	}
	both := build(t, schedule.Spec{Kind: "http", URL: p.URL, Status: 404, Select: "a"}, condition.Env{})
	p.set(404, `{"a":1}`)
	if found := check(t, both, ""); found.State == "" {
		t.Errorf("a selection from an answer of the wanted status: %+v", found)
	}
	p.set(200, `{"a":1}`)
	if _, err := both.Check(t.Context(), ""); err == nil {
		t.Error("a selection from an answer of another status")
	}
}

func TestHTTPRedirects(t *testing.T) {
	p := newPage(t)
	p.set(200, "there")
	same := build(t, schedule.Spec{Kind: "http", URL: p.URL + "?to=/elsewhere"}, condition.Env{})
	if found := check(t, same, ""); found.State == "" {
		t.Errorf("on the same host: %+v", found)
	}
	other := strings.Replace(p.URL, "127.0.0.1", "localhost", 1)
	away := build(t, schedule.Spec{Kind: "http", URL: p.URL + "?to=" + other}, condition.Env{})
	if _, err := away.Check(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "localhost") {
		t.Errorf("to another host: %v", err)
	}
	loop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }))
	defer loop.Close()
	if _, err := build(t, schedule.Spec{Kind: "http", URL: loop.URL}, condition.Env{}).Check(t.Context(), ""); err == nil {
		t.Error("a redirect to itself came to an end")
	}
}

// However much an answer holds, little of it is kept, and nothing is selected from one that would take too much memory.
func TestHTTPLongAnswers(t *testing.T) {
	p := newPage(t)
	for _, c := range []struct {
		bytes  int
		choose string
		fine   bool
	}{{4 << 20, "", true}, {4<<20 + 1, "", false}, {1 << 20, "a", true}, {1<<20 + 1, "a", false}} {
		text := `{"a":"` + strings.Repeat("x", c.bytes-len(`{"a":""}`)) + `"}`
		p.set(200, text)
		watched := build(t, schedule.Spec{Kind: "http", URL: p.URL, Select: c.choose}, condition.Env{})
		found, err := watched.Check(t.Context(), "before")
		if (err == nil) != c.fine || err != nil && !strings.Contains(err.Error(), "longer than") {
			t.Errorf("of %d bytes, selecting %q: %v", c.bytes, c.choose, err)
		}
		if !c.fine {
			continue
		}
		p.set(200, strings.Replace(text, `x"}`, `y"}`, 1)) // the last that counts
		again, err := watched.Check(t.Context(), found.State)
		if err != nil || !found.True || !again.True || len(found.Evidence) > schedule.MaxEvidence {
			t.Errorf("of %d bytes: %v, %v, with %d bytes of evidence, then %v", c.bytes, err, found.True, len(found.Evidence), again.True)
		}
	}
}
