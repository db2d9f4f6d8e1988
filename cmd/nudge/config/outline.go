package config

import (
	"sort"

	"github.com/pelletier/go-toml/v2/unstable"
)

// place tells where a key or a list's element stands. The parser gives values and positions apart, so a document is
// read twice: once for its values, and once for this tree of the same shape.
type place struct {
	line   int
	header bool // opened by a [table] or [[table]] line
	keys   map[string]*place
	items  []*place
}

// key is the place of a key in a table. A key that isn't written counts as standing where the table begins.
func (p *place) key(name string) *place {
	if child, ok := p.keys[name]; ok {
		return child
	}
	return &place{line: p.line}
}

// has reports whether a key is written.
func (p *place) has(name string) bool {
	_, ok := p.keys[name]
	return ok
}

// item is the place of a list's element.
func (p *place) item(i int) *place {
	if i < len(p.items) {
		return p.items[i]
	}
	return &place{line: p.line}
}

// enter gives the place of a key, made if need be. Of a list of tables the last one is meant, as in TOML.
func (p *place) enter(name string, line int) *place {
	child := p.open(name, line)
	if n := len(child.items); n > 0 {
		return child.items[n-1]
	}
	return child
}

func (p *place) open(name string, line int) *place {
	if p.keys == nil {
		p.keys = map[string]*place{}
	}
	child, ok := p.keys[name]
	if !ok {
		child = &place{line: line}
		p.keys[name] = child
	}
	return child
}

// surveyor draws the outline of a document that is known to be valid.
type surveyor struct {
	parser unstable.Parser
	starts []int // offset of each line
}

// outline gives the places of a valid document.
func outline(document []byte) *place {
	s := surveyor{starts: []int{0}}
	for i, b := range document {
		if b == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	s.parser.Reset(document)
	root := &place{line: 1}
	table := root
	for s.parser.NextExpression() {
		node := s.parser.Expression()
		switch node.Kind {
		case unstable.Table:
			table = s.walk(root, node.Key())
			table.header = true
		case unstable.ArrayTable:
			table = s.element(root, node.Key())
		case unstable.KeyValue:
			s.pair(table, node)
		}
	}
	return root
}

// walk follows a dotted key down from a place.
func (s *surveyor) walk(from *place, parts unstable.Iterator) *place {
	for parts.Next() {
		from = from.enter(string(parts.Node().Data), s.line(parts.Node()))
	}
	return from
}

// element adds one element to the list of tables that a [[key]] line names.
func (s *surveyor) element(from *place, parts unstable.Iterator) *place {
	for parts.Next() {
		name, line := string(parts.Node().Data), s.line(parts.Node())
		if !parts.IsLast() {
			from = from.enter(name, line)
			continue
		}
		list := from.open(name, line)
		list.header = true
		from = &place{line: line, header: true}
		list.items = append(list.items, from)
	}
	return from
}

func (s *surveyor) pair(table *place, node *unstable.Node) {
	at := s.walk(table, node.Key())
	s.value(at, node.Value())
}

func (s *surveyor) value(at *place, node *unstable.Node) {
	children := node.Children()
	for children.Next() {
		child := children.Node()
		switch node.Kind {
		case unstable.InlineTable:
			s.pair(at, child)
		case unstable.Array:
			item := &place{line: at.line}
			// Lists in lists have no position of their own.
			if child.Raw.Length > 0 {
				item.line = s.line(child)
			}
			at.items = append(at.items, item)
			s.value(item, child)
		}
	}
}

func (s *surveyor) line(node *unstable.Node) int {
	return sort.SearchInts(s.starts, int(node.Raw.Offset)+1)
}
