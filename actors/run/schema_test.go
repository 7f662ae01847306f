package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/offer"
)

// doubling is a schema of levels that each ask about the next one twice.
func doubling(keyword string, levels int) string {
	var text strings.Builder
	text.WriteString(`{"$ref":"#/$defs/s0","$defs":{`)
	for i := range levels {
		fmt.Fprintf(&text, `"s%d":{%q:[{"$ref":"#/$defs/s%d"},{"$ref":"#/$defs/s%d"}]},`, i, keyword, i+1, i+1)
	}
	fmt.Fprintf(&text, `"s%d":{}}}`, levels)
	return text.String()
}

// strangers are schemas of servers that mean harm.
var strangers = []string{
	`{"$ref":"#"}`,
	`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`,
	`{"$id":"http://a.example/","$ref":"http://a.example/"}`,
	`{"$anchor":"x","$ref":"#x"}`,
	`{"$dynamicAnchor":"x","$dynamicRef":"#x"}`,
	`{"not":{"$ref":"#"}}`,
	`{"if":{"$ref":"#"},"then":{},"else":{}}`,
	`{"dependentSchemas":{"a":{"$ref":"#"}}}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`,
	`{"propertyNames":{"$ref":"#"},"additionalProperties":{"$ref":"#"},"unevaluatedProperties":{"$ref":"#"}}`,
	`{"patternProperties":{"(a{100}){10}":{"$ref":"#"}}}`,
	`{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`,
	doubling("allOf", 60), doubling("anyOf", 60), doubling("oneOf", 60),
	`{"anyOf":[` + strings.Repeat(`{"type":"null"},`, 4000) + `{"type":"null"}]}`,
	`{"allOf":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`,
}

// nested is {"a":{"a":…}}, so many levels deep.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat(`}`, levels)
}

// A server's schema costs its own call at most, whatever it refers to.
func TestASchemaThatDoesNotEndIsLeftToItsServer(t *testing.T) {
	for _, schema := range strangers {
		for _, arguments := range []string{`{}`, `{"a":1}`, nested(60), `{"a":"` + strings.Repeat("x", 10_000) + `"}`} {
			checked(t, schema, arguments)
		}
	}
}

// What people write is checked, also where it refers to itself.
func TestASchemaThatRefersToItselfIsChecked(t *testing.T) {
	tree := `{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","required":["v"],
		"properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`
	if err := checked(t, tree, `{"v":1,"kids":[{"v":2,"kids":[]}]}`); err != nil {
		t.Error(err)
	}
	if err := checked(t, tree, `{"v":1,"kids":[{"v":"no"}]}`); err == nil {
		t.Error("a text passed for an integer")
	}
}

// checked checks arguments and what may be said about them.
func checked(t *testing.T, schema, arguments string) error {
	t.Helper()
	err := newSchemas().check(offer.Tool{Public: "s__t", InputSchema: json.RawMessage(schema)}, json.RawMessage(arguments))
	if err != nil && (failure.KindOf(err) != failure.KindInvalidArguments || len(err.Error()) > 4*longestMisfit+100 || strings.Contains(err.Error(), "\n")) {
		t.Fatalf("%.200s with %.200s: %v", schema, arguments, err)
	}
	return err
}

// Any schema and any arguments are checked, or left to the server; the same ones
// always with the same result.
func FuzzSchema(f *testing.F) {
	for _, schema := range strangers {
		if len(schema) < 1<<12 {
			f.Add(schema, `{"a":{"a":1}}`)
		}
	}
	f.Add(`{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^x","maxLength":3}},"required":["a"],"additionalProperties":false}`, `{"a":"xy"}`)
	f.Add(`{"properties":{"n":{"multipleOf":0,"minimum":1e308}},"minProperties":1}`, `{"n":1e-300}`)
	f.Add(`{"items":[true,false],"uniqueItems":true,"contains":{"const":null},"prefixItems":[{"enum":[{}]}]}`, `[{},null,null]`)
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		first := checked(t, schema, arguments)
		if second := checked(t, schema, arguments); (first == nil) != (second == nil) {
			t.Fatalf("first %v, then %v", first, second)
		}
	})
}
