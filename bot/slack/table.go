package slack

import (
	"strings"
	"unicode/utf8"
)

// widest is the widest that a column of a table is made, in characters. Longer cells stick out.
const widest = 60

// tableLines is how many lines of a table begin with the first line; 0 if none does.
func tableLines(lines []string) int {
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || !strings.Contains(lines[1], "|") || !delimiters.MatchString(lines[1]) {
		return 0
	}
	n := 2
	for n < len(lines) && strings.Contains(lines[n], "|") && !fenceLine.MatchString(lines[n]) {
		n++
	}
	return n
}

// table shows a table, which Slack's markup has none of, as text in columns.
func table(lines []string) string {
	var rows [][]string
	var widths []int
	for i, text := range lines {
		if i == 1 {
			continue
		}
		row := cells(text)
		rows = append(rows, row)
		for c, cell := range row {
			if c == len(widths) {
				widths = append(widths, 0)
			}
			widths[c] = min(max(widths[c], utf8.RuneCountInString(cell)), widest)
		}
	}
	var out []string
	for i, row := range rows {
		out = append(out, tableRow(row, widths))
		if i == 0 {
			var rule []string
			for _, width := range widths {
				rule = append(rule, strings.Repeat("-", max(width, 1)))
			}
			out = append(out, strings.Join(rule, "-|-"))
		}
	}
	return codeBlock(out)
}

func tableRow(row []string, widths []int) string {
	var b strings.Builder
	for c, width := range widths {
		cell := ""
		if c < len(row) {
			cell = row[c]
		}
		if c > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(cell + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cell))))
	}
	return strings.TrimRight(b.String(), " ")
}

// cells are the cells of a row. A bar with a backslash before it is part of a cell.
func cells(text string) []string {
	text = strings.TrimSpace(text)
	text = strings.TrimPrefix(text, "|")
	if strings.HasSuffix(text, "|") && !strings.HasSuffix(text, `\|`) {
		text = text[:len(text)-1]
	}
	const bar = "\x00"
	var out []string
	for _, cell := range strings.Split(strings.ReplaceAll(text, `\|`, bar), "|") {
		out = append(out, strings.TrimSpace(strings.ReplaceAll(cell, bar, "|")))
	}
	return out
}
