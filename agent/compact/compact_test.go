package compact_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/agent/compact"
	"nudge/agent/model"
)

// TestAnyConversation: whatever the shape, what is sent stays valid, keeps what must be kept, and is what the change
// says, also after that was journaled.
func TestAnyConversation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := anInput(rt)
		before := journaled(rt, in.Messages)
		out, changed := compact.Compact(in)
		if !reflect.DeepEqual(journaled(rt, in.Messages), before) {
			rt.Fatal("the input was changed")
		}
		checkOutput(rt, in, out, changed)
		twin, _ := compact.Compact(in)
		if !reflect.DeepEqual(twin, out) {
			rt.Fatal("the same input gave another output")
		}
		var change compact.Change
		if err := json.Unmarshal([]byte(journaled(rt, out.Change)), &change); err != nil {
			rt.Fatal(err)
		}
		if got := compact.Apply(in.Messages, change); journaled(rt, got) != journaled(rt, out.Messages) {
			rt.Fatalf("the journaled change gives %s", journaled(rt, got))
		}
		if got := compact.ApplyMarks(in.Marks, len(in.Messages), change); !reflect.DeepEqual(got, out.Marks) {
			rt.Fatalf("the journaled change gives marks %+v, not %+v", got, out.Marks)
		}
		in.Messages, in.Marks, in.Used = out.Messages, out.Marks, out.Tokens
		if again, changed := compact.Compact(in); changed && out.Tokens <= room(in)*80/100 {
			rt.Fatalf("compacted again at once: %+v", again.Counts)
		}
	})
}

