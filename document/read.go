package document

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// sizeLimit bounds a document, in bytes.
	sizeLimit = 1 << 20
	// keyLimit bounds the keys of a document: the parser's time grows with the
	// square of the keys in one mapping.
	keyLimit = 20_000
)

// read parses a document's text into the source's body.
func (s *Source) read(data []byte) error {
	if len(data) > sizeLimit {
		return s.because(1, nil, "the document has %d bytes and %d are allowed", len(data), sizeLimit)
	}
	if line, what := illegible(data); what != "" {
		return s.because(line, nil, "%s", what)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	tokens, err := tokenize(string(data))
	if err != nil {
		return s.unreadable(data, err)
	}
	if err := s.admit(tokens); err != nil {
		return err
	}
	parsed, err := parse(tokens)
	if err != nil {
		return s.unreadable(data, err)
	}
	for _, document := range parsed.Docs {
		if document.Body != nil && document.Body.Type() != ast.CommentType {
			s.body = document.Body
			return nil
		}
	}
	return s.because(1, nil, "the document is empty")
}

// illegible returns what keeps data from being text, and in which line.
func illegible(data []byte) (line int, what string) {
	line = 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return line, "the document is not UTF-8 text"
		case r == '\n', r == '\r' && !bytes.HasPrefix(data[i:], []byte("\r\n")):
			line++
		case r < ' ' && r != '\t' && r != '\r':
			return line, fmt.Sprintf("the document has the control character U+%04X", r)
		}
		i += size
	}
	return 0, ""
}

// admit refuses tokens that the parser must not see: those of features that are
// not read, and more of them than it can take.
func (s *Source) admit(tokens token.Tokens) error {
	var (
		depth          nesting
		keys           int
		started, ended bool
	)
	for _, t := range tokens {
		refuse := func(format string, args ...any) error {
			return s.because(t.Position.Line, nil, format, args...)
		}
		switch t.Type {
		case token.CommentType:
			continue
		case token.InvalidType:
			// The parser tells it.
			return nil
		case token.AnchorType, token.AliasType, token.TagType:
			return refuse("an anchor, an alias or a tag is not read here; write the value itself, in quotes if it is a text")
		case token.MappingKeyType:
			return refuse("a key behind a question mark is not read here; write the key alone")
		case token.MergeKeyType:
			return refuse("a merge key is not read here; write the fields themselves")
		case token.DirectiveType:
			return refuse("a directive is not read here")
		case token.MappingValueType:
			if keys++; keys > keyLimit {
				return refuse("the document has more than %d keys", keyLimit)
			}
		case token.DocumentEndType:
			ended = true
			continue
		}
		if ended || started && t.Type == token.DocumentHeaderType {
			return refuse("a second document begins here; only one is read from a file")
		}
		started = true
		if depth.enter(t) > depthLimit {
			return refuse("the document is nested deeper than %d levels", depthLimit)
		}
	}
	return nil
}

// tokenize and parse guard against panics, which some malformed documents cause
// in the library.
func tokenize(text string) (tokens token.Tokens, err error) {
	defer recovered(&err)
	return lexer.Tokenize(text), nil
}

func parse(tokens token.Tokens) (parsed *ast.File, err error) {
	defer recovered(&err)
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

func recovered(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("the parser gave up: %v", cause)
	}
}

// unreadable tells an error of the library, without its picture of the file.
func (s *Source) unreadable(data []byte, err error) error {
	line, why := 1, "it is not YAML"
	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		// One of the library's messages quotes the file behind a colon.
		why, _, _ = strings.Cut(syntax.GetMessage(), ": \"")
		if t := syntax.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
	}
	if indentedByTab(data, line) {
		why = "a tab indents this line; indent with spaces"
	}
	return s.because(line, err, "the document cannot be read: %s", why)
}

func indentedByTab(data []byte, line int) bool {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return false
	}
	text := lines[line-1]
	indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
	return bytes.ContainsRune(indent, '\t')
}
