package document

import (
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/psych-systems/psych-go/failure"
)

// Source is a document that was read; it knows where things stand.
type Source struct {
	file string
	body ast.Node
}

// Decode reads one document into what into points to: a struct, a map with text
// keys, a slice, or any.
//
// A struct's fields are named by their yaml tags and may be of the same kinds, a
// text, bool, int, float64, [time.Duration] (written as "90s"), a type with an
// UnmarshalText method (written as a text), or a pointer to one of these. A
// field that is left out or null keeps the value that it has, so that defaults
// may stand there before; the tag's option nonnull refuses null for a field whose
// absence says too much to be said by chance. It fails with [failure.SpecInvalid]; what into points
// to is then undefined.
func Decode(file string, data []byte, into any) (*Source, error) {
	source := &Source{file: file}
	if err := source.read(data); err != nil {
		return nil, err
	}
	if err := source.decode(into); err != nil {
		return nil, err
	}
	return source, nil
}

// Invalid returns the failure of what stands at a path such as
// $.servers[0].name, or where that is absent, of the nearest thing around it. A
// field stands where its name does. [Join] writes paths with keys of any form.
func (s *Source) Invalid(path, format string, args ...any) error {
	return s.because(s.find(path).at.line, nil, format, args...)
}

// Has reports whether something other than null stands at a path.
func (s *Source) Has(path string) bool {
	found := s.find(path)
	return found.whole && kindOf(found.node) != null
}

// place is what a path leads to.
type place struct {
	node ast.Node
	at   position
	// whole is whether the path was walked to its end.
	whole bool
}

// find walks a path as far as the document goes.
func (s *Source) find(path string) place {
	found := place{node: s.body, at: positionOf(s.body), whole: true}
	for _, step := range steps(path) {
		next, at := child(found.node, step)
		if next == nil {
			found.whole = false
			return found
		}
		found.node, found.at = next, at
	}
	return found
}

// child returns what stands under a key, or at an index, of a node, and where
// the key or the element begins.
func child(node ast.Node, step string) (ast.Node, position) {
	switch node := node.(type) {
	case *ast.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Values) {
			return node.Values[i], positionOf(node.Values[i])
		}
	case *ast.MappingNode:
		for _, entry := range node.Values {
			if key, ok := textOf(entry.Key); ok && key == step {
				return entry.Value, positionOf(entry.Key)
			}
		}
	}
	return nil, position{}
}

// at returns the failure of what stands at a node.
func (s *Source) at(node ast.Node, format string, args ...any) error {
	return s.because(positionOf(node).line, nil, format, args...)
}

func (s *Source) because(line int, cause error, format string, args ...any) error {
	return failure.New(failure.KindSpecInvalid,
		fmt.Sprintf("%s:%d: %s", s.file, max(line, 1), fmt.Sprintf(format, args...)), cause)
}

// position is where something stands, both counted from 1; zero when unknown.
type position struct{ line, column int }

func (p position) before(other position) bool {
	return p.line < other.line || p.line == other.line && p.column < other.column
}

func positionOf(node ast.Node) position {
	if mapping, ok := node.(*ast.MappingNode); ok && !mapping.IsFlowStyle && len(mapping.Values) > 0 {
		// A mapping's own token is the colon of its first entry.
		return positionOf(mapping.Values[0].Key)
	}
	if node == nil || node.GetToken() == nil || node.GetToken().Position == nil {
		return position{}
	}
	at := node.GetToken().Position
	return position{line: at.Line, column: at.Column}
}
