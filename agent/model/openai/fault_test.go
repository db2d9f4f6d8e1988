package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"nudge/agent/model"
	"nudge/agent/model/wire"
)

func checkSay(t *testing.T, fault *model.Error) {
	t.Helper()
	if fault.Say == "" || strings.ContainsAny(fault.Say, "<>\n") || strings.Contains(fault.Say, "://") || strings.Contains(fault.Say, "sk-") {
		t.Errorf("this is not fit for a person: %q", fault.Say)
	}
	if fault.Err != nil && (len(fault.Err.Error()) > 500 || strings.ContainsAny(fault.Err.Error(), "\r\n")) {
		t.Errorf("this is not fit for a log: %q", fault.Err.Error())
	}
}

func TestErrorTable(t *testing.T) {
	for _, row := range readWires(t).Errors {
		var status int
		var verdict string
		if json.Unmarshal(row[0], &status) != nil || json.Unmarshal(row[2], &verdict) != nil {
			t.Fatalf("row %s", row)
		}
		want := map[string]model.Fault{"permanent": model.FaultRefused, "retry": model.FaultPassing}[verdict]
		c := wholeBody(string(row[1]))
		c.status = status
		fault := faultOf(t, c.with(t, Profile{}))
		if fault.Fault != want || fault.Status != status || len(c.requests) != 1 || fault.Began {
			t.Errorf("%d %s: fault is %+v, want %s", status, row[1], fault, want)
		}
		if !strings.Contains(fault.Say, fmt.Sprintf("(HTTP %d)", status)) {
			t.Errorf("%d: say is %q", status, fault.Say)
		}
		checkSay(t, fault)
	}
}

func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   model.Fault
		say    string
	}{
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens."}}`, model.FaultTooLong, "too long"},
		{400, `{"error":{"code":"context_length_exceeded"}}`, model.FaultTooLong, "too long"},
		{400, `{"error":{"type":"exceed_context_size_error","message":"the request exceeds the available context size"}}`, model.FaultTooLong, "too long"},
		{400, `{"object":"error","message":"prompt is too long: 9 tokens > 8 maximum"}`, model.FaultTooLong, "too long"},
		{413, ``, model.FaultTooLong, "too long"},
		{400, `{"error":{"message":"max_tokens is too large: 9. This model supports at most 8 completion tokens"}}`, model.FaultRefused, "refused the request"},
		{400, `{"error":{"message":"API key not valid. Please pass a valid API key."}}`, model.FaultRefused, "api_key_env"},
		{400, `nonsense`, model.FaultRefused, "refused the request"},
		{401, ``, model.FaultRefused, "api_key_env"},
		{403, `{"detail":"Forbidden"}`, model.FaultRefused, "api_key_env"},
		{402, ``, model.FaultRefused, "credit"},
		{404, `<html>nginx</html>`, model.FaultRefused, "base_url"},
		{418, ``, model.FaultRefused, "refused"},
		{422, `{"error":"bad"}`, model.FaultRefused, "refused"},
		{301, ``, model.FaultRefused, "moved"},
		{425, ``, model.FaultPassing, ""},
		{429, ``, model.FaultPassing, "too often"},
		{429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details."}}`, model.FaultRefused, "credit"},
		{429, `{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached: 1 of 2. Add a payment method at https://x.test/account/billing."}}`, model.FaultPassing, "too often"},
		{429, `{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached. Raise it on the billing page."}}`, model.FaultPassing, "too often"},
		{500, `{"error":{"message":"context size exceeded"}}`, model.FaultTooLong, "too long"},
		{502, ``, model.FaultPassing, "fault of its own"},
		{503, ``, model.FaultPassing, "overloaded"},
		{504, ``, model.FaultPassing, "too long"},
		{529, ``, model.FaultPassing, "the model's provider is overloaded (HTTP 529)"},
	} {
		in := wholeBody(c.body)
		in.status = c.status
		fault := faultOf(t, in.with(t, Profile{}))
		if fault.Fault != c.want || !strings.Contains(fault.Say, c.say) {
			t.Errorf("%d %s: fault %q, say %q; want %q, %q", c.status, c.body, fault.Fault, fault.Say, c.want, c.say)
		}
		checkSay(t, fault)
	}
}

