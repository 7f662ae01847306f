package mcpwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
)

// paramTable is which arguments of which tool go into headers too (MCP
// 2026-07-28, "Custom Headers from Tool Parameters"). It comes from the raw tools
// and holds tools with such arguments only.
type paramTable struct {
	mu sync.RWMutex
	// etag is of the tools that the table was made from; "" before any.
	etag  string
	tools map[string][]paramBinding
	// shared is the list that this session has in common with others, which keeps it
	// for them; nil when it has its own.
	shared *toolList
}

// paramBinding mirrors one argument.
type paramBinding struct {
	// path are the names of the nested objects and at last of the argument.
	path []string
	// field is the header's whole name in canonical form.
	field string
}

func (t *paramTable) set(etag string, tools map[string][]paramBinding, shared *toolList) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.etag, t.tools, t.shared = etag, tools, shared
}

// made says that the table is of the tools with this etag.
func (t *paramTable) made(etag string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.etag == etag
}

func (t *paramTable) of(tool string) []paramBinding {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.tools[tool]
}

// headers are the headers of a call with these arguments, a valid JSON object.
func (t *paramTable) headers(tool string, arguments []byte) []ParamHeader {
	bindings := t.of(tool)
	if len(bindings) == 0 {
		return nil
	}
	headers := make([]ParamHeader, 0, len(bindings))
	for _, b := range bindings {
		if value, ok := fieldValue(at(arguments, b.path)); ok {
			headers = append(headers, ParamHeader{Name: b.field, Value: encodeField(value)})
		}
	}
	return headers
}

// at is the value at a path within nested objects; nil when there is none.
func at(object []byte, path []string) []byte {
	for _, name := range path {
		var found []byte
		if eachMember(object, func(member, value []byte) {
			if string(member) == name {
				found = value
			}
		}) != nil {
			return nil
		}
		object = found
	}
	return object
}

// largestInteger bounds the integers that go into headers.
const largestInteger = 1<<53 - 1

// fieldValue is a JSON string, integer or boolean as text; ok is false for
// everything else, which is not mirrored.
func fieldValue(raw []byte) (text string, ok bool) {
	switch {
	case absent(raw):
		return "", false
	case raw[0] == '"':
		return textOf(raw)
	case raw[0] == 't' || raw[0] == 'f':
		return string(raw), true
	}
	number, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || number != math.Trunc(number) || math.Abs(number) > largestInteger {
		return "", false
	}
	return strconv.FormatInt(int64(number), 10), true
}

var annotationName = []byte("x-mcp-header")

// bind finds the annotated arguments of an input schema. It fails, with why, on
// an annotation that the revision does not allow; such a tool is not offered.
func bind(schema []byte) ([]paramBinding, error) {
	if !bytes.Contains(schema, annotationName) {
		return nil, nil
	}
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, err
	}
	b := binder{seen: make(map[string]bool)}
	if err := b.walk(root, nil, true); err != nil {
		return nil, err
	}
	return b.found, nil
}

type binder struct {
	found []paramBinding
	seen  map[string]bool
}

// walk visits a schema. It is reachable as long as the way to it leads through
// "properties" only.
func (b *binder) walk(schema any, path []string, reachable bool) error {
	switch node := schema.(type) {
	case []any:
		for _, element := range node {
			if err := b.walk(element, path, false); err != nil {
				return err
			}
		}
	case map[string]any:
		if annotation, ok := node[string(annotationName)]; ok {
			if err := b.annotate(annotation, node["type"], path, reachable); err != nil {
				return err
			}
		}
		for keyword, inner := range node {
			if err := b.keyword(keyword, inner, path, reachable); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *binder) keyword(keyword string, inner any, path []string, reachable bool) error {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		// Maps of schemas: their own keys are names, not keywords.
		schemas, ok := inner.(map[string]any)
		if !ok {
			return nil
		}
		for name, schema := range schemas {
			next := append(path[:len(path):len(path)], name)
			if err := b.walk(schema, next, reachable && keyword == "properties"); err != nil {
				return err
			}
		}
		return nil
	case "const", "enum", "default", "examples", string(annotationName):
		return nil // values, not schemas
	default:
		return b.walk(inner, path, false)
	}
}

func (b *binder) annotate(annotation, kind any, path []string, reachable bool) error {
	where := strings.Join(path, ".")
	name, ok := annotation.(string)
	switch {
	case !ok || name == "":
		return fmt.Errorf("x-mcp-header of %q is no name", where)
	case !isToken(name):
		return fmt.Errorf("x-mcp-header of %q is no header name", where)
	case !reachable || len(path) == 0:
		return fmt.Errorf("x-mcp-header of %q stands where no single argument is", where)
	case kind != "string" && kind != "integer" && kind != "boolean":
		return fmt.Errorf("x-mcp-header of %q is on something other than a string, integer or boolean", where)
	case b.seen[strings.ToLower(name)]:
		return fmt.Errorf("x-mcp-header %q is used twice", name)
	}
	b.seen[strings.ToLower(name)] = true
	b.found = append(b.found, paramBinding{
		path: path, field: textproto.CanonicalMIMEHeaderKey(fieldParamPrefix + name),
	})
	return nil
}

// isToken says that a text is an HTTP field name (RFC 9110 section 5.6.2).
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c < '0' && !strings.ContainsRune("!#$%&'*+-.", rune(c)) || c > '9' && c < 'A' ||
			c > 'Z' && c < 'a' && !strings.ContainsRune("^_`", rune(c)) || c > 'z' && c != '|' && c != '~' {
			return false
		}
	}
	return text != ""
}
