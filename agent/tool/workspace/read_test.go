package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"nudge/agent"
	"nudge/agent/secret"
)

const (
	room  = "slack:T1:C1:1"
	saved = "abcdefghijklmnop"
)

// newSavingDesk is a desk where one session has one saved result.
func newSavingDesk(t *testing.T, text string) desk {
	d := newDesk(t)
	d.use(Config{Dirs: d.dirs, Saved: func(_ context.Context, session, id string) (string, bool, error) {
		if session != room || id != saved {
			return "", false, nil
		}
		return text, true, nil
	}})
	return d
}

func (d desk) use(c Config) {
	for _, tool := range Tools(c) {
		d.tools[tool.Name] = tool
	}
}

// readIn reads as a call of a session.
func (d desk) readIn(session string, arguments args) (string, error) {
	d.t.Helper()
	in := d.invocation("read_file", ann, arguments)
	in.Session = session
	result, err := d.tools["read_file"].Run(context.Background(), in)
	if err != nil && strings.Contains(err.Error(), "\n") {
		d.t.Errorf("the error has several lines: %q", err)
	}
	return result.Text, err
}

// However a file is paged through, no part of a key is told that only its beginning shows to be one.
func TestAKeyIsHiddenOnEveryPage(t *testing.T) {
	d := newDesk(t)
	redactor := secret.New()
	body := strings.Repeat("MIIEpAIBAAKCAQEA7Jx0hiddenhiddenhidden\n", 30)
	d.put("key.pem", "before\n-----BEGIN RSA PRIVATE KEY-----\n"+body+"-----END RSA PRIVATE KEY-----\nafter\n")
	for offset := 1; offset <= 33; offset++ {
		for _, limit := range []int{1, 2, 100} {
			text, err := d.readIn(room, args{"path": "key.pem", "offset": offset, "limit": limit})
			shown := redactor.Text(text)
			switch {
			case err != nil, strings.Contains(shown, "hidden"), offset == 1 && !strings.HasPrefix(shown, "before\n"):
				t.Fatalf("%d lines from %d on: %q, %v", limit, offset, shown, err)
			case limit == 100 && offset > 1 && !strings.HasPrefix(shown, secret.Mark+"\nafter\n"):
				t.Fatalf("all from %d on: %q", offset, shown)
			}
		}
	}
	token := "ghp_" + strings.Repeat("hidden1234", 4)
	for at := maxPage - len(token) - 2; at < maxPage+2; at++ {
		d.put("long.txt", strings.Repeat("x", at-1)+" "+token+" "+strings.Repeat("x", 100))
		for offset := 1; offset <= 2; offset++ {
			text, err := d.readIn(room, args{"path": "long.txt", "offset": offset})
			if err != nil || strings.Contains(redactor.Text(text), "hidden") {
				t.Fatalf("a token at %d, from %d on: %.200q, %v", at, offset, redactor.Text(text), err)
			}
		}
	}
	d.put("about.md", "-----BEGIN PRIVATE KEY----- begins one\n"+strings.Repeat("words\n", longestKey))
	if text, err := d.readIn(room, args{"path": "about.md", "offset": longestKey / 2}); err != nil || !strings.HasPrefix(text, "words\n") {
		t.Errorf("a text about keys: %.100q, %v", text, err)
	}
}

func TestASavedResultIsReadByLines(t *testing.T) {
	d := newSavingDesk(t, "1\r\n2\n3")
	for _, c := range []struct {
		arguments args
		want      string
	}{
		{args{}, "1\r\n2\n3"},
		{args{"limit": 1}, "1\r\n[lines 1 to 1; go on with offset 2; the result has 6 bytes]\n"},
		{args{"offset": 2}, "2\n3\n[lines 2 to 3, the last]\n"},
	} {
		c.arguments["path"] = "result:" + saved
		if got, err := d.readIn(room, c.arguments); got != c.want || err != nil {
			t.Errorf("%v gave %q, %v; want %q", c.arguments, got, err, c.want)
		}
	}
	if text, err := d.readIn(room, args{"path": "result:" + saved, "offset": 4}); err == nil || !strings.Contains(err.Error(), "has only 3 lines") {
		t.Errorf("after the end: %q, %v", text, err)
	}
}

