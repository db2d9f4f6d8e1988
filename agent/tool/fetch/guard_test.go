package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"nudge/schedule"
	"nudge/schedule/condition"
	"nudge/schedule/condition/conditiontest"
)

func (w *world) guard(hosts ...string) *Guard {
	w.t.Helper()
	guard, err := NewGuard(Config{Hosts: hosts, Lookup: w.lookup, Dial: w.dial})
	if err != nil {
		w.t.Fatal(err)
	}
	return guard
}

// read asks a guard for a page as a program's own client does, redirects included.
func (w *world) read(guard *Guard, address string) (string, error) {
	w.t.Helper()
	client := http.Client{Transport: guard}
	answer, err := client.Get(address)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// TestGuard lets requests to public servers through, each with what a page's has, and no other.
func TestGuard(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if len(r.Header["Cookie"])+len(r.Header["Authorization"]) > 0 {
			t.Errorf("it was sent %v", r.Header)
		}
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(rw, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(rw, "at "+r.Host)
	})
	w.names["public.test"] = []string{"93.184.215.14"}
	w.names["private.test"] = []string{"10.0.0.1"}
	w.names["both.test"] = []string{`["93.184.215.14","127.0.0.1"]`}
	w.names["turns.test"] = []string{"93.184.215.14", "169.254.169.254"}
	if got, err := w.read(w.guard(), "http://PUBLIC.test./x#part"); err != nil || got != "at public.test" {
		t.Errorf("a public page: %q, error %v", got, err)
	}
	w.dials = nil
	for address, want := range map[string]string{
		"http://127.0.0.1/":                              "public internet",
		"http://[::1]/":                                  "public internet",
		"http://2130706433/":                             "public internet",
		"http://localhost:8484/":                         "public internet",
		"http://private.test/":                           "public internet",
		"http://both.test/":                              "public internet",
		"http://public.test:22/":                         "port 22",
		"http://nowhere.test/":                           "cannot be found",
		"ftp://public.test/":                             "http://",
		"http://ann:hush@public.test/":                   "user or a password",
		"http://public.test/?to=http://private.test/":    "public internet",
		"http://public.test/?to=http://169.254.169.254/": "public internet",
	} {
		if got, err := w.read(w.guard(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, error %v, want %q", address, got, err, want)
		}
	}
	for _, to := range w.dials {
		if to != "93.184.215.14:80" {
			t.Errorf("%s was dialled", to)
		}
	}
	turns := w.guard()
	if _, err := w.read(turns, "http://turns.test/"); err != nil {
		t.Errorf("while its name leads to a public server: %v", err)
	}
	if got, err := w.read(turns, "http://turns.test/"); !errors.Is(err, errNotPublic) {
		t.Errorf("once its name leads elsewhere: %q, error %v", got, err)
	}
}

// TestGuardKeepsToTheHosts of the config, and says so before anything is asked.
func TestGuardKeepsToTheHosts(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "here") })
	w.names["ci.test"], w.names["other.test"] = []string{"93.184.215.14"}, []string{"93.184.215.14"}
	guard := w.guard("ci.test")
	if err := guard.Check("https://ci.test/api"); err != nil {
		t.Error(err)
	}
	const want = "none of the hosts that may be read from"
	if err := guard.Check("https://other.test/"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("another host: %v", err)
	}
	if got, err := w.read(guard, "http://other.test/"); err == nil || !strings.Contains(err.Error(), want) || len(w.dials) > 0 {
		t.Errorf("another host: %q, error %v, dialled %v", got, err, w.dials)
	}
	if _, err := NewGuard(Config{Hosts: []string{"10.0.0.1"}}); err == nil {
		t.Error("a host that cannot be one was taken")
	}
}

// TestGuardOnlyReads and ends with its request's context.
func TestGuardOnlyReads(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") })
	w.names["public.test"] = []string{"93.184.215.14"}
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://public.test/", strings.NewReader("a=b"))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := w.guard().RoundTrip(post); err == nil {
		answer.Body.Close()
		t.Error("something was sent")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	get, err := http.NewRequestWithContext(ended, http.MethodGet, "http://public.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := w.guard().RoundTrip(get)
	if err == nil {
		answer.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// TestGuardUnderAHeartbeat: what looks at a page through a guard is a condition like any other, and follows no redirect off
// its host.
func TestGuardUnderAHeartbeat(t *testing.T) {
	state := "green"
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hangs":
			<-r.Context().Done()
		case "/away":
			http.Redirect(rw, r, "http://other.test/", http.StatusFound)
		default:
			_, _ = io.WriteString(rw, `{"builds":[{"state":"`+state+`"}]}`)
		}
	})
	w.names["ci.test"], w.names["other.test"], w.names["private.test"] = []string{"93.184.215.14"}, []string{"93.184.215.14"}, []string{"10.0.0.1"}
	look := func(url string) schedule.Condition {
		t.Helper()
		c, err := condition.New(schedule.Spec{Kind: "http", URL: url, Select: "builds[0].state"}, condition.Env{Confined: true, Public: w.guard()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	builds := look("http://ci.test/api")
	conditiontest.Contract(t, builds)
	conditiontest.Watches(t, builds)
	conditiontest.Hangs(t, look("http://ci.test/hangs"))
	green, err := builds.Check(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	state = "red"
	if red, err := builds.Check(t.Context(), green.State); err != nil || !red.True || !strings.HasSuffix(red.Evidence, "red") {
		t.Errorf("it turned red: %+v, error %v", red, err)
	}
	for url, want := range map[string]string{"http://ci.test/away": "it redirects to other.test", "http://private.test/": "public internet"} {
		if found, err := look(url).Check(t.Context(), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, error %v, want %q", url, found, err, want)
		}
	}
}
