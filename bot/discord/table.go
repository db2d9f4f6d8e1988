package discord

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"nudge/bot/markdown"
)

// widest is the widest that a table is shown in columns. Wider ones would be wrapped in Discord, and their columns lost.
const widest = 60

// tabled is a model's Markdown with its tables, which Discord shows as they are written, in columns of a block of code, or with
// a line for each cell where that is too wide.
func tabled(text string) string {
	if !strings.Contains(text, "|") {
		return text
	}
	tree, source, ok := markdown.Parse(text)
	if !ok {
		return text
	}
	var b strings.Builder
	from := 0
	for node := tree.FirstChild(); node != nil; node = node.NextSibling() {
		table, isTable := node.(*east.Table)
		if !isTable {
			continue
		}
		begin, end := extent(table, source)
		if begin < from || end < begin {
			continue
		}
		b.Write(source[from:begin])
		b.WriteString(laidOut(table, source))
		from = end
	}
	b.Write(source[from:])
	return b.String()
}

// extent is where a table begins and ends in its source: with the line of its first cell, and of its last.
func extent(table *east.Table, source []byte) (begin, end int) {
	begin, end = len(source), 0
	_ = ast.Walk(table, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if node.Kind() != east.KindTableCell || !entering {
			return ast.WalkContinue, nil
		}
		for i := range node.Lines().Len() {
			begin, end = min(begin, node.Lines().At(i).Start), max(end, node.Lines().At(i).Stop)
		}
		return ast.WalkSkipChildren, nil
	})
	if begin > end {
		return 0, -1
	}
	if n := bytes.IndexByte(source[end:], '\n'); n >= 0 {
		end += n
	} else {
		end = len(source)
	}
	return bytes.LastIndexByte(source[:begin], '\n') + 1, end
}

// laidOut is a table in columns, or row by row.
func laidOut(table *east.Table, source []byte) string {
	t := markdown.Table{}
	var marked [][]string // the cells of the rows, as they are written
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		var cells, raw []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells, raw = append(cells, wordsOf(cell, source)), append(raw, strings.TrimSpace(string(cell.Lines().Value(source))))
		}
		if row.Kind() == east.KindTableHeader {
			t.Head = cells
			continue
		}
		t.Rows, marked = append(t.Rows, cells), append(marked, raw)
	}
	if head, rule, rows, ok := t.Columns(widest); ok {
		return fence + "\n" + strings.Join(append([]string{head, rule}, rows...), "\n") + "\n" + fence
	}
	var records []string
	for _, row := range marked {
		var lines []string
		for c, cell := range row {
			if c < len(t.Head) && cell != "" {
				lines = append(lines, "**"+escape(t.Head[c])+":** "+cell)
			}
		}
		records = append(records, strings.Join(lines, "\n"))
	}
	return strings.Join(records, "\n\n")
}

// wordsOf is what stands in a cell, in words.
func wordsOf(cell ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(cell, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Text:
			b.Write(node.Value(source))
		case *ast.String:
			b.Write(node.Value)
		case *ast.AutoLink:
			b.Write(node.URL(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.ReplaceAll(strings.Join(strings.Fields(b.String()), " "), fence, "`"+apart+"`"+apart+"`")
}
