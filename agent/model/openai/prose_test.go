package openai

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// feedAll gives pieces to a new prose and returns the text and all that was told.
func feedAll(pieces []string) (p *prose, told string) {
	p = newProse(false)
	var out strings.Builder
	for _, piece := range pieces {
		out.WriteString(p.feed(piece, false))
	}
	out.WriteString(p.feed("", true))
	out.WriteString(p.untold(p.whole()))
	return p, out.String()
}

func TestThinking(t *testing.T) {
	rows := append(readWires(t).Thinking,
		[2]string{"a <think>x</think> b <thinking>y</thinking>c", "a  b c"},
		[2]string{"It's a ` mark. <think>x</think>ok", "It's a ` mark. ok"},
		[2]string{"a ` b\n<think>x</think> ` c", "a ` b\n ` c"},
		[2]string{"``a ` <think>`` b", "``a ` <think>`` b"},
		[2]string{"~~~\n</think>\n~~~\nx", "~~~\n</think>\n~~~\nx"},
		[2]string{"```\na\n```\n<think>x</think>b", "```\na\n```\nb"},
		[2]string{"```go\n<think>\n``` not the end\n</think>", "```go\n<think>\n``` not the end\n</think>"},
		[2]string{"<think>a</think>```\n<think>\n```", "```\n<think>\n```"},
		[2]string{"```a``` <think>x</think>b", "```a``` b"},
		[2]string{"1 < 2 <thin>", "1 < 2 <thin>"},
		[2]string{"<think>`</think>`a", "`a"},
		[2]string{"<", "<"}, [2]string{"<thi", "<thi"}, [2]string{"`", "`"}, [2]string{"``", "``"}, [2]string{" \n", ""},
	)
	for _, row := range rows {
		p, told := feedAll([]string{row[0]})
		if p.whole() != row[1] || told != row[1] {
			t.Errorf("%q: text %q, told %q, want %q", row[0], p.whole(), told, row[1])
		}
		p, told = feedAll(strings.Split(row[0], ""))
		if p.whole() != row[1] {
			t.Errorf("%q, streamed: text %q, want %q", row[0], p.whole(), row[1])
		}
		if bare := strings.HasPrefix(row[0], "plan"); !bare && told != row[1] {
			t.Errorf("%q, streamed: told %q, want %q", row[0], told, row[1])
		}
	}
}

func TestPartialTagIsNeverTold(t *testing.T) {
	p := newProse(false)
	var told []string
	for _, piece := range []string{"<thi", "nk>a</th", "ink>Hi"} {
		if s := p.feed(piece, false); s != "" {
			told = append(told, s)
		}
	}
	if !reflect.DeepEqual(told, []string{"Hi"}) || p.thought.String() != "a" {
		t.Errorf("told %q, thought %q", told, p.thought.String())
	}
}

// TestProseAnySplit: how a text is cut makes no difference, and what is told is the text.
func TestProseAnySplit(t *testing.T) {
	parts := []string{"<think>", "</think>", "<THINKING>", "</thinking>", "`", "``", "```", "~~~", "\n", " ", "a", "é", "<", "</", "<tool_call>", "<function=x>", "word "}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 30).Draw(t, "parts"), "")
		var pieces []string
		for rest := s; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		whole, told := feedAll([]string{s})
		split, toldSplit := feedAll(pieces)
		if whole.whole() != split.whole() || whole.thought.String() != split.thought.String() {
			t.Fatalf("%q: text %q, thought %q; split %q: text %q, thought %q", s, whole.whole(), whole.thought.String(), pieces, split.whole(), split.thought.String())
		}
		for _, got := range []string{told, toldSplit} {
			// A closer without an opener makes thought of what was told already; nothing else takes words back.
			takesBack := strings.Contains(strings.ToLower(s), "</think")
			if got != whole.whole() && !(takesBack && strings.HasSuffix(got, whole.whole())) {
				t.Fatalf("%q: told %q, text %q", pieces, got, whole.whole())
			}
		}
	})
}

// TestLongSpanIsNotHeld: text is not held back for ever by a mark whose pair does not come.
func TestLongSpanIsNotHeld(t *testing.T) {
	p := newProse(false)
	n := 0
	for range 3 * maxHeld {
		n += len(p.feed("`", false)) + len(p.feed("x", false))
	}
	if n < maxHeld {
		t.Errorf("told %d bytes of %d", n, 6*maxHeld)
	}
}
