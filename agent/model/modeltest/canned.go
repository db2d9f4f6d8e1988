package modeltest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"nudge/agent/model"
)

// Canned is a provider without a network: a transport that answers every request with the same response. It is for one goroutine.
type Canned struct {
	Status int // 200 when 0
	Header map[string]string
	Body   io.Reader
	Err    error // comes instead of a response

	Requests []*http.Request // so far
}

// Streamed returns one whose answer is a stream.
func Streamed(parts ...string) *Canned {
	return &Canned{Header: map[string]string{"Content-Type": eventStream}, Body: strings.NewReader(strings.Join(parts, ""))}
}

// Whole returns one whose answer is a whole one.
func Whole(body string) *Canned {
	return &Canned{Header: map[string]string{"Content-Type": "application/json"}, Body: strings.NewReader(body)}
}

// RoundTrip is of http.RoundTripper.
func (c *Canned) RoundTrip(r *http.Request) (*http.Response, error) {
	c.Requests = append(c.Requests, r)
	if c.Err != nil {
		return nil, c.Err
	}
	header := http.Header{}
	for k, v := range c.Header {
		header.Set(k, v)
	}
	status := c.Status
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(c.Body), Request: r}, nil
}

// HTTP returns a client that asks it.
func (c *Canned) HTTP() *http.Client { return &http.Client{Transport: c} }

const eventStream = "text/event-stream"

// Slow is a provider without a network that takes its time: a transport whose answers come in pieces, each after a pause, and
// are then silent until the request ends. With no Kind it does not even begin one.
type Slow struct {
	Kind   string // of the content
	Pause  time.Duration
	Pieces []string
}

// RoundTrip is of http.RoundTripper.
func (s Slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.Kind == "" {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body := &trickle{r: r, pause: s.Pause, pieces: append([]string(nil), s.Pieces...)}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.Kind}}, Body: body}, nil
}

// HTTP returns a client that asks it.
func (s Slow) HTTP() *http.Client { return &http.Client{Transport: s} }

// trickle is the body of such an answer.
type trickle struct {
	r      *http.Request
	pause  time.Duration
	pieces []string
}

func (b *trickle) Read(p []byte) (int, error) {
	wait := b.pause
	if len(b.pieces) == 0 {
		wait = 1000 * time.Hour
	}
	select {
	case <-b.r.Context().Done():
		return 0, b.r.Context().Err()
	case <-time.After(wait):
	}
	n := copy(p, b.pieces[0])
	if b.pieces[0] = b.pieces[0][n:]; b.pieces[0] == "" {
		b.pieces = b.pieces[1:]
	}
	return n, nil
}

func (b *trickle) Close() error { return nil }

// AnswerOf asks, and checks that what was said is the text.
func AnswerOf(t *testing.T, m model.Model, req model.Request) model.Answer {
	t.Helper()
	answer, said := ask(t, m, req)
	if said != answer.Text {
		t.Errorf("said %q, but the text is %q", said, answer.Text)
	}
	return answer
}

// FaultOf asks what can get no answer, and checks that the error is fit for people and logs.
func FaultOf(t *testing.T, m model.Model, req model.Request) *model.Error {
	t.Helper()
	answer, err := m.Answer(t.Context(), req, nil)
	var fault *model.Error
	if !errors.As(err, &fault) {
		t.Fatalf("got %+v, %v; want a *model.Error", answer, err)
	}
	checkNothing(t, answer)
	CheckSay(t, fault)
	return fault
}

// CheckSay checks that a person may read the line of an error, and a log its detail.
func CheckSay(t *testing.T, fault *model.Error) {
	t.Helper()
	if fault.Say == "" || strings.ContainsAny(fault.Say, "<>\r\n") || strings.Contains(fault.Say, "://") ||
		strings.Contains(fault.Say, "sk-") || strings.Contains(fault.Say, "req_") {
		t.Errorf("this is not fit for a person: %q", fault.Say)
	}
	if fault.Err != nil && (len(fault.Err.Error()) > 500 || strings.ContainsAny(fault.Err.Error(), "\r\n")) {
		t.Errorf("this is not fit for a log: %q", fault.Err.Error())
	}
}
