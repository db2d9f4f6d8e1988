package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
	"nudge/agent/model/wire"
)

func TestErrorTable(t *testing.T) {
	for _, row := range readWires(t).Errors {
		var status int
		var verdict string
		if json.Unmarshal(row[0], &status) != nil || json.Unmarshal(row[2], &verdict) != nil {
			t.Fatalf("row %s", row)
		}
		want := map[string]model.Fault{"permanent": model.FaultRefused, "retry": model.FaultPassing}[verdict]
		c := wholeBody(string(row[1]))
		c.Status = status
		fault := faultOf(t, c.with(t, Profile{}))
		if fault.Fault != want || fault.Status != status || len(c.Requests) != 1 || fault.Began {
			t.Errorf("%d %s: fault is %+v, want %s", status, row[1], fault, want)
		}
		if !strings.Contains(fault.Say, fmt.Sprintf("(HTTP %d)", status)) {
			t.Errorf("%d: say is %q", status, fault.Say)
		}
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
		in.Status = c.status
		fault := faultOf(t, in.with(t, Profile{}))
		if fault.Fault != c.want || !strings.Contains(fault.Say, c.say) {
			t.Errorf("%d %s: fault %q, say %q; want %q, %q", c.status, c.body, fault.Fault, fault.Say, c.want, c.say)
		}
	}
}

func TestPages(t *testing.T) {
	for _, page := range readWires(t).Pages {
		c := canned{&modeltest.Canned{Status: page.Status, Header: page.Headers, Body: strings.NewReader(page.Body)}}
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
	}
}

func TestNotAnAnswer(t *testing.T) {
	for _, body := range []string{
		`{"choices":[]}`, `{"choices":null}`, `{"choices":[{}]}`, `{"choices":7}`, `{"choices":[{"message":{"tool_calls":{"a":1}}}]}`,
	} {
		c := wholeBody(body)
		c.Header["Content-Type"] = "application/octet-stream"
		fault := faultOf(t, c.with(t, Profile{}))
		if fault.Fault != model.FaultMalformed || fault.Status != 200 {
			t.Errorf("%q: fault is %+v, want malformed", body, fault)
		}
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
		for kind, in := range map[string]canned{
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

// TestBrokenLine is about the lines that break where others do not.
func TestBrokenLine(t *testing.T) {
	in := streamed("")
	in.Body = io.MultiReader(strings.NewReader(`{"choices":[`), iotest.ErrReader(io.ErrUnexpectedEOF))
	if fault := faultOf(t, in.with(t, Profile{})); fault.Fault != model.FaultPassing || !fault.Began || !errors.Is(fault, io.ErrUnexpectedEOF) {
		t.Errorf("whole: fault is %+v", fault)
	}
	in = streamed("")
	in.Body = io.MultiReader(strings.NewReader(delta1(`"content":"I will"`)+strings.TrimSuffix(ended("stop"), "data: [DONE]\n\n")), iotest.ErrReader(io.ErrUnexpectedEOF))
	if got := answerOf(t, in.with(t, Profile{}), hi); got.Text != "I will" {
		t.Errorf("broken after the finish: answer is %+v", got)
	}
}

// TestNothingAfterTheFinish: a server that has said all, and keeps the line open, is not waited for.
func TestNothingAfterTheFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		end, _, _ := strings.Cut(ended("stop"), "data: [DONE]")
		slow := modeltest.Slow{Kind: "text/event-stream", Pause: time.Second, Pieces: []string{delta1(`"content":"x"`), end}}
		got := answerOf(t, mustNew(t, Config{BaseURL: "https://llm.test/v1", Model: "m", Stream: true, IdleTimeout: time.Minute, HTTP: slow.HTTP()}), hi)
		if took := time.Since(begin); got.Text != "x" || took != 2*time.Second+wire.Grace {
			t.Errorf("answer is %+v after %v", got, took)
		}
	})
}
