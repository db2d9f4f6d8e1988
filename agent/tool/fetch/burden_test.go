package fetch

import (
	"strings"
	"testing"
)

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