func TestAResultThatIsNotThere(t *testing.T) {
	d := newSavingDesk(t, "secret")
	for _, c := range []struct{ session, path, want string }{
		{"slack:T1:C1:2", "result:" + saved, `this conversation has no saved result "abcdefghijklmnop", or no longer`},
		{"", "result:" + saved, "no saved result"},
		{room, "result:", "no saved result"},
		{room, "result:" + saved + "/..", "no saved result"},
		{room, "result:" + strings.Repeat("x\n", 3000), "no saved result"},
		{room, "./result:" + saved, "there is no file"},
		{room, "Result:" + saved, "there is no file"},
	} {
		if text, err := d.readIn(c.session, args{"path": c.path}); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 {
			t.Errorf("%.40q in %q gave %q, %v; want %q", c.path, c.session, text, err, c.want)
		}
	}
	d.put("result:"+saved, "a file")
	if got, err := d.readIn(room, args{"path": "./result:" + saved}); got != "a file" || err != nil {
		t.Errorf("the file of that name is %q, %v", got, err)
	}
	if got, err := d.readIn(room, args{"path": "result:" + saved}); got != "secret" || err != nil {
		t.Errorf("beside a file of that name the result is %q, %v", got, err)
	}
}

func TestResultsThatCannotBeRead(t *testing.T) {
	d := newDesk(t)
	d.use(Config{Dirs: d.dirs})
	if text, err := d.readIn(room, args{"path": "result:" + saved}); err == nil || !strings.Contains(err.Error(), "no results are saved here") {
		t.Errorf("where none are saved: %q, %v", text, err)
	}
	d.use(Config{Dirs: d.dirs, Saved: func(context.Context, string, string) (string, bool, error) {
		return "", false, errors.New("read /var/lib/nudge.db: bad page")
	}})
	if text, err := d.readIn(room, args{"path": "result:" + saved}); err == nil || strings.Contains(err.Error(), "/var") || !strings.Contains(err.Error(), "try again later") {
		t.Errorf("of a store that fails: %q, %v", text, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := d.tools["read_file"].Run(ctx, d.invocation("read_file", ann, args{"path": "result:" + saved})); !errors.Is(err, context.Canceled) {
		t.Errorf("after a stop: %v", err)
	}
	d.put("plain", "as ever")
	if got := d.must("read_file", args{"path": "plain"}); got != "as ever" {
		t.Errorf("a file is %q", got)
	}
}

// page reads with arguments that fit the schema.
func (d desk) page(t *rapid.T, in agent.Invocation, arguments args) string {
	var err error
	if in.Arguments, err = json.Marshal(arguments); err != nil {
		t.Fatal(err)
	}
	result, err := d.tools["read_file"].Run(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return result.Text
}

// unpaged takes what a page says itself from its end, and gives the offset of the next page, 0 after the last.
func unpaged(t *rapid.T, page string) (text string, next int) {
	start := strings.LastIndex(strings.TrimSuffix(page, "\n"), "\n") + 1
	text, note := page[:start], page[start:]
	if !strings.HasPrefix(note, "[lines ") {
		return page, 0
	}
	_, after, more := strings.Cut(note, "go on with offset ")
	if more {
		if _, err := fmt.Sscanf(after, "%d;", &next); err != nil {
			t.Fatalf("%q: %v", note, err)
		}
	}
	if strings.Contains(note, "the last of them cut") {
		text = strings.TrimSuffix(text, "\n")
	}
	return text, next
}

// TestPagesAreTheWhole pages through a text, as the pages say, as a file and as a result.
func TestPagesAreTheWhole(t *testing.T) {
	var text string
	d := newDesk(t)
	read := d.invocation("read_file", ann, args{"path": "file"})
	d.use(Config{Dirs: d.dirs, Saved: func(context.Context, string, string) (string, bool, error) { return text, true, nil }})
	rapid.Check(t, func(t *rapid.T) {
		wide := rapid.Custom(func(t *rapid.T) string {
			piece := rapid.SampledFrom([]string{"x", "é", "🏷", "👩‍👩‍👧", "👍🏽", "e\u0301", "\uFFFD"}).Draw(t, "piece")
			return strings.Repeat("a", rapid.IntRange(0, 9).Draw(t, "shift")) + strings.Repeat(piece, maxPage/len(piece)+rapid.IntRange(-9, 9).Draw(t, "times"))
		})
		parts := rapid.SliceOfN(rapid.OneOf(
			rapid.StringMatching(`[a-z \[\]]{0,40}`), wide, rapid.SampledFrom([]string{"\n", "\r\n", "\n\n", "\r"}),
		), 1, 8).Draw(t, "text")
		text = strings.Join(parts, "")
		d.put("file", text)
		limit := rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "limit")
		for _, path := range []string{"file", "result:" + saved} {
			var got strings.Builder
			for next := 1; next > 0; {
				arguments := args{"path": path, "offset": next}
				if limit > 0 {
					arguments["limit"] = limit
				}
				page := d.page(t, read, arguments)
				if len(page) > maxPage+200 || !utf8.ValidString(page) {
					t.Fatalf("a page has %d bytes, or a torn rune", len(page))
				}
				if text == "" {
					return // words stand for nothing
				}
				at := next
				piece, following := unpaged(t, page)
				got.WriteString(piece)
				if next = following; next != 0 && next <= at {
					t.Fatalf("from %d it goes on with %d", at, next)
				}
			}
			whole := got.String()
			if !strings.HasSuffix(text, "\n") && whole == text+"\n" {
				continue // the last page ends its last line to say that it is the last
			}
			if whole != text {
				t.Fatalf("%s: %d bytes came back of %d", path, len(whole), len(text))
			}
		}
	})
}

// TestNoPageIsBounded holds what the agent would make of the worst pages against them: nothing is left out, so nothing
// would be saved again.
func TestNoPageIsBounded(t *testing.T) {
	d := newSavingDesk(t, strings.Repeat("🏷", 200_000))
	d.put("bad", strings.Repeat("123456789\xff", 100_000))
	d.put("nul", strings.Repeat("123456789\x00", 100_000))
	d.put("lines", strings.Repeat("x\n", 500_000))
	const most = 32 << 10 // bytes of a result that the model reads
	for _, path := range []string{"bad", "nul", "lines", "result:" + saved} {
		page, err := d.readIn(room, args{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		whole, _ := agent.Bound(page, 1<<20)
		if bounded, cut := agent.Bound(page, most-4<<10); cut || bounded != whole || len(page) < maxPage-9 {
			t.Errorf("a page of %s has %d bytes, %d as the model reads it", path, len(page), len(whole))
		}
	}
}

// TestNoPageCutsAKey puts keys across the end of a page of a line that has no spaces, and holds that no page shows any of one.
func TestNoPageCutsAKey(t *testing.T) {
	redactor := secret.New()
	for _, key := range []string{
		"ghp_" + strings.Repeat("hidden1234", 4),
		"key=" + strings.Repeat("hidden1234", 4),
		"Bearer " + strings.Repeat("hidden1234", 4),
		"eyJhidden1234." + "eyJhidden1234." + strings.Repeat("hidden1234", 90),
	} {
		for _, filler := range []string{"a=b&", "a.b/", "a:b|", "a-b?", "a b&"} {
			for before := maxPage - len(key) - 8; before < maxPage+4; before += 1 + len(key)/20 {
				text := strings.Repeat(filler, maxPage)[:before] + "&" + key + strings.Repeat("&z=1", 50)
				for offset := 1; offset <= 2; offset++ {
					page, err := pageOf(t.Context(), strings.NewReader(text), span{Offset: offset})
					if err != nil || page.text.Len() > maxPage || strings.Contains(redactor.Text(page.text.String()), "hidden") {
						t.Fatalf("%.20q between %q at %d: page %d shows it, or has %d bytes: %v", key, filler, before, offset, page.text.Len(), err)
					}
				}
			}
		}
	}
}
