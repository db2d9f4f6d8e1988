package fetch

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"
)

// numbered are tags that differ.
func numbered(format string, count int) string {
	var out strings.Builder
	for i := range count {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

// What takes gigabytes and minutes to write as Markdown is read as plain text, in no time.
func TestPagesThatWouldTakeTooMuch(t *testing.T) {
	to, err := parse("https://hostile.example/")
	if err != nil {
		t.Fatal(err)
	}
	words := "<title>News</title><p>" + strings.Repeat("Words of an article, with commas, and more words here. ", 40)
	for name, page := range map[string]string{
		"a wide cell":           words + "<table><tr><td colspan=1000000>x<tr><td rowspan=100000>y</table>",
		"wide cells, one below": words + "<table>" + strings.Repeat("<tr><td colspan=20 rowspan=20>x", 900) + "</table>",
		"spans written twice":   words + "<table><tr><td colspan=2 colspan=1000000>x<tr><td COLSPAN='+900000'>y</table>",
		"a long and wide table": words + "<table><tr>" + strings.Repeat("<td>x", 8000) + strings.Repeat("<tr><td>x", 16000) + "</table>",
		"tables in tables":      words + strings.Repeat("<table><tr><td>", 100) + strings.Repeat("<tr><td>x<td>y", 5000),
		"characters":            words + "<p>" + strings.Repeat("*_`[", 200_000),
		"as many as may be":     words + "<p>" + strings.Repeat("*_`[", maxMarks/4-100),
		"other characters":      words + "<p>" + strings.Repeat("1. - &amp;(:)", 60_000),
		"deep lines":            words + strings.Repeat("<ul><li>x", 200) + strings.Repeat("\n", 500_000),
		"deep breaks":           words + strings.Repeat("<blockquote>", 200) + strings.Repeat("x<br>", 45_000),
		"elements opened anew":  words + "<p>" + numbered("<b a%d>", 400) + strings.Repeat("<p>x", 30_000),
		"links opened anew":     words + "<p>" + numbered("<a href=%d>", 400) + strings.Repeat("<p>x", 30_000),
		"left open in blocks":   words + "<p>" + numbered("<b a%d>"+strings.Repeat("<div>", 9)+"</b>"+strings.Repeat("</div>", 9), 400) + strings.Repeat("<p>x", 30_000),
		"merged attributes":     words + numbered("<html a%d>", 60_000),
		"merged into the body":  words + numbered("<body a%d>", 60_000),
		"deep code":             words + strings.Repeat("<ul><li>", 100) + "<pre><code>" + strings.Repeat("x\n", 250_000),
	} {
		t.Run(name, func(t *testing.T) {
			title, body := markdown(page, to) // without an end to it, or with no memory left, where that is not looked at before
			if title != "News" || !strings.Contains(body, "Words of an article") {
				t.Errorf("it is read as %.100q, %.100q", title, body)
			}
		})
	}
	if _, body := markdown(words+"<table><tr><th colspan=2>both<th>c<tr><td>1<td>2<td>3</table>", to); !strings.Contains(body, "| 1") {
		t.Errorf("a table is read as %q", body)
	}
}

// A title is compared with every heading.
func TestALongTitleIsCut(t *testing.T) {
	to, err := parse("https://hostile.example/")
	if err != nil {
		t.Fatal(err)
	}
	long, headings := strings.Repeat("News of today ", 30_000), strings.Repeat("<h1>x</h1>", 3000)+"<p>Words of an article, with commas, and more words here."
	for _, page := range []string{
		"<title>" + long + "</title>" + headings,
		"<title>News</title><meta property='og:title' content='" + long + "'>" + headings,
		"<script type='application/ld+json'>{\"@context\":\"https://schema.org\",\"@type\":\"Article\",\"headline\":\"" + long + "\"}</script><title>News</title>" + headings,
	} {
		if title, body := markdown(page, to); !strings.HasPrefix(title, "News") || !strings.Contains(body, "Words of an article") {
			t.Errorf("it is read as %.100q, %.100q", title, body)
		}
	}
}

// Whatever tags a page is made of, the parser makes not much more of them than there are.
func TestMarkupIsNotMultiplied(t *testing.T) {
	names := strings.Fields("a href=%[1]d|a|b x%[1]d|i|em|code|nobr|font y=%[1]d|p|div|table|tr|td|caption|li|ul|dd|form|button|select|option|svg|math|mi|style|title|textarea|" +
		"template|html z%[1]d|body z%[1]d|head|h1|pre|xmp|ruby|rt|marquee|object|frameset|noscript|plaintext|br|img|input|foreignObject|annotation-xml")
	names = strings.Split(strings.Join(names, " "), "|")
	rapid.Check(t, func(t *rapid.T) {
		draw := func(most int) string {
			var out strings.Builder
			for range rapid.IntRange(1, most).Draw(t, "tags") {
				name := rapid.SampledFrom(names).Draw(t, "name")
				switch rapid.IntRange(0, 4).Draw(t, "kind") {
				case 0:
					out.WriteString("</" + strings.Fields(name)[0] + ">")
				case 1:
					out.WriteString("x")
				default:
					out.WriteString("<" + name + ">")
				}
			}
			return out.String()
		}
		number := func(format string, count int) string {
			if !strings.Contains(format, "%") {
				return strings.Repeat(format, count)
			}
			return numbered(format, count)
		}
		page := draw(3) + number(draw(12), 40) + draw(3) + number(draw(8), 150)
		written, err := wellFormed(page)
		if err != nil {
			t.Fatal(err)
		}
		document, err := html.Parse(strings.NewReader(written))
		if err != nil {
			return // too deep
		}
		nodes := 0
		for range document.Descendants() {
			nodes++
		}
		if most := 100 + (maxInline+2)*strings.Count(page, "<"); nodes > most {
			t.Fatalf("%d tags become %d elements: %.300q", strings.Count(page, "<"), nodes, page)
		}
	})
}