func TestPages(t *testing.T) {
	for _, page := range readWires(t).Pages {
		c := &canned{status: page.Status, header: page.Headers, body: strings.NewReader(page.Body)}
		want := model.FaultPassing
		if page.Status == http.StatusOK {
			want = model.FaultMalformed
		}
		fault := faultOf(t, c.with(t, Profile{}))
		if fault.Fault != want || fault.Status != page.Status {
			t.Errorf("%+v: fault is %+v, want %s", page, fault, want)
		}
		if strings.Contains(fault.Say, "192.0.2.7") || strings.Contains(fault.Say, "deadbeef") {
			t.Errorf("say is %q", fault.Say)
		}
		if !strings.Contains(fault.Err.Error(), "https://llm.test/v1/chat/completions") {
			t.Errorf("the detail does not name the address: %q", fault.Err)
		}
		checkSay(t, fault)
	}
}

func TestNotAnAnswer(t *testing.T) {
	for _, body := range []string{
		"", " \n", "<html>Sign in</html>", "{}", "[]", "null", "Hello!", `{"choices":[]}`, `{"choices":null}`, `{"choices":[{}]}`, `{"choices":7}`,
		`{"id":"x"`, "data: {not json}\n\n", "data: [1]\n\n", "\x00\x01", `{"choices":[{"message":{"tool_calls":{"a":1}}}]}`,
	} {
		c := wholeBody(body)
		c.header["Content-Type"] = "application/octet-stream"
		fault := faultOf(t, c.with(t, Profile{}))
		if fault.Fault != model.FaultMalformed || fault.Status != 200 {
			t.Errorf("%q: fault is %+v, want malformed", body, fault)
		}
		checkSay(t, fault)
	}
}

// TestErrorsInside: an error where the answer should be, or in the middle of it, is told by what it says.
func TestErrorsInside(t *testing.T) {
	for _, c := range []struct {
		body   string
		want   model.Fault
		status int
	}{
		{`{"error":{"message":"Overloaded","type":"overloaded_error"}}`, model.FaultPassing, 200},
		{`{"type":"error","error":{"type":"overloaded_error"}}`, model.FaultPassing, 200},
		{`{"error":{"code":"insufficient_quota"}}`, model.FaultRefused, 200},
		{`{"error":{"message":"Upstream failed","code":502}}`, model.FaultPassing, 502},
		{`{"error":{"message":"No credit","code":402}}`, model.FaultRefused, 402},
		{`{"error":"Invalid API key"}`, model.FaultRefused, 200},
		{`{"object":"error","message":"maximum context length is 9","type":"BadRequestError","code":400}`, model.FaultTooLong, 400},
		{`{"message":"something broke"}`, model.FaultPassing, 200},
		{`{"choices":[{"error":{"code":429,"message":"Rate limit"}}]}`, model.FaultPassing, 429},
	} {
		for kind, in := range map[string]*canned{
			"whole": wholeBody(c.body), "first event": streamed("data: " + c.body + "\n\n"), "bare": streamed(": x\n\n" + c.body + "\n\n"),
			"later event": streamed(delta1(`"content":"I"`) + "data: " + c.body + "\n\n" + ended("stop")),
		} {
			if kind == "whole" && strings.Contains(c.body, "choices") {
				continue
			}
			fault := faultOf(t, in.with(t, Profile{}))
			if fault.Fault != c.want || fault.Status != c.status || fault.Began != (kind == "later event") {
				t.Errorf("%s as %s: fault is %+v, want %s, status %d", c.body, kind, fault, c.want, c.status)
			}
			checkSay(t, fault)
		}
	}
	named := streamed(delta1(`"content":"I"`) + "event: error\ndata: the backend is gone\n\n")
	if fault := faultOf(t, named.with(t, Profile{})); fault.Fault != model.FaultPassing || !fault.Began || !strings.Contains(fault.Err.Error(), "backend is gone") {
		t.Errorf("event: error gave %+v", fault)
	}
	odd := streamed(delta1(`"content":"I"`) + ended("error"))
	if fault := faultOf(t, odd.with(t, Profile{})); fault.Fault != model.FaultPassing || !fault.Began {
		t.Errorf("finish_reason error gave %+v", fault)
	}
	for _, none := range []string{"null", "false", `""`, "{}"} {
		if got := answerOf(t, wholeBody(`{"error":`+none+`,`+message(`"content":"ok"`)[1:]).with(t, Profile{}), hi); got.Text != "ok" {
			t.Errorf("error %s: answer is %+v", none, got)
		}
	}
}

