package document

import "github.com/goccy/go-yaml/token"

// depthLimit bounds the nesting of a document. The parser calls itself for each
// level, and takes time that grows with the square of the levels.
const depthLimit = 32

// nesting follows how deep a document is nested, by its tokens alone.
type nesting struct {
	// columns is where the open blocks begin, each further right than the one
	// before it.
	columns []int
	// brackets is how many brackets and braces are open.
	brackets int
	line     int
}

// enter takes the next token and returns the depth at which it stands.
func (n *nesting) enter(t *token.Token) int {
	opensLine := t.Position.Line != n.line
	n.line = t.Position.Line
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		n.brackets++
	case token.MappingEndType, token.SequenceEndType:
		n.brackets = max(n.brackets-1, 0)
	case token.SequenceEntryType:
		n.block(t.Position.Column)
	default:
		if opensLine && n.brackets == 0 {
			n.block(t.Position.Column)
		}
	}
	return len(n.columns) + n.brackets
}

// block opens a block at a column and closes those that it leaves.
func (n *nesting) block(column int) {
	for len(n.columns) > 0 && n.columns[len(n.columns)-1] >= column {
		n.columns = n.columns[:len(n.columns)-1]
	}
	n.columns = append(n.columns, column)
}
