package mcpwire

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"
	"pgregory.net/rapid"
)

func zapNop() *zap.Logger { return zap.NewNop() }

func TestFieldsAreEncodedAsTheRevisionSays(t *testing.T) {
	for value, want := range map[string]string{
		"us-west1":           "us-west1",
		"":                   "",
		"a b\"c":             "a b\"c",
		"Hello, 世界":          "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":           "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":       "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"a\tb":               "=?base64?YQli?=",
		"\x7f":               "=?base64?fw==?=",
	} {
		if got := encodeField(value); got != want {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
	}
}

// Any text survives the way through a header.
func TestFieldsAreReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`=\?base64\?.*\?=`)).Draw(t, "text")
		field := encodeField(text)
		request, err := http.NewRequest(http.MethodGet, "http://x.invalid/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(fieldName, field)
		if err := request.Write(discard{}); err != nil {
			t.Fatalf("%q cannot be sent: %v", field, err)
		}
		got := field
		if inner, marked := strings.CutPrefix(field, base64Begin); marked && strings.HasSuffix(inner, base64End) {
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, base64End))
			if err != nil {
				t.Fatal(err)
			}
			got = string(decoded)
		}
		if got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestAnnotationsThatAreAllowedAndNot(t *testing.T) {
	wrap := func(property string) string { return `{"type":"object","properties":{"a":` + property + `}}` }
	cases := []struct {
		name, schema, want string // the fields bound, or "" for refused
	}{
		{"a string", wrap(`{"type":"string","x-mcp-header":"Region"}`), "a=Mcp-Param-Region"},
		{"an integer, oddly cased", wrap(`{"type":"integer","x-mcp-header":"my-COUNT"}`), "a=Mcp-Param-My-Count"},
		{"a boolean", wrap(`{"type":"boolean","x-mcp-header":"F"}`), "a=Mcp-Param-F"},
		{"nested", wrap(`{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"B"}}}`), "a.b=Mcp-Param-B"},
		{"an argument of that name", wrap(`{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}`), "-"},
		{"a value that looks like one", wrap(`{"type":"object","default":{"x-mcp-header":5},"enum":[{"x-mcp-header":5}]}`), "-"},
		{"a description of it", wrap(`{"type":"string","description":"see x-mcp-header"}`), "-"},
		{"empty", wrap(`{"type":"string","x-mcp-header":""}`), ""},
		{"null", wrap(`{"type":"string","x-mcp-header":null}`), ""},
		{"a number", wrap(`{"type":"string","x-mcp-header":5}`), ""},
		{"a space", wrap(`{"type":"string","x-mcp-header":"a b"}`), ""},
		{"a colon", wrap(`{"type":"string","x-mcp-header":"a:b"}`), ""},
		{"a line break", wrap(`{"type":"string","x-mcp-header":"a\r\nb"}`), ""},
		{"not ASCII", wrap(`{"type":"string","x-mcp-header":"größe"}`), ""},
		{"type number", wrap(`{"type":"number","x-mcp-header":"A"}`), ""},
		{"type object", wrap(`{"type":"object","x-mcp-header":"A"}`), ""},
		{"no type", wrap(`{"x-mcp-header":"A"}`), ""},
		{"two types", wrap(`{"type":["string","null"],"x-mcp-header":"A"}`), ""},
		{"twice", `{"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}}`, ""},
		{"at the root", `{"type":"string","x-mcp-header":"A"}`, ""},
		{"in items", wrap(`{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`), ""},
		{"in oneOf", wrap(`{"oneOf":[{"type":"string","x-mcp-header":"A"}]}`), ""},
		{"in properties of items", wrap(`{"type":"array","items":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}`), ""},
		{"in if", `{"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, ""},
		{"in $defs", `{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`, ""},
		{"in additionalProperties", `{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`, ""},
	}
	for _, c := range cases {
		found, err := bind([]byte(c.schema))
		var got []string
		for _, b := range found {
			got = append(got, strings.Join(b.path, ".")+"="+b.field)
		}
		text := strings.Join(got, " ")
		if err == nil && text == "" {
			text = "-"
		}
		if text != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, text, err, c.want)
		}
	}
}

func TestWhichValuesAreMirrored(t *testing.T) {
	for raw, want := range map[string]string{
		`"x"`: "x", `"\u00e9"`: "é", `""`: "", `42`: "42", `-7`: "-7", `42.0`: "42", `4e1`: "40", `true`: "true", `false`: "false",
		`9007199254740991`: "9007199254740991", `9007199254740992`: "-", `1.5`: "-", `null`: "-", `{}`: "-", `[1]`: "-", ``: "-",
	} {
		got, ok := fieldValue([]byte(raw))
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%s is mirrored as %q, want %q", raw, got, want)
		}
	}
}

func TestExcerptsFitASentence(t *testing.T) {
	for text, want := range map[string]string{
		" a\nb\t c: ": "a b c", "": "", "::": "", "x\x00y\u2028z": "x y z", "\xff": "\uFFFD",
		strings.Repeat("é", 400): strings.Repeat("é", longestServerText) + "…",
	} {
		if got := excerpt(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
