package markdown

import (
	"regexp"
	"slices"
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
		"See https://evil.test/a_(b), then <http://x.test>.":                                           "See `https://evil.test/a_(b)`, then < `http://x.test`>.",
		"[a][1]\n\n[1]: https://evil.test/x":                                                           "[a][1]\n\n[1] : `https://evil.test/x`",
		"a ` b https://evil.test/x c":                                                                  "a ˋ b `https://evil.test/x` c",
		"https\\://evil.test/x and www.evil.test":                                                      "`https://evil.test/x` and `www.evil.test`",
		"run `curl https://good.test` and\n```sh\ncurl https://good.test\n```\nthen https://evil.test": "run `curl https://good.test` and\n```sh\ncurl https://good.test\n```\nthen `https://evil.test`",
		"````\n```\n[x](https://evil.test)\n````":                                                      "ˋˋˋˋ\nˋˋˋ\n[x] (`https://evil.test`)\nˋˋˋˋ",
		"~~~\n[x](https://evil.test)\n~~~":                                                             "~~~\n[x] (`https://evil.test`)\n~~~",
		"    [x](https://evil.test)":                                                                   "    [x] (`https://evil.test`)",
		"mail mailto:a@evil.test?body=4711":                                                            "mail `mailto:a@evil.test?body=4711`",
		"[x](javascript:alert(1))":                                                                     "[x] (`javascript:alert(1)`)",
		"ftp://evil.test and file:///etc/passwd":                                                       "`ftp://evil.test` and `file:///etc/passwd`",
		"go to evil.com, evil.test/x?d=4711 or evil.com.":                                              "go to `evil.com`, `evil.test/x?d=4711` or `evil.com`.",
		"README.md, docs/my_file.md, ./run.sh and _evil.com_":                                          "`README.md`, `docs/my_file.md`, `./run.sh` and _`evil.com`_",
		"mail a.b@evil.com or user:pw@evil.com/x, call tel:+15551234567":                               "mail `a.b@evil.com` or `user:pw@evil.com/x`, call `tel:+15551234567`",
		"evil。com ｅｖｉｌ．ｃｏｍ ev\u200bil.com xn--e1afmkfd.xn--p1ai пример.рф":                             "`evil。com` `ｅｖｉｌ．ｃｏｍ` `ev\u200bil.com` `xn--e1afmkfd.xn--p1ai` `пример.рф`",
		"evil.com./x evil.com:8080 1.2.3.4/x 1.2.3.4:80 evil\\.com":                                    "`evil.com./x` `evil.com:8080` `1.2.3.4/x` `1.2.3.4:80` `evil.com`",
		"see https://evil.test/\nx?d=4711 and 例えばmain.pyを使う":                                           "see `https://evil.test/`\nx?d=4711 and `例えばmain.py`を使う",
		"<https://evil.test|bank>, <#12>, <@1>, </do it:3>, <id:browse>, a < b":                        "< `https://evil.test`|bank>, < #12>, < @1>, < /do it:3>, < id:browse>, a < b",
		"`x`evil.com`y` <`https://evil.test`>":                                                         "`x` `evil.com` `y` < `https://evil.test`>",
		"https://evil.test/" + strings.Repeat("x", 600):                                                "`https://evil.test/" + strings.Repeat("x", 482) + "` `" + strings.Repeat("x", 118) + "`",
	} {
		if got := Unlinked(text); got != want {
			t.Errorf("%q becomes\n%q, want\n%q", text, got, want)
		}
	}
}

// Words with dots that lead nowhere are words.
func TestOrdinaryWordsStay(t *testing.T) {
	for _, text := range []string{
		"main.go, src/main.go, a/b.go and ../x_test.go", "v1.2, v1.2.3-rc.1, Go 1.26 and 3.14", "e.g. this, i.e. that, etc. at 8 a.m. in the U.S.A. with a Ph.D.", "file.txt, index.html, config.toml, data.json, a.out",
		"os.Root, fmt.Println(x), json.Marshal and foo.bar.baz_qux", "Node.js and Vue.js", "1.2.3.4 is an address of numbers, 10.000,50 € is money, 5.5.2026 a date", "wait...what? Yes.Maybe.", "note:this, news: here, data: there and file: gone",
		"and/or, w/o, 24/7, 10:30, a:b, x<y, 3 < 4, </b>", "@ann, #general, @here, C#, #1", "example.invalid, evil.test and localhost:8080/x", "**bold**, _it_, ~~no~~, > quote, - item, | a | b |",
	} {
		if got := Unlinked(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
		if got := Defanged(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

func TestDefanged(t *testing.T) {
	for text, want := range map[string]string{
		"`https://a.b.test/c.d?e=f.g`, README.md": "`https[:]//a[.]b[.]test/c.d?e=f.g`, README.md",
		"a@b.test mailto:a@b.test www.a.test":     "a[@]b[.]test mailto[:]a[@]b[.]test www[.]a[.]test",
		"https://a.test/?u=https://b.test":        "https[:]//a[.]test/?u=https[:]//b.test",
		"react@18.2.0 and evil.com":               "react@18.2.0 and evil.com",
		"evil.com/x?d=1 evil.com tel:+1555":       "evil[.]com/x?d=1 evil.com tel[:]+1555",
	} {
		if got := Defanged(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// A text of nothing but what looks like links takes no longer than others.
func TestManyLinksTakeNoLonger(t *testing.T) {
	for _, piece := range []string{"https://a]](", "https://a)))", "https://a", "www.a ", "](", "a:a.a+", "`a ", "a.a/", "a.com/", "a.com,", "a@", "a.", "a.aa:1", "a\\.a", "<@1"} {
		began := time.Now()
		Unlinked(strings.Repeat(piece, 40_000/len(piece)))
		Unlinked("https://a" + strings.Repeat(piece[len(piece)-1:], 40_000))
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%q takes %v", piece, took)
		}
	}
}

// Word by word the same is found as in the text as a whole, from any place of it.
func TestWordByWordTheSameIsFound(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"a", "Z", "9", "é", "日", "_", "-", "\\", ".", "。", "．", "｡", "․", "﹒", ":", "/", "//", "://", "?", "#", "*", "@", " ", "\t", "\n", "\f", "\r", "\v", "\u00a0", "\u2028", "\u200b", "\u0301", "\xff",
		"www.", "WWW", "mailto", "ſms", "tel:", "a.b", "evil.com", "80",
	})
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 20).Draw(rt, "pieces"), "")
		at := rapid.IntRange(0, len(text)).Draw(rt, "at")
		for _, pattern := range []*regexp.Regexp{addressed, named} {
			want := pattern.FindStringSubmatchIndex(text[at:])
			for i := range want {
				want[i] += at
			}
			if got := firstIn(text, at, pattern); !slices.Equal(got, want) {
				rt.Fatalf("in %q behind %d %s finds %d, and word by word %d", text, at, pattern, want, got)
			}
		}
	})
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