func TestBrokenLine(t *testing.T) {
	begun := delta1(`"content":"I will"`)
	for name, c := range map[string]struct {
		wire  string
		began bool
	}{
		"at once": {"", false}, "after a comment": {": hi\n\n", false}, "after text": {begun, true},
		"in an event": {begun + "data: {\"cho", true}, "whole": {`{"choices":[`, true},
	} {
		in := streamed("")
		in.body = io.MultiReader(strings.NewReader(c.wire), iotest.ErrReader(io.ErrUnexpectedEOF))
		fault := faultOf(t, in.with(t, Profile{}))
		if fault.Fault != model.FaultPassing || fault.Began != c.began || !errors.Is(fault, io.ErrUnexpectedEOF) {
			t.Errorf("%s: fault is %+v", name, fault)
		}
		checkSay(t, fault)
	}
	in := streamed("")
	in.body = io.MultiReader(strings.NewReader(begun+strings.TrimSuffix(ended("stop"), "data: [DONE]\n\n")), iotest.ErrReader(io.ErrUnexpectedEOF))
	if got := answerOf(t, in.with(t, Profile{}), hi); got.Text != "I will" {
		t.Errorf("broken after the finish: answer is %+v", got)
	}
}

func TestUnreachable(t *testing.T) {
	c := &canned{err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	fault := faultOf(t, c.with(t, Profile{}))
	if fault.Fault != model.FaultPassing || fault.Say != "cannot reach the model's server" || fault.Status != 0 || !errors.Is(fault, syscall.ECONNREFUSED) {
		t.Errorf("fault is %+v", fault)
	}
	checkSay(t, fault)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	stranger := &http.Transport{}
	defer stranger.CloseIdleConnections()
	fault = faultOf(t, mustNew(t, Config{BaseURL: server.URL, Model: "m", HTTP: &http.Client{Transport: stranger}}))
	if fault.Fault != model.FaultRefused || !strings.Contains(fault.Say, "certificate") {
		t.Errorf("fault is %+v", fault)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	fault = faultOf(t, mustNew(t, Config{BaseURL: strings.Replace(plain.URL, "http:", "https:", 1), Model: "m", HTTP: &http.Client{Transport: stranger}}))
	if fault.Fault != model.FaultRefused || !strings.Contains(fault.Say, "https") {
		t.Errorf("fault is %+v", fault)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/chat/completions", status))
		fault := faultOf(t, mustNew(t, Config{BaseURL: server.URL, Model: "m", Key: testKey, HTTP: server.Client()}))
		if fault.Fault != model.FaultRefused || fault.Status != status {
			t.Errorf("%d: fault is %+v", status, fault)
		}
		server.Close()
	}
}

// TestKeysStayInside: neither the key nor a piece or another form of it is in an error, wherever the provider put it.
func TestKeysStayInside(t *testing.T) {
	const urlKey = "AIza/TEST KEY0003"
	forms := []string{testKey, testKey[:20], testKey[5:17], url.QueryEscape(urlKey), urlKey, "sk-test...0001", "sk-other-1",
		base64.StdEncoding.EncodeToString([]byte(testKey))}
	for _, form := range forms {
		for _, status := range []int{200, 401, 500} {
			for _, pad := range []int{0, 380, 4080} {
				in := wholeBody(`{"error":{"message":"` + strings.Repeat(".", pad) + form + ` is no good"}}`)
				in.status = status
				c := mustNew(t, Config{BaseURL: "https://llm.test/v1?key=" + url.QueryEscape(urlKey), Model: "m", Key: testKey, HTTP: &http.Client{Transport: in}})
				fault := faultOf(t, c)
				checkSay(t, fault)
				for err := error(fault); err != nil; err = errors.Unwrap(err) {
					for _, secret := range append(forms, testKey[:12], testKey[len(testKey)-12:]) {
						if strings.Contains(err.Error(), secret) {
							t.Errorf("%q shows %q", err, secret)
						}
					}
				}
			}
		}
	}
	down := &canned{err: errors.New("no such host")}
	c := mustNew(t, Config{BaseURL: "https://llm.test/v1?key=" + url.QueryEscape(urlKey), Model: "m", HTTP: &http.Client{Transport: down}})
	if fault := faultOf(t, c); strings.Contains(fault.Error(), "AIza") || strings.Contains(fault.Error(), "Post ") || !strings.Contains(fault.Error(), "no such host") {
		t.Errorf("error is %v", fault)
	}
	if got := down.requests[0].URL.Query().Get("key"); got != urlKey {
		t.Errorf("the query was sent as %q", got)
	}
}

func TestRetryAfter(t *testing.T) {
	c := wholeBody("{}")
	c.status, c.header["Retry-After"] = 429, "7"
	if fault := faultOf(t, c.with(t, Profile{})); fault.RetryAfter != 7*time.Second {
		t.Errorf("fault is %+v", fault)
	}
}

// trickle is a body that says its pieces, each after a pause, and then is silent until the request ends.
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

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// timed returns a client whose provider says pieces with a pause before each.
func timed(t *testing.T, kind string, pause time.Duration, pieces ...string) *Client {
	return mustNew(t, Config{
		BaseURL: "https://llm.test/v1", Model: "m", Stream: true, CallTimeout: 10 * time.Minute, IdleTimeout: time.Minute,
		HTTP: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if kind == "" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: &trickle{r: r, pause: pause, pieces: pieces}}, nil
		})},
	})
}

