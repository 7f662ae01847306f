package mcpwire

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"
)

// Whatever a schema holds, its arguments' headers are ones that HTTP can carry,
// and they are the same ones, in the same order, each time that they are made.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"integer","x-mcp-header":"B"},"c":{"type":"boolean","x-mcp-header":"C"}}}`,
		`{"properties":{"a":{"type":"object","properties":{"b":{"type":"string","\u0078-mcp-header":"B"}}}}}`,
		`{"$defs":{"d":{"x-mcp-header":"A"}},"x-mcp-header":5}`, `{"properties":{"x-mcp-header":{"type":"string"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nb"}}}`, `{"properties":[{"x-mcp-header":"A"}],"enum":[{"x-mcp-header":1}]}`,
	} {
		f.Add([]byte(seed), []byte(`{"a":"größe","b":7,"c":true,"a":{"b":"=?base64?x?="}}`))
	}
	f.Fuzz(func(t *testing.T, schema, arguments []byte) {
		if !isObject(schema) || !isObject(arguments) || eachMember(schema, func(_, _ []byte) {}) != nil {
			return
		}
		found, err := bind(schema)
		again, errAgain := bind(schema)
		if !reflect.DeepEqual(found, again) || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("%v (%v), then %v (%v)", found, err, again, errAgain)
		}
		if err != nil {
			if len(err.Error()) > 8*longestServerText || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		if len(found) > mostParams {
			t.Fatalf("%d headers", len(found))
		}
		table := paramTable{tools: map[string][]paramBinding{"t": found}}
		seen := make(map[string]bool)
		for _, h := range table.headers("t", arguments) {
			if !httpguts.ValidHeaderFieldName(h.Name) || !httpguts.ValidHeaderFieldValue(h.Value) || seen[strings.ToLower(h.Name)] {
				t.Fatalf("%q: %q", h.Name, h.Value)
			}
			seen[strings.ToLower(h.Name)] = true
		}
	})
}

// What a field carries is found again in it, byte for byte.
func FuzzField(f *testing.F) {
	for _, seed := range []string{"search", "größe", "", " a", "a ", "a\r\nb", "=?base64?YQ==?=", "\x00", "\xff", "\U0001F600", "a\tb", "=?base64?", "?="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := encodeField(text)
		if !httpguts.ValidHeaderFieldValue(value) || strings.TrimSpace(value) != value {
			t.Fatalf("%q is written as %q", text, value)
		}
		back := value
		if inner, ok := strings.CutPrefix(value, base64Begin); ok && strings.HasSuffix(inner, base64End) {
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, base64End))
			if err != nil {
				t.Fatal(err)
			}
			back = string(decoded)
		}
		if back != text {
			t.Fatalf("%q came back as %q", text, back)
		}
		if isToken(text) != httpguts.ValidHeaderFieldName(text) {
			t.Fatalf("%q is a field name for one reader only", text)
		}
	})
}

// An annotation costs no more than its place in the schema, however many stand
// around it and however deep.
func TestASchemaFullOfAnnotationsIsRefused(t *testing.T) {
	var many strings.Builder
	for i := range mostParams + 1 {
		fmt.Fprintf(&many, `"p%d":{"type":"string","x-mcp-header":"H%d"},`, i, i)
	}
	if _, err := bind([]byte(`{"properties":{` + many.String() + `"last":{}}}`)); err == nil {
		t.Error("a header for every argument was taken")
	}
	deep := strings.Repeat(`{"properties":{"a":`, depthLimit/2-1) + `{"type":"string","x-mcp-header":"A"}` + strings.Repeat(`}}`, depthLimit/2-1)
	if found, err := bind([]byte(deep)); err != nil || found != nil {
		t.Errorf("%v, %v", found, err)
	}
}
