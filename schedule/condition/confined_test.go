package condition_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nudge/schedule"
	"nudge/schedule/condition"
	"nudge/schedule/condition/conditiontest"
	"nudge/schedule/process"
)

// shell has the commands of a config that only read, which take what they run as a parameter.
func shell(name string, parameters map[string]string) (argv []string, limit time.Duration, err error) {
	if name != "sh" {
		return nil, 0, fmt.Errorf("there is no command %q", name)
	}
	return []string{"sh", "-c", parameters["script"]}, 20 * time.Second, nil
}

func prepared(script string) schedule.Spec {
	return schedule.Spec{Kind: "command", Command: "sh", Parameters: map[string]string{"script": script}}
}

// gate lets requests to one server through.
type gate struct {
	http.RoundTripper
	server string
	passed atomic.Int64
}

func (g *gate) Check(address string) error {
	if !strings.HasPrefix(address, g.server) {
		return errors.New("only one server can be read from")
	}
	return nil
}

func (g *gate) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := g.Check(request.URL.String()); err != nil {
		return nil, err
	}
	g.passed.Add(1)
	return g.RoundTripper.RoundTrip(request)
}

func newGate(p *page) *gate {
	return &gate{RoundTripper: &http.Transport{DisableKeepAlives: true}, server: p.URL}
}

// TestContractConfined holds what people may set in conversations to the suite.
func TestContractConfined(t *testing.T) {
	p := newPage(t)
	p.set(200, `{"state":"red"}`)
	env := condition.Env{Dir: t.TempDir(), Confined: true, Preset: shell, Public: newGate(p)}
	for name, spec := range map[string]schedule.Spec{
		"command":      prepared("true"),
		"command no":   prepared("echo told; exit 1"),
		"command text": prepared(`printf '\377\376'`),
		"http":         {Kind: "http", URL: p.URL},
		"http select":  {Kind: "http", URL: p.URL, Select: "state"},
		"http status":  {Kind: "http", URL: p.URL, Status: 200},
		"both":         {Kind: "any", Of: []schedule.Spec{prepared("true"), {Kind: "http", URL: p.URL}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := build(t, spec, env)
			conditiontest.Contract(t, c)
			if spec.Kind == "http" && spec.Status == 0 {
				conditiontest.Watches(t, c)
			}
		})
	}
	t.Run("hangs", func(t *testing.T) { conditiontest.Hangs(t, build(t, prepared("sleep 300"), env)) })
}

// TestPreparedCommand runs where the condition looks, under its own name and within its own time.
func TestPreparedCommand(t *testing.T) {
	dir := t.TempDir()
	env := condition.Env{Dir: dir, Confined: true, Preset: shell}
	if found := check(t, build(t, prepared("echo $PWD; exit 1"), env), ""); found.True || !strings.HasSuffix(strings.TrimSpace(found.Evidence), filepath.Base(dir)) {
		t.Errorf("it found %+v", found)
	}
	if _, err := build(t, prepared("exit 3"), env).Check(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "check command sh: exit status 3") {
		t.Errorf("another exit status: %v", err)
	}
	var left time.Duration
	env.Run = func(ctx context.Context, _ process.Spec) (process.Outcome, error) {
		ends, _ := ctx.Deadline()
		left = time.Until(ends)
		return process.Outcome{}, nil
	}
	check(t, build(t, prepared("true"), env), "")
	if left <= 0 || left > 20*time.Second {
		t.Errorf("it had %s", left)
	}
}

// TestConfinedRefuses what only the operator may set, and what the config does not have any more.
func TestConfinedRefuses(t *testing.T) {
	p := newPage(t)
	open := condition.Env{Dir: t.TempDir(), Confined: true, Preset: shell, Public: newGate(p)}
	bare := condition.Env{Dir: open.Dir, Confined: true}
	for _, test := range []struct {
		spec schedule.Spec
		env  condition.Env
		want string
	}{
		{schedule.Spec{Kind: "command", Run: []string{"true"}}, open, "heartbeat.condition.run: a program can be set in the config only"},
		{schedule.Spec{Kind: "command", Command: "gone"}, open, `heartbeat.condition.command: there is no command "gone"`},
		{schedule.Spec{Kind: "command", Command: "sh", Run: []string{"true"}}, open, "there cannot be both"},
		{schedule.Spec{Kind: "command", Run: []string{"true"}, Parameters: map[string]string{}}, open, "heartbeat.condition.parameters"},
		{schedule.Spec{Kind: "http", URL: "https://example.com"}, open, "heartbeat.condition.url: only one server"},
		{schedule.Spec{Kind: "any", Of: []schedule.Spec{{Kind: "http", URL: "https://example.com"}}}, open, "only one server"},
		{prepared("true"), bare, "heartbeat.condition.command: there are no prepared commands"},
		{schedule.Spec{Kind: "http", URL: p.URL}, bare, "heartbeat.condition.url: an address can be set in the config only"},
	} {
		if _, err := condition.New(test.spec, test.env); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: error %v, want %q", test.spec, err, test.want)
		}
	}
}

