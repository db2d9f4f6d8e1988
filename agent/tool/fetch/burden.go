package fetch

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Writing a page as Markdown takes far more time and memory than its length tells where it has large tables, many characters
// that Markdown knows, or many lines deep within lists and quotations: a cell that says it is a million columns wide is some bytes
// of a page, and gigabytes of a table. What would take too much is not taken apart.
const (
	maxSpan  = 20      // rows or columns over which a cell reaches; of one that reaches further that is not believed
	maxCells = 20_000  // of a table, with those that are empty
	maxMarks = 20_000  // characters of a page that Markdown knows
	maxDeep  = 200_000 // lines of a page, each as often as it is within a list or a quotation
)

// burden is what writing a page takes.
type burden struct{ cells, marks, deep int }

func (b burden) tooMuch() bool { return b.cells > maxCells || b.marks > maxMarks || b.deep > maxDeep }

// burdenOf looks at a part of a page, and takes out of it how far cells reach that reach too far. depth is within how many
// lists and quotations it is.
func burdenOf(node *html.Node, depth int) (b burden) {
	switch node.DataAtom {
	case atom.Ul, atom.Ol, atom.Li, atom.Blockquote:
		depth++
	case atom.Table:
		b.cells = cellsOf(node)
	}
	if node.Type == html.TextNode {
		lines := strings.Count(node.Data, "\n")
		b.deep = depth * lines
		b.marks = len(node.Data) - len(marks.Replace(node.Data))
	} else if depth > 0 {
		b.deep = depth
	}
	for child := range node.ChildNodes() {
		of := burdenOf(child, depth)
		b.cells, b.marks, b.deep = b.cells+of.cells, b.marks+of.marks, b.deep+of.deep
	}
	return b
}

// marks are the characters that have a meaning in Markdown.
var marks = strings.NewReplacer("*", "", "_", "", "`", "", "[", "", "]", "", "#", "", "\\", "", "|", "", "~", "", "<", "", ">", "", "!", "", "+", "", "=", "")

// cellsOf is how many cells a table has, at most: each row is as wide as the widest, and wider by what reaches into it.
func cellsOf(table *html.Node) int {
	rows, widest, reaching := 0, 0, 0
	width := 0
	for node := range table.Descendants() {
		switch node.DataAtom {
		case atom.Tr:
			rows, width = rows+1, 0
		case atom.Td, atom.Th:
			columns, down := span(node, "colspan"), span(node, "rowspan")
			width += columns
			if down > 1 {
				rows += down
				reaching += columns
			}
			widest = max(widest, width)
		}
	}
	return rows * (widest + min(reaching, maxSpan*widest))
}

// span is over how many columns, or rows, a cell reaches.
func span(cell *html.Node, name string) int {
	widest := 1
	for i, a := range cell.Attr {
		if a.Key != name {
			continue
		}
		if n, err := strconv.Atoi(a.Val); err == nil && n >= 1 && n <= maxSpan {
			widest = max(widest, n)
		} else {
			cell.Attr[i].Val = "1"
		}
	}
	return widest
}
