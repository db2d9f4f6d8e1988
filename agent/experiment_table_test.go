package agent_test

import (
	"fmt"
	"strings"
)

// table is printed as Markdown. Its first row is the head.
type table [][]string

func (tb *table) row(cells ...any) {
	var row []string
	for _, c := range cells {
		row = append(row, strings.ReplaceAll(fmt.Sprint(c), "|", "\\|"))
	}
	*tb = append(*tb, row)
}

// String is the table with its columns under each other.
func (tb *table) String() string {
	var widths []int
	for _, row := range *tb {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 3)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	line := func(row []string, fill string) {
		for i, width := range widths {
			cell := ""
			if i < len(row) {
				cell = row[i]
			}
			fmt.Fprintf(&b, "| %s%s ", cell, strings.Repeat(fill, width-len([]rune(cell))))
		}
		b.WriteString("|\n")
	}
	for i, row := range *tb {
		line(row, " ")
		if i == 0 {
			line(nil, "-")
		}
	}
	return b.String()
}

func dollars(usd float64) string { return fmt.Sprintf("$%.5f", usd) }

// thousands is a number with a comma at each thousand.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