// TestConfinedReadsThroughItsGate alone, redirects included.
func TestConfinedReadsThroughItsGate(t *testing.T) {
	p := newPage(t)
	through := newGate(p)
	plain := gate{RoundTripper: through.RoundTripper, server: p.URL}
	env := condition.Env{Confined: true, Public: through, Get: &plain}
	check(t, build(t, schedule.Spec{Kind: "http", URL: p.URL + "?to=/there"}, env), "")
	if through.passed.Load() != 2 || plain.passed.Load() != 0 {
		t.Errorf("%d requests through the gate and %d past it", through.passed.Load(), plain.passed.Load())
	}
}

// Only what comes from an address of the public internet is no private data.
func TestWhatIsPublic(t *testing.T) {
	p := newPage(t)
	public := schedule.Spec{Kind: "http", URL: p.URL}
	inner := schedule.Spec{Kind: "http", URL: strings.Replace(p.URL, "127.0.0.1", "localhost", 1)}
	private := schedule.Spec{Kind: "command", Run: []string{"echo", "seen"}}
	always := func(spec schedule.Spec) schedule.Spec { spec.Status = 200; return spec }
	for name, c := range map[string]struct {
		spec schedule.Spec
		want bool
	}{
		"a page": {public, true}, "its status": {always(public), true}, "a page of this machine": {inner, false}, "its own status": {always(inner), false},
		"a command": {private, false}, "a file": {schedule.Spec{Kind: "file", Path: ".", Test: "exists"}, false}, "the time": {schedule.Spec{Kind: "expr", Expr: "hour >= 0"}, true},
		"two pages":            {schedule.Spec{Kind: "all", Of: []schedule.Spec{always(public), always(public)}}, true},
		"a page and a command": {schedule.Spec{Kind: "all", Of: []schedule.Spec{always(public), private}}, false},
	} {
		found := check(t, build(t, c.spec, condition.Env{Public: newGate(p), Dir: t.TempDir()}), "")
		if found.Evidence == "" || found.Public != c.want {
			t.Errorf("%s: %+v, want public: %v", name, found, c.want)
		}
	}
	if check(t, build(t, public, condition.Env{}), "").Public {
		t.Error("without anybody who knows, a page is public")
	}
}

// split is what knows an address by its name as one of the public internet, and finds that it leads elsewhere.
type split struct{ gate }

func (*split) Check(string) error { return nil }

func (*split) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the address is not public")
}

// A name of a company's own network looks like any other. What is read there on the operator's word is private.
func TestWhatOnlyLooksPublic(t *testing.T) {
	p := newPage(t)
	p.set(200, "inner")
	for _, status := range []int{0, 200} {
		spec := schedule.Spec{Kind: "http", URL: p.URL, Status: status}
		found := check(t, build(t, spec, condition.Env{Public: &split{}}), "before")
		if !found.True || found.Public {
			t.Errorf("status %d: %+v", status, found)
		}
		confined, err := condition.New(spec, condition.Env{Public: &split{}, Confined: true})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := confined.Check(t.Context(), "before"); err == nil {
			t.Errorf("status %d, for somebody else than the operator: %+v", status, found)
		}
	}
}

// A prepared command is looked up once more when nobody can change what its values name, and does not run when it is refused then.
func TestACommandIsHeld(t *testing.T) {
	held, refused := 0, false
	env := condition.Env{Dir: t.TempDir(), Confined: true, Preset: func(name string, parameters map[string]string) ([]string, time.Duration, error) {
		if refused {
			return nil, 0, errors.New("it leads out")
		}
		return shell(name, parameters)
	}}
	env.Hold = func(context.Context) (func(), error) { held++; return func() { held-- }, nil }
	c := build(t, prepared("exit 0"), env)
	if found := check(t, c, ""); !found.True || held != 0 {
		t.Errorf("%+v, held by %d", found, held)
	}
	refused = true
	if found, err := c.Check(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "it leads out") || held != 0 {
		t.Errorf("%+v, %v, held by %d", found, err, held)
	}
	refused = false
	env.Hold = func(context.Context) (func(), error) { return nil, errors.New("no room") }
	if found, err := build(t, prepared("exit 0"), env).Check(t.Context(), ""); err == nil {
		t.Errorf("it looked without being let in: %+v", found)
	}
}

// TestOnceByFolder runs a command once for each folder, and asks an address once.
func TestOnceByFolder(t *testing.T) {
	p := newPage(t)
	through := newGate(p)
	env := condition.Env{Confined: true, Preset: shell, Public: through}.Once()
	one, two := env, env
	one.Dir, two.Dir = t.TempDir(), t.TempDir()
	write(t, filepath.Join(one.Dir, "red"), "")
	for range 2 {
		if !check(t, build(t, prepared("test -e red"), one), "").True || check(t, build(t, prepared("test -e red"), two), "").True {
			t.Error("one folder's answer was taken for another's")
		}
		check(t, build(t, schedule.Spec{Kind: "http", URL: p.URL}, one), "")
	}
	if n := through.passed.Load(); n != 1 {
		t.Errorf("the address was asked %d times", n)
	}
}
