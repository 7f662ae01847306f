package document

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/psych-systems/psych-go/failure"
)

const (
	// sizeLimit bounds a document, in bytes.
	sizeLimit = 1 << 20
	// depthLimit bounds the nesting of a document.
	depthLimit = 32
)

// Source is a document that was read; it knows where things stand.
type Source struct {
	file string
	body ast.Node
}

// Decode reads one document into the struct that into points to. Fields are
// named by their yaml tags. A scalar must be written as what its field is: a
// number is no text. Durations and types with an UnmarshalText method are
// written as texts.
// Pointers and slices tell null from absent by being nil for both.
func Decode(file string, data []byte, into any) (*Source, error) {
	source := &Source{file: file}
	if len(data) > sizeLimit {
		return nil, source.at(1, fmt.Sprintf("the document has %d bytes and %d are allowed", len(data), sizeLimit))
	}
	if line := invalidUTF8(data); line > 0 {
		return nil, source.at(line, "the document is not UTF-8 text")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	parsed, err := parse(data)
	if err != nil {
		return nil, source.unparsed(err)
	}
	for _, document := range parsed.Docs {
		switch {
		case document.Body == nil || document.Body.Type() == ast.CommentType:
		case source.body != nil:
			return nil, source.at(lineOf(document.Body), "a second document begins here; one is read")
		default:
			source.body = document.Body
		}
	}
	if source.body == nil {
		return nil, source.at(1, "the document is empty")
	}
	return source, source.decode(into)
}

// parse calls the parser, which panics on some malformed documents.
func parse(data []byte) (parsed *ast.File, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("the parser gave up: %v", recovered)
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
}

func invalidUTF8(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1, r == 0:
			return line
		case r == '\n':
			line++
		}
		data = data[size:]
	}
	return 0
}

// Invalid returns the failure of what stands at a path, such as
// $.mcp_servers[0].name; where that is absent, at the nearest thing around it.
func (s *Source) Invalid(path, format string, args ...any) error {
	return s.at(lineOf(s.find(path)), fmt.Sprintf(format, args...))
}

func (s *Source) at(line int, sentence string) error { return s.because(line, sentence, nil) }

func (s *Source) because(line int, sentence string, cause error) error {
	return failure.New(failure.KindSpecInvalid, fmt.Sprintf("%s:%d: %s", s.file, max(line, 1), sentence), cause)
}

// Has reports whether something stands at a path.
func (s *Source) Has(path string) bool {
	node := s.body
	for _, step := range steps(path) {
		if node = child(node, step); node == nil {
			return false
		}
	}
	return true
}

// find walks a path as far as the document goes.
func (s *Source) find(path string) ast.Node {
	node := s.body
	for _, step := range steps(path) {
		next := child(node, step)
		if next == nil {
			break
		}
		node = next
	}
	return node
}

// steps splits $.a[0].b into a, 0, b.
func steps(path string) []string {
	path = strings.TrimPrefix(path, "$")
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

func child(node ast.Node, step string) ast.Node {
	if sequence, ok := node.(*ast.SequenceNode); ok {
		for i, value := range sequence.Values {
			if fmt.Sprint(i) == step {
				return value
			}
		}
		return nil
	}
	entries, _ := entriesOf(node)
	for _, entry := range entries {
		if keyOf(entry) == step {
			if lineOf(entry.Value) == 0 {
				return entry
			}
			return entry.Value
		}
	}
	return nil
}

// entriesOf returns the entries of a mapping, whatever node it is.
func entriesOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch mapping := node.(type) {
	case *ast.MappingNode:
		return mapping.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{mapping}, true
	default:
		return nil, false
	}
}

func keyOf(entry *ast.MappingValueNode) string {
	if text, ok := entry.Key.(*ast.StringNode); ok {
		return text.Value
	}
	return entry.Key.String()
}

func lineOf(node ast.Node) int {
	if node == nil {
		return 1
	}
	if entry, ok := node.(*ast.MappingValueNode); ok {
		node = entry.Key
	}
	if mapping, ok := node.(*ast.MappingNode); ok && len(mapping.Values) > 0 {
		return lineOf(mapping.Values[0])
	}
	token := node.GetToken()
	if token == nil || token.Position == nil {
		return 0
	}
	return token.Position.Line
}
