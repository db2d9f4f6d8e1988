package agent

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"nudge/memory"
)

func TestBound(t *testing.T) {
	decoded := func(text string) string {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	const bad = "\uFFFD"
	flag := "🏷"
	for _, c := range []struct {
		name, text string
		limit      int
		want       string
		cut        bool
	}{
		{"nothing", "", 10, "", false},
		{"a text", "abc\n", 10, "abc\n", false},
		{"NUL", decoded("YQBiAGM="), 100, "a" + bad + "b" + bad + "c", false},
		{"bad bytes", decoded("/f7/gMMoZW5k"), 100, strings.Repeat(bad, 5) + "(end", false},
		{"half an emoji", decoded("8J+PtyB0YWcg8J+P"), 100, flag + " tag " + strings.Repeat(bad, 3), false},
		{"colours", decoded("G1szMW1yZWQbWzBtDWhpZGRlbg=="), 100, "\x1b[31mred\x1b[0m\rhidden", false},
		{"a byte order mark", decoded("77u/Ym9t"), 100, "\ufeffbom", false},
		{"binary", strings.Repeat("\x00\x01\x02\x03", 10) + "text", 100, "binary, 44 bytes", true},
		{"exactly the limit", strings.Repeat("x", 100), 100, strings.Repeat("x", 100), false},
		{"one over", strings.Repeat("x", 101), 100, strings.Repeat("x", 35) + "\n[… 31 bytes left out …]\n" + strings.Repeat("x", 35), true},
		{"no room", strings.Repeat("x", 101), 5, "\n[… 101 bytes left out …]\n", true},
		{"no limit at all", "x", -1, "\n[… 1 bytes left out …]\n", true},
		{"accents stay", strings.Repeat("a", 34) + "e\u0301" + strings.Repeat("b", 100), 100, strings.Repeat("a", 34) + "\n[… 68 bytes left out …]\n" + strings.Repeat("b", 35), true},
		{"skin tones stay", strings.Repeat("a", 30) + "👍🏽" + strings.Repeat("b", 100), 100, strings.Repeat("a", 30) + "\n[… 73 bytes left out …]\n" + strings.Repeat("b", 35), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, cut := Bound(c.text, c.limit); got != c.want || cut != c.cut {
				t.Errorf("Bound = %q, %v; want %q, %v", got, cut, c.want, c.cut)
			}
		})
	}
}

func TestBoundOfMuch(t *testing.T) {
	text := strings.Repeat("x🏷", 1_000_000)
	got, cut := Bound(text, 30_000)
	if !cut || len(got) > 30_000 || len(got) < 29_900 || !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) {
		t.Errorf("5 MB became %d bytes, cut %v", len(got), cut)
	}
	noise := make([]byte, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	if got, _ := Bound(string(noise), 1000); got != "binary, 1048576 bytes" {
		t.Errorf("noise became %.60q", got)
	}
}

// SavedAtMost changes how many bytes of results are kept for one person, for a test.
func SavedAtMost(t *testing.T, bytes int) {
	before := mostSaved
	mostSaved = bytes
	t.Cleanup(func() { mostSaved = before })
}

// SaveResult is for the tests that read what was saved with the tool that does.
func SaveResult(pager string, of PersonID, text string) (bounded string, save func(tx memory.Tx, session string) error) {
	return saveResult(pager, of, text, false)
}

