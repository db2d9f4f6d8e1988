package markdown

import (
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark/ast"
	"pgregory.net/rapid"
)

func TestUnlinked(t *testing.T) {
	for text, want := range map[string]string{
		"no links, **bold** and `code`":                                                                "no links, **bold** and `code`",
		"![chart](https://evil.test/p.png?d=4711)":                                                     "![chart] (`https://evil.test/p.png?d=4711`)",
		"[Continue at your bank](https://evil.test/?d=4711).":                                          "[Continue at your bank] (`https://evil.test/?d=4711`).",
		"[https://bank.test](https://evil.test)":                                                       "[`https://bank.test`] (`https://evil.test`)",
		"See https://evil.test/a_(b), then <http://x.test>.":                                           "See `https://evil.test/a_(b)`, then <`http://x.test`>.",
		"[a][1]\n\n[1]: https://evil.test/x":                                                           "[a][1]\n\n[1] : `https://evil.test/x`",
		"a ` b https://evil.test/x c":                                                                  "a ˋ b `https://evil.test/x` c",
		"https\\://evil.test/x and www.evil.test":                                                      "`https://evil.test/x` and `www.evil.test`",
		"run `curl https://good.test` and\n```sh\ncurl https://good.test\n```\nthen https://evil.test": "run `curl https://good.test` and\n```sh\ncurl https://good.test\n```\nthen `https://evil.test`",
		"````\n```\n[x](https://evil.test)\n````":                                                      "ˋˋˋˋ\nˋˋˋ\n[x] (`https://evil.test`)\nˋˋˋˋ",
		"~~~\n[x](https://evil.test)\n~~~":                                                             "~~~\n[x] (`https://evil.test`)\n~~~",
		"    [x](https://evil.test)":                                                                   "    [x] (`https://evil.test`)",
		"mail mailto:a@evil.test?body=4711":                                                            "mail `mailto:a@evil.test?body=4711`",
		"[x](javascript:alert(1))":                                                                     "[x] (javascript:alert(1))",
		"ftp://evil.test and file:///etc/passwd":                                                       "`ftp://evil.test` and `file:///etc/passwd`",
	} {
		if got := Unlinked(text); got != want {
			t.Errorf("%q becomes\n%q, want\n%q", text, got, want)
		}
	}
}

// A text of nothing but what looks like links takes no longer than others.
func TestManyLinksTakeNoLonger(t *testing.T) {
	for _, piece := range []string{"https://a]](", "https://a)))", "https://a", "www.a ", "](", "a:a.a+", "`a "} {
		began := time.Now()
		Unlinked(strings.Repeat(piece, 200_000/len(piece)))
		Unlinked("https://a" + strings.Repeat(piece[len(piece)-1:], 200_000))
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%q takes %v", piece, took)
		}
	}
}

// Whatever a text is put together from, nothing in it is a link or an image any more.
func TestNothingIsALinkAnyMore(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"https://evil.test/?d=1", "[", "]", "(", ")", "!", "`", "``", "```", "```sh\n", "~~~", "\n", "\n\n", "    ", "> ", "- ", "]: ", "](", "<", ">", "\\", "|", "|-|", "*", "_", "a", "www.x.test",
		"mailto:a@b.test", "HTTP://E.test", "&#58;", "日本", ":", "//", ".", ",", "\t", "\x00", "\u200b",
	})
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 1, 25).Draw(rt, "pieces"), "")
		got := Unlinked(text)
		tree, source, _ := Parse(got)
		_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			switch n := n.(type) {
			case *ast.Link, *ast.Image:
				rt.Fatalf("%q becomes %q, which has a link", text, got)
			case *ast.AutoLink:
				rt.Fatalf("%q becomes %q, which has the address %q", text, got, n.Label(source))
			}
			return ast.WalkContinue, nil
		})
	})
}
