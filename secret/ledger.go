package secret

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/psych-systems/psych-go/failure"
)

const (
	// ledgerLevels is how deep a ledger nests: tenant, principal, name.
	ledgerLevels = 3
	// ledgerKeys bounds the keys of a ledger: the parser's time grows with the
	// square of the keys in one mapping.
	ledgerKeys = 20_000
)

// ledger is a secrets file: tenant, principal and name to the value. It is read
// here, and not by a general decoder, because no error may quote what it holds.
type ledger map[string]map[string]map[string]string

// ledgerReader reads one file. Its errors tell file and line and nothing else of
// the content.
type ledgerReader struct{ path string }

func parseLedger(path string, data []byte) (ledger, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	reader := ledgerReader{path}
	body, err := reader.parse(data)
	if err != nil || body == nil {
		return nil, err
	}
	tenants := ledger{}
	err = reader.each(body, "the file", func(tenant string, node ast.Node) error {
		tenants[tenant] = map[string]map[string]string{}
		return reader.each(node, "a tenant", func(principal string, node ast.Node) error {
			names := map[string]string{}
			tenants[tenant][principal] = names
			return reader.each(node, "a principal", func(name string, node ast.Node) error {
				value, ok := text(node)
				if !ok || value == "" {
					return reader.at(node.GetToken(), "a secret must be a text that is not empty; write a number in quotes")
				}
				names[name] = value
				return nil
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return tenants, nil
}

// parse returns the file's one document, nil when there is none.
func (r ledgerReader) parse(data []byte) (body ast.Node, err error) {
	defer func() { // the library panics on some malformed documents
		if recover() != nil {
			body, err = nil, r.at(nil, "the secrets file is not YAML")
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if err := r.admit(tokens); err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		return nil, r.at(syntax.GetToken(), "what stands here is not YAML")
	}
	if err != nil {
		return nil, r.at(nil, "the secrets file is not YAML")
	}
	for _, document := range parsed.Docs {
		switch {
		case document.Body == nil || document.Body.Type() == ast.CommentType:
		case body != nil:
			return nil, r.at(document.Body.GetToken(), "a second document begins here; one is read")
		default:
			body = document.Body
		}
	}
	return body, nil
}

// admit refuses what a ledger has no use for before the parser sees it: the
// parser calls itself for each level of nesting.
func (r ledgerReader) admit(tokens token.Tokens) error {
	open, keys := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType:
			if open++; open > ledgerLevels {
				return r.at(t, "a secrets file nests tenant, principal and name, and nothing deeper")
			}
		case token.MappingEndType:
			open--
		case token.MappingValueType:
			if keys++; keys > ledgerKeys {
				return r.at(t, fmt.Sprintf("a secrets file has at most %d keys", ledgerKeys))
			}
		case token.SequenceStartType, token.SequenceEntryType, token.MappingKeyType, token.AnchorType,
			token.AliasType, token.TagType, token.MergeKeyType, token.DirectiveType:
			return r.at(t, "a secrets file holds mappings and texts only; write a text that begins with a special character in quotes")
		}
	}
	return nil
}

// each visits the entries of a mapping.
func (r ledgerReader) each(node ast.Node, what string, visit func(key string, value ast.Node) error) error {
	var values []*ast.MappingValueNode
	switch mapping := node.(type) {
	case *ast.MappingNode:
		values = mapping.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{mapping}
	case *ast.NullNode:
		return nil
	default:
		return r.at(node.GetToken(), what+" must be a mapping")
	}
	seen := map[string]bool{}
	for _, value := range values {
		key, ok := text(value.Key)
		switch {
		case !ok || key == "":
			return r.at(value.GetToken(), "a key must be a text; write a number in quotes")
		case seen[key]:
			return r.at(value.GetToken(), "a key stands twice in "+what)
		}
		seen[key] = true
		if err := visit(key, value.Value); err != nil {
			return err
		}
	}
	return nil
}

// text returns a scalar that is written as a text.
func text(node ast.Node) (string, bool) {
	switch scalar := node.(type) {
	case *ast.StringNode:
		return scalar.Value, true
	case *ast.LiteralNode:
		return scalar.Value.Value, true
	default:
		return "", false
	}
}

func (r ledgerReader) at(t *token.Token, what string) error {
	line := 1
	if t != nil && t.Position != nil {
		line = t.Position.Line
	}
	return failure.New(failure.KindSpecInvalid, fmt.Sprintf("%s:%d: %s", r.path, line, what), nil)
}
