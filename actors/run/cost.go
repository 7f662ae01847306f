package run

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A schema is a stranger's program: one that refers to itself never ends, and
// one that refers to another twice, which does so in turn, does not end in a
// lifetime. The library that runs it follows wherever it leads, and a stack that
// overflows ends the process. So the cost of a check is told before it is made.
const (
	// largestSchema bounds a schema, in bytes; mostSchemas bounds, by the braces in
	// it, the schemas that it is made of.
	largestSchema = 256 << 10
	mostSchemas   = 4096
	// mostSteps bounds the cost of one check: a step is a visit of a value by a
	// schema, or what takes about as long.
	mostSteps = 1 << 18
	// mostLevels bounds how deep visits may nest.
	mostLevels = 500
	// textStep is how many bytes of text cost a step.
	textStep = 16
	// repeated is what a pattern is taken to be long that repeats parts of itself.
	repeated = 1000
)

// budget is what is left of the cost of one check.
type budget struct {
	root  *jsonschema.Schema
	steps int
}

// affordable reports whether a value can be checked against a schema within
// bounds. It walks where the library would walk if nothing stopped it.
func affordable(root *jsonschema.Schema, value any) bool {
	b := budget{root: root, steps: mostSteps}
	return b.visit(root, value, 0)
}

func (b *budget) spend(steps int) bool {
	b.steps -= steps
	return b.steps > 0
}

// visit follows what a schema asks about a value. Everything is paid for that an
// error could print, which is the whole value, at each visit.
func (b *budget) visit(s *jsonschema.Schema, value any, level int) bool {
	if s == nil {
		return true
	}
	if level > mostLevels || !b.weigh(value) || !b.spend(1+len(s.Enum)+len(s.Required)) {
		return false
	}
	if text, ok := value.(string); ok && s.Pattern != "" && !b.match(s.Pattern, text) {
		return false
	}
	inPlace, followed := b.inPlace(s)
	if !followed {
		return false
	}
	for _, inner := range inPlace {
		if !b.visit(inner, value, level+1) {
			return false
		}
	}
	switch value := value.(type) {
	case []any:
		return b.elements(s, value, level+1)
	case map[string]any:
		return b.members(s, value, level+1)
	}
	return true
}

// inPlace are the schemas that judge the same value; followed is false where one
// is named in a way that is not followed here.
func (b *budget) inPlace(s *jsonschema.Schema) (all []*jsonschema.Schema, followed bool) {
	if s.DynamicRef != "" || s != b.root && s.ID != "" {
		return nil, false
	}
	if s.Ref != "" {
		target := b.find(s.Ref)
		if target == nil {
			return nil, false
		}
		all = append(all, target)
	}
	all = slices.Concat(all, s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else})
	for _, named := range []map[string]*jsonschema.Schema{s.DependentSchemas, s.DependencySchemas} {
		for _, inner := range named {
			all = append(all, inner)
		}
	}
	return all, true
}

func (b *budget) elements(s *jsonschema.Schema, values []any, level int) bool {
	for i, value := range values {
		asked := []*jsonschema.Schema{s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems}
		if i < len(s.PrefixItems) {
			asked = append(asked, s.PrefixItems[i])
		}
		if i < len(s.ItemsArray) {
			asked = append(asked, s.ItemsArray[i])
		}
		for _, inner := range asked {
			if !b.visit(inner, value, level) {
				return false
			}
		}
	}
	return true
}

func (b *budget) members(s *jsonschema.Schema, values map[string]any, level int) bool {
	for name, value := range values {
		if !b.visit(s.PropertyNames, name, level) {
			return false
		}
		for _, inner := range []*jsonschema.Schema{s.Properties[name], s.AdditionalProperties, s.UnevaluatedProperties} {
			if !b.visit(inner, value, level) {
				return false
			}
		}
		for pattern, inner := range s.PatternProperties {
			if !b.match(pattern, name) || !b.visit(inner, value, level) {
				return false
			}
		}
	}
	return true
}

// weigh pays for a value by its size.
func (b *budget) weigh(value any) bool {
	switch value := value.(type) {
	case string:
		return b.spend(1 + len(value)/textStep)
	case []any:
		return b.spend(1) && !slices.ContainsFunc(value, func(inner any) bool { return !b.weigh(inner) })
	case map[string]any:
		for name, inner := range value {
			if !b.spend(1+len(name)/textStep) || !b.weigh(inner) {
				return false
			}
		}
	}
	return b.spend(1)
}

// match pays for a search: a pattern's length times a text's.
func (b *budget) match(pattern, text string) bool {
	length := len(pattern)
	if strings.Contains(pattern, "{") {
		length = max(length, repeated)
	}
	return b.spend(1 + len(text)/textStep*length/textStep)
}

// find is the schema that a reference within the document leads to (RFC 6901);
// nil for any other reference.
func (b *budget) find(ref string) *jsonschema.Schema {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil
	}
	if pointer == "" {
		return b.root
	}
	for _, named := range []struct {
		prefix  string
		schemas map[string]*jsonschema.Schema
	}{{"/$defs/", b.root.Defs}, {"/definitions/", b.root.Definitions}, {"/properties/", b.root.Properties}} {
		if name, under := strings.CutPrefix(pointer, named.prefix); under && !strings.ContainsAny(name, "/~%") {
			return named.schemas[name]
		}
	}
	return nil
}
