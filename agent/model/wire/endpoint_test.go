package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"nudge/agent/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-AAAABBBBCCCCDDDD0001"

// plain is a draft of a provider that says nothing but text; the event "end" is the last, and only "stop" finishes.
type plain struct {
	text     strings.Builder
	finished bool
}

func (p *plain) Whole(body []byte) *model.Error {
	p.text.Write(body)
	return nil
}

func (p *plain) Event(ev Event) (bool, *model.Error) {
	switch string(ev.Data) {
	case "stop":
		p.finished = true
		return false, nil
	case "end":
		return true, nil
	case "error":
		return false, Malformed(errors.New("an error was sent"))
	}
	p.text.Write(ev.Data)
	return false, nil
}

func (p *plain) Began() bool    { return p.text.Len() > 0 }
func (p *plain) Finished() bool { return p.finished }

func (p *plain) Answer() (model.Answer, *model.Error) {
	return model.Answer{Text: p.text.String(), Finish: model.FinishStop}, nil
}

// provider is a transport that answers every request with the same body.
type provider struct {
	body io.Reader
	got  *http.Request
}

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	p.got = r
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(p.body), Request: r}, nil
}

func (p *provider) endpoint(t *testing.T) *Endpoint {
	t.Helper()
	e, err := NewEndpoint(Config{
		BaseURL: " https://llm.test/v1/?k=v#x ", Path: "ask", Key: " " + testKey + "\n", KeyHeader: "X-Key", KeyPrefix: "Token ",
		Header: http.Header{"X-Version": {"1"}}, Stream: true, HTTP: &http.Client{Transport: p},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// written is a request whatever is asked.
func written(pieces ...[]byte) Write {
	return func(context.Context, model.Request) (Pieces, error) { return pieces, nil }
}

func TestRequest(t *testing.T) {
	p := &provider{body: strings.NewReader("{}")}
	if _, err := p.endpoint(t).Answer(t.Context(), model.Request{}, written([]byte("quest"), nil, []byte("ion")), &plain{}); err != nil {
		t.Fatal(err)
	}
	sent, _ := io.ReadAll(p.got.Body)
	if p.got.URL.String() != "https://llm.test/v1/ask?k=v" || p.got.Method != http.MethodPost || string(sent) != "question" {
		t.Errorf("%s %s with %q", p.got.Method, p.got.URL, sent)
	}
	for name, want := range map[string]string{
		"X-Key": "Token " + testKey, "X-Version": "1", "Content-Type": "application/json", "Accept": "text/event-stream, application/json", "User-Agent": "nudge",
	} {
		if got := p.got.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestStream(t *testing.T) {
	for name, c := range map[string]struct {
		wire, text string
		fault      model.Fault // "" when it is an answer
		began      bool
	}{
		"whole":                     {"data: a\n\ndata:\n\ndata: b\n\ndata: stop\n\ndata: end\n\ndata: c\n\n", "ab", "", true},
		"nothing after the finish":  {"data: a\n\ndata: stop\n\n", "a", "", true},
		"end without a finish":      {"data: a\n\ndata: end\n\n", "", model.FaultPassing, true},
		"no end":                    {"data: a\n\n", "", model.FaultPassing, true},
		"no end and nothing before": {": hi\n\n", "", model.FaultPassing, false},
		"error":                     {"data: a\n\ndata: error\n\n", "", model.FaultMalformed, true},
		"page":                      {"<html>", "", model.FaultMalformed, false},
		"neither":                   {"hello", "", model.FaultMalformed, false},
	} {
		p := &provider{body: strings.NewReader(c.wire)}
		answer, err := p.endpoint(t).Answer(t.Context(), model.Request{}, written(), &plain{})
		if c.fault == "" {
			if err != nil || answer.Text != c.text {
				t.Errorf("%s: got %+v, %v", name, answer, err)
			}
			continue
		}
		var fault *model.Error
		if !errors.As(err, &fault) || fault.Fault != c.fault || fault.Began != c.began || fault.Status != 200 || answer.Text != "" {
			t.Errorf("%s: got %+v, %+v; want %s", name, answer, err, c.fault)
		}
	}
}

// endless is a body without an end.
type endless struct{ piece []byte }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.piece)
	}
	return n, nil
}

func TestAnswerWithoutEnd(t *testing.T) {
	for name, start := range map[string]string{"one line": "data: ", "comments": ":", "events": "data: a\n\ndata: ", "blank": " "} {
		piece := "x"
		if name == "blank" {
			piece = "\n"
		}
		p := &provider{body: io.MultiReader(strings.NewReader(start), endless{bytes.Repeat([]byte(piece), 1<<16)})}
		e := p.endpoint(t)
		e.limit = 1 << 20
		_, err := e.Answer(t.Context(), model.Request{}, written(), &plain{})
		var fault *model.Error
		if !errors.As(err, &fault) || fault.Fault != model.FaultMalformed || name != "blank" && !strings.Contains(fault.Error(), "1048576 bytes") {
			t.Errorf("%s: fault is %+v, want malformed", name, fault)
		}
	}
}

func TestUnwritable(t *testing.T) {
	cause := errors.New("no such thing")
	_, err := (&provider{}).endpoint(t).Answer(t.Context(), model.Request{}, func(context.Context, model.Request) (Pieces, error) { return nil, cause }, &plain{})
	var fault *model.Error
	if !errors.As(err, &fault) || fault.Fault != model.FaultRefused || !errors.Is(err, cause) {
		t.Errorf("error is %+v", err)
	}
}

func TestNewEndpoint(t *testing.T) {
	good := Config{BaseURL: "https://llm.test", Path: "x", Key: testKey, KeyHeader: "X-Key"}
	for name, change := range map[string]func(*Config){
		"no address":    func(c *Config) { c.BaseURL = " " },
		"no scheme":     func(c *Config) { c.BaseURL = "llm.test/v1" },
		"other scheme":  func(c *Config) { c.BaseURL = "ftp://llm.test" },
		"password":      func(c *Config) { c.BaseURL = "https://me:" + testKey + "@llm.test" },
		"key in a mess": func(c *Config) { c.BaseURL = "https://llm.test/%zz" + testKey },
		"key in two":    func(c *Config) { c.Key = testKey + "\n" + testKey },
		"negative call": func(c *Config) { c.CallTimeout = -1 },
		"negative idle": func(c *Config) { c.IdleTimeout = -1 },
	} {
		cfg := good
		change(&cfg)
		if _, err := NewEndpoint(cfg); err == nil || strings.Contains(err.Error(), testKey) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}