func TestTimeouts(t *testing.T) {
	const events = "text/event-stream"
	many := strings.Split(strings.Repeat(delta1(`"content":"x"`)+"|", 30), "|")[:30]
	for name, c := range map[string]struct {
		kind  string
		pause time.Duration
		in    []string
		after time.Duration
		say   string
		began bool
	}{
		"no response":           {"", 0, nil, 10 * time.Minute, "took too long", false},
		"silent stream":         {events, time.Second, nil, time.Minute, "silent", false},
		"silent in the middle":  {events, 50 * time.Second, []string{delta1(`"content":"x"`)}, 110 * time.Second, "silent", true},
		"slow but never silent": {events, 50 * time.Second, many, 10 * time.Minute, "took too long", true},
		"whole and slow":        {"application/json", time.Second, nil, 10 * time.Minute, "took too long", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				fault := faultOf(t, timed(t, c.kind, c.pause, c.in...))
				if fault.Fault != model.FaultPassing || !strings.Contains(fault.Say, c.say) || fault.Began != c.began {
					t.Errorf("fault is %+v", fault)
				}
				if took := time.Since(begin); took != c.after {
					t.Errorf("took %v, want %v", took, c.after)
				}
			})
		})
	}
}

// TestNothingAfterTheFinish: a server that has said all, and keeps the line open, is not waited for.
func TestNothingAfterTheFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		end, _, _ := strings.Cut(ended("stop"), "data: [DONE]")
		got := answerOf(t, timed(t, "text/event-stream", time.Second, delta1(`"content":"x"`), end), hi)
		if took := time.Since(begin); got.Text != "x" || took != 2*time.Second+wire.Grace {
			t.Errorf("answer is %+v after %v", got, took)
		}
	})
}

// TestListeningIsNotSilence: the time that the listener takes is not the provider's silence.
func TestListeningIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := timed(t, "text/event-stream", time.Second, delta1(`"content":"x"`), ended("stop"))
		got, err := c.Answer(t.Context(), hi, func(string) { time.Sleep(5 * time.Minute) })
		if err != nil || got.Text != "x" {
			t.Errorf("answer is %+v, %v", got, err)
		}
	})
}
