package slack

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"nudge/bot/markdown"
)

// widest is the widest that a table is shown in columns. Wider ones would be wrapped in Slack, and their columns lost.
const widest = 76

// table shows a table, which Slack's markup has none of: in columns, or as a record for each row.
func (r *renderer) table(n *east.Table) {
	t := markdown.Table{}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		cells := r.cells(row)
		if row.Kind() == east.KindTableHeader {
			t.Head = cells
		} else {
			t.Rows = append(t.Rows, cells)
		}
	}
	switch head, rule, rows, ok := t.Columns(widest); {
	case ok:
		r.own(n)
		r.columns(head, rule, rows)
	case len(t.Rows) == 0:
		r.write(strings.Join(t.Head, " | "))
	default:
		r.records(n, t.Head)
	}
}

// cells are the cells of a row in words.
func (r *renderer) cells(row ast.Node) []string {
	var out []string
	for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
		out = append(out, unfenced(strings.TrimSpace(r.plain(cell))))
	}
	return out
}

// columns shows a table in a block of code, in which all letters are equally wide. Its head is repeated in each message.
func (r *renderer) columns(head, rule string, rows []string) {
	table := blockMark
	table.Again = blockMark.Enter + escape(head+"\n"+rule) + "\n"
	r.out.Open(table)
	r.out.Write(head)
	r.out.Lines(1)
	r.out.Keep()
	r.out.Write(rule)
	for i, row := range rows {
		r.out.Lines(1)
		if i == 0 {
			r.out.Keep()
		}
		r.out.Write(row)
	}
	r.out.Close()
}

// records shows each row of a table as lines that begin with the head of their column.
func (r *renderer) records(table ast.Node, head []string) {
	first := true
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		if row.Kind() == east.KindTableHeader {
			continue
		}
		lines, column := 2, 0
		for cell := row.FirstChild(); cell != nil; cell, column = cell.NextSibling(), column+1 {
			if !cell.HasChildren() {
				continue
			}
			if !first {
				r.lines(lines)
			}
			first, lines = false, 1
			r.field(head, column, cell)
		}
	}
}

// field shows one cell of a record.
func (r *renderer) field(head []string, column int, cell ast.Node) {
	if column < len(head) && head[column] != "" {
		r.around(boldMark, &r.bold, func() { r.write(head[column] + ":") })
		r.write(" ")
	}
	r.inlines(cell)
}
