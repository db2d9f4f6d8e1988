package compact_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent/compact"
	"nudge/agent/model"
)

func TestO200k(t *testing.T) {
	count := compact.NewCounter(compact.O200k)
	for text, want := range map[string]int{
		"":                        0,
		"hello world":             2,
		"Привет, мир!":            5,
		strings.Repeat("a", 1024): 128,
	} {
		if got := count.Count(text); got != want {
			t.Errorf("%.20q has %d tokens, not %d", text, got, want)
		}
	}
}

// TestEstimate: without the vocabulary counts are off by less than half either way, whatever is written.
func TestEstimate(t *testing.T) {
	exact := compact.NewCounter(compact.O200k)
	other := compact.NewCounter("anything")
	for name, text := range map[string]string{
		"English":  "The delivery of the second batch was late again, so I asked them to send a corrected invoice before Friday. ",
		"Russian":  "Вторая партия снова пришла с опозданием, поэтому я попросил прислать исправленный счёт до пятницы. ",
		"Greek":    "Η δεύτερη παρτίδα καθυστέρησε πάλι, γι' αυτό ζήτησα διορθωμένο τιμολόγιο. ",
		"Chinese":  "第二批货物又迟到了，所以我让他们在星期五之前寄来更正后的发票。",
		"Japanese": "二回目の納品がまた遅れたので、金曜日までに訂正した請求書を送るように頼みました。",
		"Go":       "func (d *draft) total() int { return d.whole(d.sum + d.note) }\n",
		"JSON":     `{"path":"in/box/invoice-4711.txt","lines":[1,20,300],"whole":true}`,
	} {
		text = strings.Repeat(text, 20)
		ratio := float64(other.Count(text)) / float64(exact.Count(text))
		t.Logf("%-8s %.2f", name, ratio)
		if ratio < 0.5 || ratio > 1.5 {
			t.Errorf("%s: the estimate is %.2f of the count", name, ratio)
		}
	}
}

// counting is a counter that notes how often it is asked.
type counting struct {
	mu    sync.Mutex
	asked int
}

func (c *counting) Count(text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return len(text)
}

func TestTokens(t *testing.T) {
	tools := []model.Tool{{Name: "look", Description: "Look.", Schema: json.RawMessage(`{}`)}}
	messages := []model.Message{
		{Role: model.User, Text: "12345678"},
		{Role: model.Assistant, Text: "1234", Reasoning: "12", Calls: []model.Call{{ID: "c", Name: "look", Arguments: `{}`}}},
		{Role: model.ToolRole, CallID: "c", Text: "123"},
	}
	var count counting
	got := compact.Tokens(&count, "system", tools, messages)
	parts := compact.Tokens(&count, "system", tools, nil)
	for _, m := range messages {
		parts += compact.MessageTokens(&count, m)
	}
	if texts := 6 + 4 + 5 + 2 + 8 + 4 + 2 + 4 + 2 + 3; got != parts || got < texts+4*4 || got > texts+60 {
		t.Errorf("%d tokens, %d by parts, for texts of %d", got, parts, texts)
	}
}

func TestCountIsRemembered(t *testing.T) {
	count := compact.NewCounter(compact.Estimate)
	var done sync.WaitGroup
	for worker := range 4 {
		done.Go(func() {
			for i := range 20000 {
				text := fmt.Sprint("text ", worker, " ", i)
				if got, want := count.Count(text), (len(text)+3)/4; got != want || count.Count(text) != want {
					t.Errorf("%q: %d, not %d", text, got, want)
				}
			}
		})
	}
	done.Wait()
}

// TestCalibrated: the ratio stays in its bounds, goes towards what it is told, and after a report of more than was
// counted is at least half way there.
func TestCalibrated(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := compact.NewCalibrated(estimate)
		req := model.Request{System: text("words", 1000)}
		counted := compact.Tokens(estimate, req.System, nil, nil)
		for _, reported := range rapid.SliceOf(rapid.IntRange(-10, 20*counted)).Draw(rt, "reported") {
			was := c.Ratio()
			c.Learn(req, reported)
			is := c.Ratio()
			told := min(max(float64(reported)/float64(counted), 0.5), 4)
			switch {
			case reported <= 0 && is != was:
				rt.Fatalf("nothing was reported and the ratio went from %g to %g", was, is)
			case reported <= 0:
			case is < 0.5 || is > 4 || (is-was)*(told-was) < 0 || math.Abs(is-told) > math.Abs(was-told):
				rt.Fatalf("told %g the ratio went from %g to %g", told, was, is)
			case told > was && is-was < (told-was)/2.001:
				rt.Fatalf("told %g the ratio only went from %g to %g", told, was, is)
			}
			if got := c.Count("12345678"); got != int(math.Ceil(2*is)) {
				rt.Fatalf("counted %d with %g", got, is)
			}
		}
	})
	c := compact.NewCalibrated(estimate)
	for range 100 {
		c.Learn(model.Request{System: text("words", 1000)}, 700)
	}
	c.Learn(model.Request{System: "hi"}, 4000)
	if ratio := c.Ratio(); ratio < 0.65 || ratio > 0.75 {
		t.Errorf("after many reports of 0.7 the ratio is %g", ratio)
	}
}

func BenchmarkTokens(b *testing.B) {
	for _, kind := range []string{compact.Estimate, compact.O200k} {
		b.Run(kind, func(b *testing.B) {
			count := compact.NewCounter(kind)
			var h history
			h.user("go")
			for i := range 100 {
				h.step("read_file", true, fmt.Sprint(i, text("some result", 250)))
			}
			compact.Tokens(count, "", nil, h.messages)
			for b.Loop() {
				compact.Tokens(count, "", nil, h.messages)
			}
		})
	}
}
