package web

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nudge/bot/bottest"
	"nudge/bot/markdown"
)

// TestMarkdown renders texts in a real browser.
func TestMarkdown(t *testing.T) {
	p := startProgram(t, nil)
	page := newPage(t, chromium(t), p.server.URL())
	page.until("!document.getElementById('empty').hidden")
	for _, test := range []struct{ text, want string }{
		{"plain", "<p>plain</p>"},
		{"one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"},
		{"a **b** *c* __d__ _e_ ~~f~~ `g*h*`", "<p>a <strong>b</strong> <em>c</em> <strong>d</strong> <em>e</em> <del>f</del> <code>g*h*</code></p>"},
		{"**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"},
		{"2 * 3 * 4, snake_case_name, 5*6, ** x **", "<p>2 * 3 * 4, snake_case_name, 5*6, ** x **</p>"},
		{`\*a\* \<b\>`, "<p>*a* &lt;b&gt;</p>"},
		{"# One\n### Two ##\n#none", "<h3>One</h3><h5>Two</h5><p>#none</p>"},
		{"- a\n- b\n  - c\n- [x] d", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li class=\"task\">☑ d</li></ul>"},
		{"3. a\n4. b", `<ol start="3"><li>a</li><li>b</li></ol>`},
		{"text:\n1. a\n2. b\n\nafter", "<p>text:</p><ol><li>a</li><li>b</li></ol><p>after</p>"},
		{"> a\n> b", "<blockquote><p>a<br>b</p></blockquote>"},
		{"---", "<hr>"},
		{"| a | b |\n|---|:-:|\n| 1 | 2 \\| 3 |", `<div class="table" tabindex="0"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2 | 3</td></tr></tbody></table></div>`},
		{"a | b", "<p>a | b</p>"},
		{"<script>alert(1)</script> <img src=x onerror=alert(1)>", "<p>&lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x onerror=alert(1)&gt;</p>"},
		{"[a](javascript:alert(1)) [b](data:text/html,x) [c](/local) [d](vbscript:x)", "<p>[a](javascript:alert(1)) [b](data:text/html,x) [c](/local) [d](vbscript:x)</p>"},
		{"[bank](https://evil.example/x)", `<p><span><a href="https://evil.example/x" target="_blank" rel="noopener noreferrer nofollow">bank</a><span class="host"> (evil.example)</span></span></p>`},
		{"[https://bank.example](https://evil.example)", `<p><span><a href="https://evil.example/" target="_blank" rel="noopener noreferrer nofollow">https://bank.example</a><span class="host"> (evil.example)</span></span></p>`},
		{"see https://a.example/b(c).", `<p>see <a href="https://a.example/b(c)" target="_blank" rel="noopener noreferrer nofollow">https://a.example/b(c)</a>.</p>`},
		{"https://bank.example@evil.example/", `<p><span><a href="https://bank.example@evil.example/" target="_blank" rel="noopener noreferrer nofollow">https://bank.example@evil.example/</a><span class="host"> (evil.example)</span></span></p>`},
		{"![chart](https://a.example/t.png)", `<p><span><a href="https://a.example/t.png" target="_blank" rel="noopener noreferrer nofollow">image: chart</a><span class="host"> (a.example)</span></span></p>`},
	} {
		if got := eval[string](page, "markdown("+js(test.text)+").innerHTML"); got != test.want {
			t.Errorf("%q became\n%s\nnot\n%s", test.text, got, test.want)
		}
	}
	fence := eval[string](page, "markdown('```go\\na < b\\n  **c**\\n```\\nafter').textContent")
	if fence != "goCopya < b\n  **c**after" {
		t.Errorf("a fence became %q", fence)
	}
	page.markedText(t)
	page.anyText(t)
	page.noLinks(t)
}

// noLinks gives the page texts that try to have links, where there are to be none.
func (p *page) noLinks(t *testing.T) {
	generate := rapid.Custom(func(t *rapid.T) string {
		piece := rapid.SampledFrom(append([]string{"[", "](", ")", "`", "``", "*", "**", "_", "~~", "\n", "> ", "- ", "<", ">", "|", "\\", " ", "x"}, bottest.Linking...))
		return strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(t, "pieces"), "")
	})
	var texts []string
	for _, text := range bottest.Linking {
		texts = append(texts, text, markdown.Unlinked(text))
	}
	for seed := range 300 {
		texts = append(texts, markdown.Unlinked(generate.Example(seed)))
	}
	list, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range eval[[]string](p, "("+string(list)+").filter(text => markdown(text, true).querySelector('a, img, [href], [src]'))") {
		t.Errorf("%q has a link", text)
	}
	if linked := eval[int](p, "("+string(list)+").filter(text => markdown(text).querySelector('a')).length"); linked < 10 {
		t.Errorf("only %d of the texts had one before, so that this proves nothing", linked)
	}
}

// markedText gives the page texts that are nothing but marks. They end soon, as texts of their length do.
func (p *page) markedText(t *testing.T) {
	for _, mark := range []string{"*", "_", "[", "`", "~~", "](", "> ", "- ", "|", "<h", "* a", "![", "\n", "  - x\n", "|-|\n"} {
		if n := eval[int](p, "markdown("+js(mark)+".repeat(20000)).textContent.length"); n > 20000*(len(mark)+8) {
			t.Errorf("%q became %d characters", mark, n)
		}
	}
}

// anyText renders many random texts: only known elements and attributes come out, and no letter is lost.
func (p *page) anyText(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"*", "**", "_", "`", "```", "~~", "[", "](", ")", "(", "!", "\n", "\n\n", "- ", "1. ", "> ", "# ", "|", "|-|-|", "a", "b c", "  ",
		"https://x.example/", "javascript:", "<b>", "\\", "☐", "\u202e", "é", "<script>", "\" onclick=\"", "data:text/html,",
	})
	check := `(texts => texts.flatMap(text => {
		const bad = [];
		const root = markdown(text);
		const known = new Set(['DIV','P','BR','H3','H4','H5','H6','UL','OL','LI','STRONG','EM','DEL','CODE','PRE','BLOCKQUOTE','HR','A','SPAN','BUTTON','TABLE','THEAD','TBODY','TR','TH','TD']);
		const names = new Set(['class','tabindex','href','target','rel','start','type','aria-label']);
		for (const e of root.querySelectorAll('*')) {
			if (!known.has(e.tagName)) bad.push(e.tagName + ' from ' + JSON.stringify(text));
			for (const a of e.attributes) if (!names.has(a.name)) bad.push(a.name + ' from ' + JSON.stringify(text));
			if (e.tagName === 'A' && !/^https?:$/.test(e.protocol)) bad.push(e.href + ' from ' + JSON.stringify(text));
		}
		const letters = s => s.replace(/[^a-zé☐\u202e]/g, '').length;
		const bare = text.replace(/~~~[^\n]*|` + "```" + `[^\n]*/g, '');
		if (letters(root.textContent) < letters(bare.replace(/https?:\/\/[^\s]*/g, '').replace(/\([^)]*\)/g, ''))) bad.push('lost from ' + JSON.stringify(text));
		return bad;
	}))`
	generate := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 25).Draw(t, "pieces"), "") })
	var texts []string
	for seed := range 400 {
		texts = append(texts, generate.Example(seed))
	}
	list, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range eval[[]string](p, check+"("+string(list)+")") {
		t.Error(fault)
	}
}