func journaled(t interface{ Fatal(...any) }, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func room(in compact.Input) int {
	window := in.Window
	if window == 0 {
		window = compact.AssumedWindow
	}
	return max(window-max(in.Reserve, 0), window/2)
}

func checkOutput(t *rapid.T, in compact.Input, out compact.Output, changed bool) {
	if why := fault(out.Messages); why != "" {
		t.Fatalf("%s: %s", why, journaled(t, out.Messages))
	}
	if len(out.Marks) != len(out.Messages) {
		t.Fatalf("%d marks of %d messages", len(out.Marks), len(out.Messages))
	}
	before := out.Counts.Before
	switch {
	case !changed && before > room(in)*80/100 && (out.Stuck != in.Stuck+1 || out.Note == ""):
		t.Fatalf("nothing was done about %d tokens and nothing said: %+v", before, out.Counts)
	case !changed && before <= room(in)*80/100 && out.Stuck != 0:
		t.Fatal("stuck without need")
	case changed && (out.Tokens >= before || before <= room(in)*80/100 || out.Level == compact.Untouched):
		t.Fatalf("changed from %d to %d of %d: level %d", before, out.Tokens, room(in), out.Level)
	case !changed && !reflect.DeepEqual(out.Messages, in.Messages):
		t.Fatal("changed and denied it")
	}
	if out.Fits != (out.Tokens <= room(in)) {
		t.Fatalf("fits is %t with %d of %d", out.Fits, out.Tokens, room(in))
	}
	if !reflect.DeepEqual(out.Messages, compact.Apply(in.Messages, out.Change)) {
		t.Fatal("the change does not give the messages")
	}
	checkKept(t, in, out)
}

// checkKept: what is pinned, the last request and the last words are there, whole unless they would not fit.
func checkKept(t *rapid.T, in compact.Input, out compact.Output) {
	kept := 0
	for i, m := range in.Messages {
		pinned := i < len(in.Marks) && in.Marks[i].Pinned
		if m.Role == model.User && lastUser(in.Messages[i+1:]) || pinned {
			kept += compact.MessageTokens(estimate, m)
			if pinned && m.CallID != "" || has(out.Messages, m.Text) {
				continue
			}
			if out.Counts.Shortened == 0 {
				t.Fatalf("message %d is gone: %q", i, m.Text)
			}
		}
	}
	texts := 0
	for _, m := range out.Messages {
		texts += len(m.Text)
	}
	if !out.Fits && out.Counts.Shortened == 0 && texts > 0 && in.Used <= kept && out.Stuck == 0 {
		t.Fatal("too large without a word")
	}
}

func lastUser(rest []model.Message) bool {
	for _, m := range rest {
		if m.Role == model.User {
			return false
		}
	}
	return true
}

// TestOneRequestWithoutEnd: one request, then steps without end; at every number of steps that is kept, calls and results stay
// together, the request stays, and there is less whenever there can be.
func TestOneRequestWithoutEnd(t *testing.T) {
	for keep := range 62 {
		for _, repeatable := range []bool{true, false} {
			var h history
			h.user("sort out the invoices of 2026-08 in in/box")
			for range 20 {
				h.step("look", repeatable, text("one result", 60), text("another", 60))
			}
			if len(h.messages) != 61 {
				t.Fatalf("%d messages", len(h.messages))
			}
			in := h.input(3000)
			in.Keep = keep
			out, changed := compact.Compact(in)
			if !changed || out.Tokens > 2400 || !out.Fits {
				t.Errorf("keep %d: changed %t, %d tokens: %s", keep, changed, out.Tokens, out.Note)
			}
			if why := fault(out.Messages); why != "" {
				t.Errorf("keep %d: %s", keep, why)
			}
			if out.Messages[0].Text != h.messages[0].Text {
				t.Errorf("keep %d: the request is %q", keep, out.Messages[0].Text)
			}
		}
	}
}

// TestImported: a result that an imported conversation holds as the user's stays with its call.
func TestImported(t *testing.T) {
	var h history
	h.user("go")
	for range 12 {
		h.step("send", false, text("sent", 100))
		h.messages[len(h.messages)-1].Role = model.User
		h.messages[len(h.messages)-1].Text += "and some words of the user"
	}
	out, changed := compact.Compact(h.input(1200))
	if why := fault(out.Messages); !changed || why != "" {
		t.Errorf("changed %t: %s", changed, why)
	}
}

func TestOrder(t *testing.T) {
	var h history
	h.user("request one")
	h.marks[0].Pinned = true
	h.step("read_file", true, "old and repeatable "+text("a", 900))
	h.step("send", false, "old and final "+text("b", 100))
	h.says("done one")
	h.user("request two")
	h.step("read_file", true, "two "+text("c", 300))
	h.says("done two")
	h.user("request three")
	h.step("read_file", true, "three "+text("d", 300))
	last := journaled(t, h.messages[6:])

	for _, test := range []struct {
		window int
		level  compact.Level
		check  func(out compact.Output) bool
	}{
		{5000, compact.Untouched, func(out compact.Output) bool { return len(out.Messages) == len(h.messages) }},
		{2100, compact.Noted, func(out compact.Output) bool {
			line := `[result of read_file {"path":"file-1.0.txt"}: 3,621 bytes left out; read it again if needed]`
			return has(out.Messages, line) && has(out.Messages, h.messages[4].Text) && strings.HasSuffix(journaled(t, out.Messages), last[1:])
		}},
		{1600, compact.Dropped, func(out compact.Output) bool {
			note := "[5 earlier messages of this conversation are left out here, 4,104 bytes; calls made in them: read_file × 1, send × 1. What was done in them is done; ask or look again for what you need of them.]"
			return has(out.Messages, note) && has(out.Messages, "request one") && strings.HasSuffix(journaled(t, out.Messages), last[1:])
		}},
	} {
		out, _ := compact.Compact(h.input(test.window))
		if out.Level != test.level || !test.check(out) {
			t.Errorf("window %d: level %d, %s", test.window, out.Level, journaled(t, out.Messages))
		}
	}
}

// TestEffectsStay: results of what cannot be had again never become a line, nor do short ones.
func TestEffectsStay(t *testing.T) {
	var h history
	h.user("go")
	h.step("send", false, "receipt 4711 "+text("x", 300))
	h.step("read_file", true, "short")
	h.step("read_file", true, text("long", 900))
	h.says("done")
	for range 2 {
		h.user("more")
		h.says("yes")
	}
	out, changed := compact.Compact(h.input(1500))
	if !changed || !has(out.Messages, h.messages[2].Text) || !has(out.Messages, "short") || out.Counts.Results != 1 {
		t.Errorf("%t %s", changed, journaled(t, out))
	}
}

// TestWordsGoLast: in one long exchange steps go before the user's words, old words before the request and the last.
func TestWordsGoLast(t *testing.T) {
	for _, test := range []struct {
		window int
		old    bool // is there still
	}{{3000, true}, {1000, false}} {
		var h history
		h.user("before")
		h.says("yes")
		h.user("the request itself")
		for i := range 20 {
			h.step("send", false, text("sent", 60))
			h.add(model.Message{Role: model.User, Text: fmt.Sprintf("steer %d %s", i, text("and mind this", 45))}, compact.Mark{})
		}
		in := h.input(test.window)
		in.Used = max(3000, compact.Tokens(estimate, "", nil, h.messages))
		out, changed := compact.Compact(in)
		if !changed || !has(out.Messages, "the request itself") || !has(out.Messages, h.messages[len(h.messages)-1].Text) {
			t.Errorf("window %d: %s", test.window, journaled(t, out.Messages))
		}
		if old := strings.Contains(journaled(t, out.Messages), "steer 0 "); old != test.old {
			t.Errorf("window %d: the old words are there: %t; %s", test.window, old, out.Note)
		}
	}
}

// TestOneNote: however often messages go, one note tells of all of them.
func TestOneNote(t *testing.T) {
	var h history
	h.user("the first request")
	h.marks[0].Pinned = true
	gone := 0
	for i := range 100 {
		h.user(fmt.Sprintf("request %d %s", i, text("words", 30)))
		h.step("send", false, text("sent", 60))
		h.says("done")
		out, _ := compact.Compact(h.input(2000))
		gone += out.Counts.Messages
		h.take(out)
	}
	notes := 0
	for i, mark := range h.marks {
		if mark.Left == nil {
			continue
		}
		notes++
		if i != 1 || mark.Left.Messages != gone || mark.Left.Calls["send"] != gone/4 {
			t.Errorf("note at %d tells of %+v, gone are %d", i, mark.Left, gone)
		}
	}
	if notes != 1 || gone < 300 {
		t.Errorf("%d notes, %d gone", notes, gone)
	}
}

// TestTooLong: one message that is larger than the window loses its middle, and only it.
func TestTooLong(t *testing.T) {
	for _, test := range []struct {
		name string
		big  func(h *history)
	}{
		{"result", func(h *history) { h.step("fetch_page", false, text("page", 20000)) }},
		{"arguments", func(h *history) {
			h.step("write_file", false, "ok")
			h.messages[len(h.messages)-2].Calls[0].Arguments = `{"content":"` + text("line", 20000) + `","path":"a.txt"}`
		}},
		{"request", func(h *history) { h.user(text("log", 20000)) }},
		{"thought", func(h *history) {
			h.step("look", true, "ok")
			h.messages[len(h.messages)-2].Reasoning = text("hm", 20000)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var h history
			h.user("please read the log in var/log/4711")
			h.marks[0].Pinned = true
			test.big(&h)
			in := h.input(8192)
			in.Reserve = 1024
			out, changed := compact.Compact(in)
			if !changed || !out.Fits || out.Counts.Shortened != 1 || fault(out.Messages) != "" {
				t.Fatalf("changed %t: %s", changed, out.Note)
			}
			if out.Tokens < 4000 && test.name != "thought" && test.name != "arguments" {
				t.Errorf("only %d tokens are left", out.Tokens)
			}
			if !has(out.Messages, h.messages[0].Text) {
				t.Error("the request is not whole")
			}
			for _, m := range out.Messages {
				for _, c := range m.Calls {
					var arguments map[string]string
					if err := json.Unmarshal([]byte(c.Arguments), &arguments); err != nil || !strings.HasPrefix(arguments["path"], "a.txt") && test.name == "arguments" {
						t.Errorf("arguments %.80q: %v", c.Arguments, err)
					}
				}
			}
		})
	}
}

// TestShortenedAgain: a text that lost its middle twice says how much is gone in all.
func TestShortenedAgain(t *testing.T) {
	var h history
	h.user("go")
	h.step("fetch_page", false, text("page", 20000))
	whole := len(h.messages[2].Text)
	for _, window := range []int{8192, 2000} {
		out, _ := compact.Compact(h.input(window))
		h.take(out)
		left, cut := len(h.messages[2].Text), h.marks[2].Cut
		if strings.Count(h.messages[2].Text, "left out here") != 1 || left+cut < whole || left+cut > whole+200 {
			t.Errorf("window %d: %d bytes left, %d cut of %d", window, left, cut, whole)
		}
		_, said, _ := strings.Cut(h.messages[2].Text, "[… ")
		said, _, _ = strings.Cut(said, " bytes")
		if n, err := strconv.Atoi(strings.ReplaceAll(said, ",", "")); err != nil || n < cut || n > cut+100 {
			t.Errorf("window %d: the text says %q, %d are cut: %v", window, said, cut, err)
		}
	}
}

// TestStuck: where nothing can be left out that is said, and the second time that it is the last.
func TestStuck(t *testing.T) {
	var h history
	h.user("hi")
	in := h.input(4000)
	in.Used = 5000
	out, changed := compact.Compact(in)
	if changed || out.Stuck != 1 || out.Fits || strings.Contains(out.Note, "not tried again") {
		t.Fatalf("%t %+v", changed, out)
	}
	in.Stuck = out.Stuck
	out, changed = compact.Compact(in)
	if changed || out.Stuck != compact.MaxStuck || !strings.Contains(out.Note, "5,000 tokens of the 4,000 that fit") || !strings.Contains(out.Note, "not tried again") {
		t.Fatalf("%t %+v", changed, out)
	}
	for range 40 {
		h.step("send", false, text("sent", 90))
	}
	in = h.input(4000)
	in.Stuck = 1
	if out, changed = compact.Compact(in); !changed || out.Stuck != 0 {
		t.Errorf("%t %d: %s", changed, out.Stuck, out.Note)
	}
}

// TestApplyAnything: a change out of a damaged journal is applied as far as it makes sense.
func TestApplyAnything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := aHistory(rt)
		index := rapid.IntRange(-3, 100)
		change := compact.Change{Note: rapid.SampledFrom([]string{"", "note"}).Draw(rt, "note")}
		for range rapid.IntRange(0, 4).Draw(rt, "parts") {
			change.Dropped = append(change.Dropped, compact.Span{From: index.Draw(rt, "from"), To: index.Draw(rt, "to")})
			change.Replaced = append(change.Replaced, compact.Replaced{At: index.Draw(rt, "at")})
		}
		messages := compact.Apply(h.messages, change)
		if marks := compact.ApplyMarks(h.marks, len(h.messages), change); len(marks) != len(messages) {
			rt.Fatalf("%d messages, %d marks", len(messages), len(marks))
		}
	})
}

func FuzzCompact(f *testing.F) {
	f.Add("go", "result", `{"a":"b"}`, 700, 3)
	f.Add("\xff\xfe", strings.Repeat("\x80", 5000), "{", 100, 40)
	f.Add("", strings.Repeat("👩‍💻", 900), `{"a":["`+strings.Repeat("x", 9000)+`"]}`, 2000, 9)
	f.Fuzz(func(t *testing.T, request, result, arguments string, window, steps int) {
		var h history
		h.user("> " + request)
		for i := range min(max(steps, 0), 50) {
			h.step(arguments, i%2 == 0, result, request)
			h.messages[len(h.messages)-3].Calls[0].Arguments = arguments
		}
		in := h.input(min(window, 1<<20))
		out, changed := compact.Compact(in)
		if why := fault(out.Messages); why != "" || changed && out.Tokens >= out.Counts.Before {
			t.Fatalf("%s, %d of %d", why, out.Tokens, out.Counts.Before)
		}
		if _, err := json.Marshal(out.Change); err != nil {
			t.Fatal(err)
		}
	})
}