func TestHeadSplitsNothing(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"abc", 0, ""}, {"abc", -1, ""},
		{"aé", 2, "a"}, {"ae\u0301", 3, "a"}, {"a👍🏽", 6, "a"}, {"a👩‍👩‍👧b", 12, "a"}, {"a👩‍👩‍👧b", 19, "a👩‍👩‍👧"},
		{"a" + strings.Repeat("\u0301", 60), 62, "a" + strings.Repeat("\u0301", 30)},
		{"a" + strings.Repeat("\x80", 100), 50, "a" + strings.Repeat("\x80", 49)}, // no UTF-8
	} {
		if got := Head(c.text, c.limit); got != c.want {
			t.Errorf("Head(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

// The way to what was left out is told only where the model can go it, and what pages is never saved again.
func TestWhatIsSaved(t *testing.T) {
	reads := Tool{Spec: Spec{Name: "pager", Pages: true, Effect: Read, Schema: []byte(`{}`)}, Run: func(context.Context, Invocation) (Result, error) { return Result{}, nil }}
	withPerson := reads
	withPerson.Place = WithPerson
	long := strings.Repeat("x", maxResult+1)
	for _, c := range []struct {
		name, tool, text string
		config           Config
		turn             turn
		saved            bool
	}{
		{"a long one", "other", long, Config{Tools: []Tool{reads}}, turn{}, true},
		{"a long one of a wake", "other", long, Config{Tools: []Tool{reads}}, turn{wake: &Wake{}}, true},
		{"a short one", "other", long[1:], Config{Tools: []Tool{reads}}, turn{}, false},
		{"a binary", "other", strings.Repeat("\x00", maxResult+1), Config{Tools: []Tool{reads}}, turn{}, false},
		{"a page", "pager", long, Config{Tools: []Tool{reads}}, turn{}, false},
		{"no tool", "other", long, Config{}, turn{}, false},
		{"denied", "other", long, Config{Tools: []Tool{reads}, Deny: []string{"pager"}}, turn{}, false},
		{"not in a wake", "other", long, Config{Tools: []Tool{withPerson}}, turn{wake: &Wake{}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			box, err := newToolbox(c.config)
			if err != nil {
				t.Fatal(err)
			}
			kept, save := box.bounded(&c.turn, c.tool, c.text, false)
			if way := strings.Contains(kept, SavedPrefix); (save != nil) != c.saved || way != c.saved || len(kept) > maxResult {
				t.Errorf("%d bytes, saved %v, the way is told %v; want %v", len(kept), save != nil, way, c.saved)
			}
			if plain, _ := Bound(c.text, maxResult); !c.saved && kept != plain {
				t.Errorf("what is not saved became %.60q", kept)
			}
		})
	}
}

func TestBoundAlwaysHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.OneOf(
			rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 5), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{"👩‍👩‍👧", "e\u0301", "👍🏽", strings.Repeat("\u0301", 60), "\x00"}),
		), 0, 40)
		text := strings.Join(pieces.Draw(t, "text"), "")
		limit := rapid.IntRange(0, 400).Draw(t, "limit")
		got, cut := Bound(text, limit)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Fatalf("%q is not clean", got)
		}
		if len(got) > max(limit, 64) {
			t.Fatalf("%d bytes for a limit of %d", len(got), limit)
		}
		if !cut && utf8.ValidString(text) && !strings.ContainsRune(text, 0) && got != text {
			t.Fatalf("%q became %q", text, got)
		}
		// A cut can leave so little around some control characters that the rest looks binary.
		if again, cutAgain := Bound(got, max(limit, 64)); !Binary(got) && (again != got || cutAgain) {
			t.Fatalf("bounded again, %q became %q", got, again)
		}
		checkMarker(t, text, got, cut)
	})
}

// checkMarker counts that what is left and what is said to be left out make up the whole.
func checkMarker(t *rapid.T, text, got string, cut bool) {
	if !cut || strings.HasPrefix(got, "binary, ") {
		return
	}
	before, after, found := strings.Cut(got, "\n[… ")
	var left int
	if _, err := fmt.Sscanf(after, "%d bytes left out …]\n", &left); !found || err != nil {
		t.Fatalf("%q has no marker", got)
	}
	_, tail, _ := strings.Cut(after, " bytes left out …]\n")
	whole, _ := Bound(text, len(text)*3)
	if len(before)+left+len(tail) != len(whole) || !strings.HasPrefix(whole, before) || !strings.HasSuffix(whole, tail) {
		t.Fatalf("%q is not head and tail of %q", got, whole)
	}
}
