package document

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// kind is what a node is written as, in the words of a sentence.
type kind string

const (
	mapping kind = "a mapping"
	list    kind = "a list"
	text    kind = "a text"
	boolean kind = "true or false"
	whole   kind = "a whole number"
	number  kind = "a number"
	null    kind = "null"
	other   kind = "something else"
)

// natural is what a value of any shape becomes.
var natural = map[kind]reflect.Type{
	mapping: reflect.TypeFor[map[string]any](),
	list:    reflect.TypeFor[[]any](),
	text:    reflect.TypeFor[string](),
	boolean: reflect.TypeFor[bool](),
	whole:   reflect.TypeFor[int64](),
	number:  reflect.TypeFor[float64](),
	other:   reflect.TypeFor[string](),
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()

	// wholePattern and numberPattern are the numbers of YAML 1.2's core schema
	// (section 10.3.2), without those that JSON does not have.
	wholePattern  = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
	numberPattern = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// kindOf says what a node is written as. The library takes some numbers for
// texts; here a plain scalar that looks like a number is one.
func kindOf(node ast.Node) kind {
	switch node := node.(type) {
	case *ast.MappingNode:
		return mapping
	case *ast.SequenceNode:
		return list
	case *ast.BoolNode:
		return boolean
	case *ast.NullNode:
		return null
	case *ast.LiteralNode:
		return text
	case *ast.StringNode:
		if node.Token.Type == token.StringType && numberPattern.MatchString(node.Value) {
			return numeric(node.Value)
		}
		return text
	case *ast.IntegerNode:
		return numeric(node.Token.Value)
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return number
	default:
		return other
	}
}

func numeric(written string) kind {
	if wholePattern.MatchString(written) {
		return whole
	}
	return number
}

// textOf returns a scalar that is written as a text.
func textOf(node ast.Node) (string, bool) {
	if kindOf(node) != text {
		return "", false
	}
	switch node := node.(type) {
	case *ast.StringNode:
		return node.Value, true
	case *ast.LiteralNode:
		return node.Value.Value, true
	default:
		return "", false
	}
}

func (s *Source) fillScalar(node ast.Node, into reflect.Value, path string) error {
	written := node.GetToken().Value
	switch is := kindOf(node); {
	case into.Kind() == reflect.String && is == text:
		value, _ := textOf(node)
		into.SetString(value)
	case into.Kind() == reflect.Bool && is == boolean:
		into.SetBool(node.(*ast.BoolNode).Value)
	case into.CanInt() && node.Type() == ast.IntegerType && is != whole:
		return s.at(node, "%s must be written in decimal digits", named(path))
	case into.CanInt() && is == whole:
		value, err := strconv.ParseInt(written, 10, into.Type().Bits())
		if err != nil {
			return s.at(node, "%s is out of range", named(path))
		}
		into.SetInt(value)
	case into.CanFloat() && (is == number || is == whole):
		value, err := strconv.ParseFloat(written, 64)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return s.at(node, "%s is out of range", named(path))
		case err != nil || !numberPattern.MatchString(written):
			return s.at(node, "%s must be written in decimal digits", named(path))
		}
		into.SetFloat(value)
	default:
		return s.mismatch(node, into, path)
	}
	return nil
}

func (s *Source) mismatch(node ast.Node, into reflect.Value, path string) error {
	hint := ""
	if wanted := expected(into.Type()); wanted == text && kindOf(node) != mapping && kindOf(node) != list {
		hint = "; write it in quotes if it is meant as a text"
	}
	return s.at(node, "%s must be %s, and is %s%s", named(path), expected(into.Type()), kindOf(node), hint)
}

// expected says how a value of a type is written. A type that no document can
// fill is a mistake of the caller's, and panics.
func expected(into reflect.Type) kind {
	if into == durationType {
		return `a duration such as "90s" or "10m"`
	}
	if reflect.PointerTo(into).Implements(textType) {
		return text
	}
	switch into.Kind() {
	case reflect.Struct, reflect.Map:
		return mapping
	case reflect.Slice:
		return list
	case reflect.Bool:
		return boolean
	case reflect.String:
		return text
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return whole
	case reflect.Float64:
		return number
	default:
		panic(fmt.Sprintf("document: no document fills a %s", into))
	}
}
