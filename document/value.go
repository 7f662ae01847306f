package document

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// decode fills the struct that into points to from the document's body.
func (s *Source) decode(into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("a document is decoded into a pointer to a struct, not into %T", into)
	}
	return s.fill(s.body, target.Elem(), "the document", 0)
}

// fill decodes one node into one value; what names it for people.
func (s *Source) fill(node ast.Node, into reflect.Value, what string, depth int) error {
	if depth > depthLimit {
		return s.at(lineOf(node), fmt.Sprintf("%s is nested deeper than %d levels", what, depthLimit))
	}
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return s.at(lineOf(node), fmt.Sprintf("%s uses an anchor, an alias or a tag; write the value itself", what))
	case *ast.NullNode:
		if into.Kind() == reflect.Pointer || into.Kind() == reflect.Slice || into.Kind() == reflect.Map {
			return nil
		}
		return s.at(lineOf(node), fmt.Sprintf("%s must be %s, and is empty", what, expected(into.Type())))
	}
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		return s.fill(node, into.Elem(), what, depth)
	}
	if into.Type() == reflect.TypeFor[time.Duration]() {
		return s.fillDuration(node, into, what)
	}
	if unmarshaler, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return s.fillText(node, unmarshaler, into, what)
	}
	switch into.Kind() {
	case reflect.Struct:
		return s.fillStruct(node, into, what, depth)
	case reflect.Map:
		return s.fillMap(node, into, what, depth)
	case reflect.Slice:
		return s.fillSlice(node, into, what, depth)
	case reflect.Interface:
		return s.fillAny(node, into, what, depth)
	default:
		return s.fillScalar(node, into, what)
	}
}

func (s *Source) fillText(node ast.Node, unmarshaler encoding.TextUnmarshaler, into reflect.Value, what string) error {
	text, ok := textOf(node)
	if !ok {
		return s.mismatch(node, into, what)
	}
	if err := unmarshaler.UnmarshalText([]byte(text)); err != nil {
		return s.because(lineOf(node), fmt.Sprintf("%s %q cannot be used: %v", what, text, err), err)
	}
	return nil
}

func (s *Source) fillDuration(node ast.Node, into reflect.Value, what string) error {
	text, ok := textOf(node)
	if !ok {
		return s.mismatch(node, into, what)
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		return s.because(lineOf(node), fmt.Sprintf("%s must be %s, and is %q", what, expected(into.Type()), text), err)
	}
	into.SetInt(int64(duration))
	return nil
}

func (s *Source) fillStruct(node ast.Node, into reflect.Value, what string, depth int) error {
	entries, ok := entriesOf(node)
	if !ok {
		return s.mismatch(node, into, what)
	}
	fields := fieldsOf(into.Type())
	return s.each(entries, what, func(key string, entry *ast.MappingValueNode) error {
		index, known := fields[key]
		if !known {
			return s.at(lineOf(entry), unknownField(key, what, fields))
		}
		return s.fill(entry.Value, into.Field(index), key, depth+1)
	})
}

func (s *Source) fillMap(node ast.Node, into reflect.Value, what string, depth int) error {
	entries, ok := entriesOf(node)
	if !ok {
		return s.mismatch(node, into, what)
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(entries)))
	return s.each(entries, what, func(key string, entry *ast.MappingValueNode) error {
		value := reflect.New(into.Type().Elem()).Elem()
		if err := s.fill(entry.Value, value, key, depth+1); err != nil {
			return err
		}
		into.SetMapIndex(reflect.ValueOf(key), value)
		return nil
	})
}

