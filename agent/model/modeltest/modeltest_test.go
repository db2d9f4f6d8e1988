package modeltest

import (
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

// echo is the least that a model can be.
type echo struct{}

func (echo) Answer(ctx context.Context, req model.Request, said func(string)) (model.Answer, error) {
	if ctx.Err() != nil {
		return model.Answer{}, context.Cause(ctx)
	}
	text := req.Messages[len(req.Messages)-1].Text
	if said != nil {
		said(text)
	}
	return model.Answer{Text: text, Finish: model.FinishStop}, nil
}

func TestRunPure(t *testing.T) { RunPure(t, echo{}) }

// post sends a request and returns the status and as much of the body as came.
func post(t *testing.T, ctx context.Context, s *Server, path, body string) (int, string, error) {
	t.Helper()
	return postTo(t, ctx, s.Client(), s.URL()+path, body)
}

func postTo(t *testing.T, ctx context.Context, client *http.Client, url, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(got), err
}

const (
	chat      = "/chat/completions"
	wantWhole = `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"now"}}]}`
	wantEvent = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`
)

func TestServer(t *testing.T) {
	s := NewServer(t, func(n int, req ChatRequest) Reply {
		if req.Last().Content != "hi" || n == 1 && !req.Offers("now") || req.Offers("then") {
			t.Errorf("request %d is %+v", n, req)
		}
		return Reply{
			Text: "Grüße", Reasoning: "hm", Calls: []model.Call{{ID: "c1", Name: "now", Arguments: `{"a":1}`}},
			Usage: model.Usage{In: 3, Out: 2, Known: true}, Header: http.Header{"X-Test": {"yes"}},
		}
	})
	status, whole, err := post(t, t.Context(), s, chat, wantWhole)
	if err != nil || status != 200 || !strings.Contains(whole, `"content":"Grüße"`) || !strings.Contains(whole, `"prompt_tokens":3`) ||
		!strings.Contains(whole, `"finish_reason":"tool_calls"`) || !strings.Contains(whole, `"reasoning_content":"hm"`) {
		t.Errorf("whole: %d %s, %v", status, whole, err)
	}
	status, stream, err := post(t, t.Context(), s, chat, wantEvent)
	if err != nil || status != 200 || strings.Count(stream, "data: ") != 10 || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
		t.Errorf("streamed: %d %s, %v", status, stream, err)
	}
	got := s.Requests()
	if len(got) != 2 || string(got[0].Body) != wantWhole || string(got[1].Body) != wantEvent {
		t.Errorf("requests are %+v", got)
	}
	for path, body := range map[string]string{"/models": wantWhole, chat: "not json"} {
		if status, _, err := post(t, t.Context(), s, path, body); err != nil || status < 400 {
			t.Errorf("%s %s: %d, %v", path, body, status, err)
		}
	}
}

func TestServerRaw(t *testing.T) {
	s := NewServer(t, func(int, ChatRequest) Reply { return Reply{Status: 503, Body: "down"} })
	if status, body, err := post(t, t.Context(), s, chat, wantWhole); status != 503 || body != "down" || err != nil {
		t.Errorf("got %d %q, %v", status, body, err)
	}
}

func TestServerBreaksOff(t *testing.T) {
	s := NewServer(t, func(int, ChatRequest) Reply { return Reply{Text: "hello", BreakOff: true} })
	for _, body := range []string{wantWhole, wantEvent} {
		_, got, err := post(t, t.Context(), s, chat, body)
		if err == nil || got == "" || strings.Contains(got, "DONE") || strings.HasSuffix(got, "}") {
			t.Errorf("got %q, %v; want a broken line", got, err)
		}
	}
}

func TestServerHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := NewServer(t, func(int, ChatRequest) Reply {
		cancel()
		return Reply{Hang: true}
	})
	if _, _, err := post(t, ctx, s, chat, wantWhole); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
