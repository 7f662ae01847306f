package mcptest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// decodeHeader undoes the encoding of mirrored values (2026-07-28, Streamable
// HTTP, Value Encoding); false for a value that is not encoded as it must be.
func decodeHeader(value string) (string, bool) {
	inner, isEncoded := strings.CutPrefix(value, "=?base64?")
	inner, closed := strings.CutSuffix(inner, "?=")
	if isEncoded && closed {
		decoded, err := base64.StdEncoding.DecodeString(inner)
		return string(decoded), err == nil
	}
	for i := range len(value) {
		if c := value[i]; (c < ' ' || c > '~') && c != '\t' {
			return "", false
		}
	}
	return value, true
}

// oddParamHeader says what is wrong with the Mcp-Param headers of a call; "" for
// nothing.
func oddParamHeader(r Request, tools []Tool) string {
	var params struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(r.Params, &params)
	for _, t := range tools {
		if t.Name == r.Tool {
			return oddParamIn(r, json.RawMessage(t.schema()), params.Arguments)
		}
	}
	return ""
}

// oddParamIn follows a schema's properties and the arguments side by side.
func oddParamIn(r Request, schema, value json.RawMessage) string {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(schema, &object)
	_ = json.Unmarshal(value, &members)
	for name, property := range object.Properties {
		var annotation struct {
			Header string `json:"x-mcp-header"`
		}
		_ = json.Unmarshal(property, &annotation)
		if annotation.Header != "" {
			if odd := oddParam(r, "Mcp-Param-"+annotation.Header, members[name]); odd != "" {
				return odd
			}
		}
		if odd := oddParamIn(r, property, members[name]); odd != "" {
			return odd
		}
	}
	return ""
}

func oddParam(r Request, header string, value json.RawMessage) string {
	values := r.Header.Values(header)
	if len(value) == 0 || string(value) == "null" {
		if len(values) > 0 {
			return header + " is there and its argument is not"
		}
		return ""
	}
	if len(values) != 1 {
		return fmt.Sprintf("%s comes %d times", header, len(values))
	}
	decoded, ok := decodeHeader(values[0])
	if !ok {
		return header + " is not encoded as it must be"
	}
	want := string(value)
	if want[0] == '"' {
		_ = json.Unmarshal(value, &want)
	}
	if decoded == want {
		return ""
	}
	number, isNumber := new(big.Rat).SetString(decoded)
	wanted, wantsNumber := new(big.Rat).SetString(string(value))
	if isNumber && wantsNumber && number.Cmp(wanted) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %q does not match the body's %q", header, decoded, want)
}
