package markdown

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Table is a table in plain text. Its rows may be shorter than its head.
type Table struct {
	Head []string
	Rows [][]string
}

// Columns lays a table out for letters that are all equally wide: the head, the line below it, and one line for each row.
// Wide letters such as those of Chinese count twice. ok is false when that would take more than widest columns.
func (t Table) Columns(widest int) (head, rule string, rows []string, ok bool) {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for c, cell := range row[:min(len(row), len(widths))] {
			widths[c] = max(widths[c], displaywidth.String(cell), 1)
		}
	}
	total := -3
	for _, width := range widths {
		total += width + 3
	}
	if total > widest {
		return "", "", nil, false
	}
	dashes := make([]string, len(widths))
	for c, width := range widths {
		dashes[c] = strings.Repeat("-", width)
	}
	for _, row := range t.Rows {
		rows = append(rows, columns(row, widths))
	}
	return columns(t.Head, widths), strings.Join(dashes, "-|-"), rows, true
}

func columns(row []string, widths []int) string {
	var b strings.Builder
	for c, width := range widths {
		cell := ""
		if c < len(row) {
			cell = row[c]
		}
		if c > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(cell + strings.Repeat(" ", max(0, width-displaywidth.String(cell))))
	}
	return strings.TrimRight(b.String(), " ")
}