func (s *Source) fillSlice(node ast.Node, into reflect.Value, what string, depth int) error {
	sequence, ok := node.(*ast.SequenceNode)
	if !ok {
		return s.mismatch(node, into, what)
	}
	into.Set(reflect.MakeSlice(into.Type(), len(sequence.Values), len(sequence.Values)))
	for i, value := range sequence.Values {
		if err := s.fill(value, into.Index(i), fmt.Sprintf("%s[%d]", what, i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// fillAny decodes a value of any shape, as JSON would be decoded.
func (s *Source) fillAny(node ast.Node, into reflect.Value, what string, depth int) error {
	var target reflect.Value
	switch scalar := node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		target = reflect.New(reflect.TypeFor[map[string]any]()).Elem()
	case *ast.SequenceNode:
		target = reflect.New(reflect.TypeFor[[]any]()).Elem()
	case *ast.BoolNode:
		target = reflect.ValueOf(scalar.Value)
	case *ast.IntegerNode:
		target = reflect.ValueOf(scalar.Value)
	case *ast.FloatNode:
		target = reflect.ValueOf(scalar.Value)
	default:
		text, ok := textOf(node)
		if !ok {
			return s.at(lineOf(node), fmt.Sprintf("%s cannot be read", what))
		}
		target = reflect.ValueOf(text)
	}
	if target.CanAddr() {
		if err := s.fill(node, target, what, depth); err != nil {
			return err
		}
	}
	into.Set(target)
	return nil
}

func (s *Source) fillScalar(node ast.Node, into reflect.Value, what string) error {
	switch scalar := node.(type) {
	case *ast.BoolNode:
		if into.Kind() == reflect.Bool {
			into.SetBool(scalar.Value)
			return nil
		}
	case *ast.IntegerNode:
		if number, ok := integerOf(scalar); ok && into.CanInt() && !into.OverflowInt(number) {
			into.SetInt(number)
			return nil
		}
	default:
		if text, ok := textOf(node); ok && into.Kind() == reflect.String {
			into.SetString(text)
			return nil
		}
	}
	return s.mismatch(node, into, what)
}

func integerOf(node *ast.IntegerNode) (int64, bool) {
	switch number := node.Value.(type) {
	case int64:
		return number, true
	case uint64:
		return int64(number), number <= math.MaxInt64
	default:
		return 0, false
	}
}

func textOf(node ast.Node) (string, bool) {
	switch scalar := node.(type) {
	case *ast.StringNode:
		return scalar.Value, true
	case *ast.LiteralNode:
		return scalar.Value.Value, true
	default:
		return "", false
	}
}

// each visits a mapping's entries in order; a key that stands twice is refused.
func (s *Source) each(entries []*ast.MappingValueNode, what string, visit func(string, *ast.MappingValueNode) error) error {
	seen := map[string]int{}
	for _, entry := range entries {
		if _, merge := entry.Key.(*ast.MergeKeyNode); merge {
			return s.at(lineOf(entry), fmt.Sprintf("%s uses a merge key; write the values themselves", what))
		}
		key := keyOf(entry)
		if first, twice := seen[key]; twice {
			return s.at(lineOf(entry), fmt.Sprintf("%q stands twice in %s, first in line %d", key, what, first))
		}
		seen[key] = lineOf(entry)
		if err := visit(key, entry); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) mismatch(node ast.Node, into reflect.Value, what string) error {
	return s.at(lineOf(node), fmt.Sprintf("%s must be %s, and is %s", what, expected(into.Type()), described(node)))
}

// fieldsOf maps a struct's yaml names to its fields.
func fieldsOf(structure reflect.Type) map[string]int {
	fields := map[string]int{}
	for i := range structure.NumField() {
		if name, _, _ := strings.Cut(structure.Field(i).Tag.Get("yaml"), ","); name != "" && name != "-" {
			fields[name] = i
		}
	}
	return fields
}

func unknownField(key, what string, fields map[string]int) string {
	var known []string
	for name := range fields {
		known = append(known, name)
	}
	slices.Sort(known)
	return fmt.Sprintf("%s has no field %q; its fields are %s", what, key, strings.Join(known, ", "))
}

func expected(kind reflect.Type) string {
	if kind.Kind() == reflect.Pointer {
		return expected(kind.Elem())
	}
	if kind == reflect.TypeFor[time.Duration]() {
		return `a duration such as "90s" or "10m"`
	}
	if reflect.PointerTo(kind).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a text"
	}
	switch kind.Kind() {
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	default:
		return "a whole number"
	}
}

func described(node ast.Node) string {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode:
		return "a whole number"
	case *ast.FloatNode:
		return "a number"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	default:
		return "something else"
	}
}

// unparsed tells a parser's error in one line, without its picture of the file.
func (s *Source) unparsed(err error) error {
	line, why := 1, "it is not YAML"
	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		why = syntax.GetMessage()
		if token := syntax.GetToken(); token != nil && token.Position != nil {
			line = token.Position.Line
		}
	}
	why, _, _ = strings.Cut(why, "\n")
	return s.because(line, "the document cannot be read: "+why, err)
}
