package document

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/psych-systems/psych-go/failure"
)

// Explainer is a struct that knows why a field is none of its own, for fields
// that people may expect in it.
type Explainer interface {
	// WhyNot returns the reason, which ends a sentence; "" for a field of which
	// nothing is known.
	WhyNot(field string) string
}

// decode fills what into points to from the document's body.
func (s *Source) decode(into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return failure.New(failure.KindInternal,
			fmt.Sprintf("a document is decoded into a pointer, not into %T", into), nil)
	}
	return s.fill(s.body, target.Elem(), root)
}

// fill decodes the node at a path into a value.
func (s *Source) fill(node ast.Node, into reflect.Value, path string) error {
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		return s.fill(node, into.Elem(), path)
	}
	if into.Type() == durationType {
		return s.fillDuration(node, into, path)
	}
	if unmarshaler, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return s.fillText(node, unmarshaler, into, path)
	}
	switch into.Kind() {
	case reflect.Struct:
		return s.fillStruct(node, into, path)
	case reflect.Map:
		return s.fillMap(node, into, path)
	case reflect.Slice:
		return s.fillSlice(node, into, path)
	case reflect.Interface:
		return s.fillAny(node, into, path)
	default:
		return s.fillScalar(node, into, path)
	}
}

func (s *Source) fillStruct(node ast.Node, into reflect.Value, path string) error {
	fields := fieldsOf(into.Type())
	return s.each(node, into, path, func(key string, entry *ast.MappingValueNode) error {
		field, known := fields[key]
		switch {
		case !known:
			return s.at(entry.Key, "%s", unknown(key, path, into, fields))
		case kindOf(entry.Value) != null:
			return s.fill(entry.Value, into.Field(field.index), Join(path, key))
		case field.nonnull:
			return s.at(entry.Value, "%s must not be null; leave it out or write what it is", named(Join(path, key)))
		default:
			return nil
		}
	})
}

func (s *Source) fillMap(node ast.Node, into reflect.Value, path string) error {
	into.Set(reflect.MakeMap(into.Type()))
	return s.each(node, into, path, func(key string, entry *ast.MappingValueNode) error {
		value := reflect.New(into.Type().Elem()).Elem()
		if err := s.fill(entry.Value, value, Join(path, key)); err != nil {
			return err
		}
		into.SetMapIndex(reflect.ValueOf(key), value)
		return nil
	})
}

func (s *Source) fillSlice(node ast.Node, into reflect.Value, path string) error {
	sequence, ok := node.(*ast.SequenceNode)
	if !ok {
		return s.mismatch(node, into, path)
	}
	into.Set(reflect.MakeSlice(into.Type(), len(sequence.Values), len(sequence.Values)))
	for i, value := range sequence.Values {
		if err := s.fill(value, into.Index(i), Index(path, i)); err != nil {
			return err
		}
	}
	return nil
}

// fillAny decodes a value of any shape into what JSON would be decoded into,
// but whole numbers into int64.
func (s *Source) fillAny(node ast.Node, into reflect.Value, path string) error {
	kind := kindOf(node)
	if kind == null {
		into.SetZero()
		return nil
	}
	target := reflect.New(natural[kind]).Elem()
	if err := s.fill(node, target, path); err != nil {
		return err
	}
	into.Set(target)
	return nil
}

func (s *Source) fillText(node ast.Node, unmarshaler encoding.TextUnmarshaler, into reflect.Value, path string) error {
	written, ok := textOf(node)
	if !ok {
		return s.mismatch(node, into, path)
	}
	if err := unmarshaler.UnmarshalText([]byte(written)); err != nil {
		return s.because(positionOf(node).line, err, "%s cannot be used: %v", named(path), err)
	}
	return nil
}

func (s *Source) fillDuration(node ast.Node, into reflect.Value, path string) error {
	written, ok := textOf(node)
	if !ok {
		return s.mismatch(node, into, path)
	}
	duration, err := time.ParseDuration(written)
	if err != nil {
		return s.because(positionOf(node).line, err, "%s must be %s, and is %.40q", named(path), expected(into.Type()), written)
	}
	into.SetInt(int64(duration))
	return nil
}

// longestKey bounds a key, in bytes, so that sentences may quote it.
const longestKey = 256

// each visits a mapping's entries in order. It refuses a key that is no text,
// that has no value, or that stands twice.
func (s *Source) each(node ast.Node, into reflect.Value, path string, visit func(string, *ast.MappingValueNode) error) error {
	mapping, ok := node.(*ast.MappingNode)
	if !ok {
		return s.mismatch(node, into, path)
	}
	seen := make(map[string]int, len(mapping.Values))
	for _, entry := range mapping.Values {
		key, ok := textOf(entry.Key)
		if !ok {
			return s.at(entry.Key, "a key of %s must be a text, and is %s; write it in quotes", named(path), kindOf(entry.Key))
		}
		if len(key) > longestKey {
			return s.at(entry.Key, "a key of %s has %d bytes and %d are allowed", named(path), len(key), longestKey)
		}
		here := positionOf(entry.Key).line
		if first, twice := seen[key]; twice {
			return s.at(entry.Key, "%q stands twice in %s, first in line %d", key, named(path), first)
		}
		seen[key] = here
		if entry.Value == nil || entry.Value.GetToken().Type == token.ImplicitNullType {
			return s.at(entry.Key, "%s has no value; leave it out or write what it is", named(Join(path, key)))
		}
		if err := visit(key, entry); err != nil {
			return err
		}
	}
	return nil
}

// field is a struct's field, for a document.
type field struct {
	index   int
	nonnull bool
}

// fieldsOf maps a struct's yaml names to its fields.
func fieldsOf(structure reflect.Type) map[string]field {
	fields := map[string]field{}
	for i := range structure.NumField() {
		name, option, _ := strings.Cut(structure.Field(i).Tag.Get("yaml"), ",")
		if name != "" {
			fields[name] = field{index: i, nonnull: option == "nonnull"}
		}
	}
	return fields
}
