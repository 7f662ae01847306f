package mcpwire

import (
	"bytes"
	"fmt"
	"math"
	"net/textproto"
	"slices"
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

// mostParams bounds the arguments of a tool that go into headers: each costs a
// search of the arguments at each call, and servers take few headers.
const mostParams = 64

// deepestParam bounds, in levels of JSON, where an annotation is looked for: each
// level is gone through once more.
const deepestParam = 64

// bind finds the annotated arguments of an input schema, in its order. It fails,
// with why, on an annotation that the revision does not allow; such a tool is not
// offered. The schema is JSON that was checked for depth and validity.
func bind(schema []byte) ([]paramBinding, error) {
	b := binder{seen: make(map[string]bool)}
	if b.walk(schema, nil, 0, true); b.err != nil {
		return nil, b.err
	}
	return b.found, nil
}

// binder goes through a schema once and keeps nothing of it but what it found.
type binder struct {
	found []paramBinding
	seen  map[string]bool
	err   error // the first
}

// way is the way from the root to a schema, by the names of arguments.
type way struct {
	to   *way
	name string
}

func (w *way) path() []string {
	var path []string
	for ; w != nil; w = w.to {
		path = append(path, w.name)
	}
	slices.Reverse(path)
	return path
}

// walk visits a schema. It is reachable as long as the way to it leads through
// "properties" only.
func (b *binder) walk(schema []byte, at *way, level int, reachable bool) {
	if level++; level > deepestParam || b.err != nil || !holds(schema) {
		return
	}
	switch firstByte(schema) {
	case '[':
		_ = eachElement(schema, func(element []byte) { b.walk(element, at, level, false) })
	case '{':
		var annotation, kind []byte
		_ = eachMember(schema, func(keyword, inner []byte) {
			switch {
			case string(keyword) == string(annotationName):
				annotation = inner
			case string(keyword) == "type":
				kind = inner
			}
			b.keyword(string(keyword), inner, at, level, reachable)
		})
		if annotation != nil && b.err == nil {
			b.err = b.annotate(annotation, kind, at, reachable)
		}
	}
}

func (b *binder) keyword(keyword string, inner []byte, at *way, level int, reachable bool) {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		// Maps of schemas: their own keys are names, not keywords.
		if firstByte(inner) != '{' {
			return
		}
		_ = eachMember(inner, func(name, schema []byte) {
			b.walk(schema, &way{to: at, name: string(name)}, level+1, reachable && keyword == "properties")
		})
	case "const", "enum", "default", "examples", string(annotationName):
		// values, not schemas
	default:
		b.walk(inner, at, level, false)
	}
}

// holds says that an annotation may stand in a schema, so that the rest is passed
// over: a name may be written with escapes.
func holds(schema []byte) bool {
	return bytes.Contains(schema, annotationName) || bytes.IndexByte(schema, '\\') >= 0
}

func (b *binder) annotate(annotation, kind []byte, at *way, reachable bool) error {
	path := at.path()
	where := excerpt(strings.Join(path, "."))
	name, ok := textOf(annotation)
	of, _ := textOf(kind)
	switch {
	case !ok || name == "":
		return fmt.Errorf("x-mcp-header of %q is no name", where)
	case !isToken(name):
		return fmt.Errorf("x-mcp-header of %q is no header name", where)
	case !reachable || len(path) == 0:
		return fmt.Errorf("x-mcp-header of %q stands where no single argument is", where)
	case of != "string" && of != "integer" && of != "boolean":
		return fmt.Errorf("x-mcp-header of %q is on something other than a string, integer or boolean", where)
	case b.seen[strings.ToLower(name)]:
		return fmt.Errorf("x-mcp-header %q is used twice", excerpt(name))
	case len(b.found) == mostParams:
		return fmt.Errorf("more than %d arguments have an x-mcp-header", mostParams)
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
