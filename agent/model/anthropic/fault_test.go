package anthropic

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nudge/agent/model"
	"nudge/agent/model/modeltest"
)

func anError(kind, message string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`
}

func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   model.Fault
		say    string
	}{
		{400, anError("invalid_request_error", "prompt is too long: 200251 tokens > 200000 maximum"), model.FaultTooLong, "too long"},
		{400, anError("invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000"), model.FaultTooLong, "too long"},
		{400, anError("invalid_request_error", "messages: roles must alternate"), model.FaultRefused, "refused the request"},
		{400, anError("invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), model.FaultRefused, "credit"},
		{400, anError("invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."), model.FaultRefused, "credit"},
		{401, anError("authentication_error", "invalid x-api-key"), model.FaultRefused, "api_key_env"},
		{402, anError("billing_error", "There is an issue with your billing"), model.FaultRefused, "credit"},
		{403, anError("permission_error", "Your API key does not have permission"), model.FaultRefused, "api_key_env"},
		{404, anError("not_found_error", "model: claude-none"), model.FaultRefused, "no such model"},
		{413, `<html><head><title>413 Request Entity Too Large</title></head><body>cloudflare</body></html>`, model.FaultTooLong, "too long"},
		{413, anError("request_too_large", "Request exceeds the maximum size"), model.FaultTooLong, "too long"},
		{429, anError("rate_limit_error", "This request would exceed your organization's rate limit of 30,000 input tokens per minute. See https://x.test/billing"), model.FaultPassing, "too often"},
		{500, anError("api_error", "Internal server error"), model.FaultPassing, "fault of its own"},
		{504, anError("timeout_error", "Timed out"), model.FaultPassing, "too long"},
		{529, anError("overloaded_error", "Overloaded"), model.FaultPassing, "overloaded"},
	} {
		in := wholeBody(c.body)
		in.Status, in.Header["Retry-After"] = c.status, "7"
		fault := faultOf(t, in.client(t))
		if fault.Fault != c.want || !strings.Contains(fault.Say, c.say) || fault.Status != c.status || fault.Began || fault.RetryAfter != 7*time.Second || len(in.Requests) != 1 {
			t.Errorf("%d %s: fault %+v; want %q, %q", c.status, c.body, fault, c.want, c.say)
		}
	}
}

// TestErrorsInside: an error where the answer should be, or in the middle of it, is told by what it says.
func TestErrorsInside(t *testing.T) {
	for kind, want := range map[string]model.Fault{
		"overloaded_error": model.FaultPassing, "api_error": model.FaultPassing, "rate_limit_error": model.FaultPassing, "timeout_error": model.FaultPassing,
		"invalid_request_error": model.FaultRefused, "authentication_error": model.FaultRefused, "billing_error": model.FaultRefused, "request_too_large": model.FaultTooLong,
	} {
		body := anError(kind, "x")
		for place, in := range map[string]canned{
			"whole": wholeBody(body), "first event": streamed("event: error\ndata: " + body + "\n\n"), "bare": streamed(": x\n\n" + body + "\n\n"),
			"without a name": streamed("data: " + body + "\n\n"),
			"later event":    streamed(began, says("0", "I"), "event: error\ndata: "+body+"\n\n", ended("end_turn")),
			"before the end": streamed(began, says("0", "I"), strings.TrimSuffix(ended("end_turn"), stopped), "event: error\ndata: "+body+"\n\n"),
		} {
			fault := faultOf(t, in.client(t))
			if fault.Fault != want || fault.Status != 200 || fault.Began != (place == "later event" || place == "before the end") {
				t.Errorf("%s as %s: fault is %+v, want %s", kind, place, fault, want)
			}
		}
	}
}

func TestNotAnAnswer(t *testing.T) {
	for _, body := range []string{
		`{"type":"message"}`, `{"content":null}`, `{"content":7}`, `{"content":[7]}`, `{"choices":[{"message":{"content":"wrong API"}}]}`,
	} {
		in := wholeBody(body)
		in.Header["Content-Type"] = "application/octet-stream"
		if fault := faultOf(t, in.client(t)); fault.Fault != model.FaultMalformed || fault.Status != 200 {
			t.Errorf("%q: fault is %+v, want malformed", body, fault)
		}
	}
}

// TestNotAnEnd: without both the reason and the end, the answer is not whole.
func TestNotAnEnd(t *testing.T) {
	for name, end := range map[string]string{
		"no reason":      stopped,
		"empty reason":   `data: {"type":"message_delta","delta":{"stop_reason":null}}` + "\n\n" + stopped,
		"no end":         strings.TrimSuffix(ended("end_turn"), stopped),
		"other API":      "data: [DONE]\n\n",
		"end cut off":    strings.TrimSuffix(ended("end_turn"), stopped) + `data: {"type":"message_st`,
		"nothing at all": "",
	} {
		fault := faultOf(t, streamed(began, says("0", "I will"), end).client(t))
		want := model.FaultPassing
		if name == "other API" {
			want = model.FaultMalformed
		}
		if fault.Fault != want || !fault.Began {
			t.Errorf("%s: fault is %+v", name, fault)
		}
	}
}

// timed returns a client whose provider says pieces with a pause before each.
func timed(t *testing.T, pause time.Duration, pieces ...string) *Client {
	slow := modeltest.Slow{Kind: "text/event-stream", Pause: pause, Pieces: pieces}
	return mustNew(t, Config{Model: "m", Stream: true, CallTimeout: 10 * time.Minute, IdleTimeout: time.Minute, HTTP: slow.HTTP()})
}

func TestTimeouts(t *testing.T) {
	const ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	for name, c := range map[string]struct {
		pause time.Duration
		in    []string
		after time.Duration
		say   string
		began bool
	}{
		"silent after the start": {50 * time.Second, []string{began}, 110 * time.Second, "silent", true},
		"pings, but nothing new": {50 * time.Second, strings.Split(strings.Repeat(ping+"|", 30), "|")[:30], 10 * time.Minute, "took too long", false},
		"silent before the end":  {time.Second, []string{began, strings.TrimSuffix(ended("end_turn"), stopped)}, time.Minute + 2*time.Second, "silent", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				fault := faultOf(t, timed(t, c.pause, c.in...))
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

// TestNothingAfterTheEnd: a server that has said all, and keeps the line open, is not waited for.
func TestNothingAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		got := answerOf(t, timed(t, time.Second, began, says("0", "x"), ended("end_turn")), hi)
		if took := time.Since(begin); got.Text != "x" || took != 3*time.Second {
			t.Errorf("answer is %+v after %v", got, took)
		}
	})
}
