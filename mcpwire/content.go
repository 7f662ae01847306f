package mcpwire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// silentError is the text of an error result that has none of its own.
const silentError = "The tool reported an error without saying what went wrong."

// readResult reads the result of a call (MCP tools, "Tool Result").
func (s *Session) readResult(raw []byte) (*messages.ToolResult, error) {
	if !isObject(raw) {
		return nil, s.options.malformed("answered the call with what is no result of it", nil)
	}
	var content, structured, isError, kind, asked []byte
	err := eachMember(raw, func(name, value []byte) {
		switch string(name) {
		case "content":
			content = value
		case "structuredContent":
			structured = value
		case "isError":
			isError = value
		case "resultType":
			kind = value
		case "inputRequests":
			asked = value
		}
	})
	if err != nil {
		return nil, s.options.malformed("answered the call with what is no result of it", err)
	}
	switch text, ok := textOf(kind); {
	case absent(kind), text == "complete":
	case text == "input_required":
		return nil, s.options.fault(ClassRefused, failure.KindMcpInputRequiredError,
			"wants "+wanted(asked)+" first, which this client does not give", false, nil)
	case s.modern || !ok:
		return nil, s.options.malformed("answered the call with a result of an unknown type", nil)
	}
	result := &messages.ToolResult{IsError: string(isError) == "true", Structured: bytes.Clone(structured)}
	result.Text = render(content, structured)
	if result.IsError && result.Text == "" {
		result.Text = silentError
	}
	return result, nil
}

// wanted names what a server asks for (2026-07-28, multi round-trip requests).
func wanted(raw []byte) string {
	var requests map[string]struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(raw, &requests) != nil || len(requests) == 0 {
		return "to be asked again later"
	}
	methods := make(map[string]bool)
	for _, request := range requests {
		methods[cmp.Or(excerpt(request.Method), "input")] = true
	}
	return "an answer to " + excerpt(strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
}

// render is a result's content as text: text as it came, everything else named in
// a line of its own. Where no block has text, the structured value is the text.
func render(content, structured []byte) string {
	var parts []string
	spoken := false
	block := func(raw []byte) {
		text, isText := renderBlock(raw)
		spoken = spoken || isText && text != ""
		if text != "" {
			parts = append(parts, text)
		}
	}
	switch firstByte(content) {
	case '[':
		_ = eachElement(content, block)
	case '"', '{':
		block(content)
	default:
		if !absent(content) {
			block(content)
		}
	}
	if !spoken && len(structured) > 0 {
		parts = append(parts, validText(structured))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts, "\n")
}

// contentBlock is one block of content, of whatever type.
type contentBlock struct {
	kind, text, data, blob, mimeType, uri, name string
	hasText                                     bool
	resource                                    []byte
}

func readBlock(raw []byte) (b contentBlock, ok bool) {
	return b, eachMember(raw, func(name, value []byte) {
		switch string(name) {
		case "type":
			b.kind, _ = textOf(value)
		case "text":
			b.text, b.hasText = textOf(value)
		case "data":
			b.data, _ = textOf(value)
		case "blob":
			b.blob, _ = textOf(value)
		case "mimeType":
			b.mimeType, _ = textOf(value)
		case "uri":
			b.uri, _ = textOf(value)
		case "name":
			b.name, _ = textOf(value)
		case "resource":
			b.resource = value
		}
	}) == nil
}

// renderBlock is one block as text; isText says that the text is the block's own.
func renderBlock(raw []byte) (text string, isText bool) {
	if text, ok := textOf(raw); ok {
		return text, true
	}
	if absent(raw) {
		return "[an empty content block]", false
	}
	b, ok := readBlock(raw)
	if !ok {
		return fmt.Sprintf("[a content block that cannot be read, %d bytes]", len(raw)), false
	}
	switch b.kind {
	case "text":
		if b.hasText {
			return b.text, true
		}
		return "[a text block without text]", false
	case "image", "audio":
		return note(b.kind, b.mimeType, decodedSize(b.data), b.uri), false
	case "resource_link":
		return note("link to a resource", b.mimeType, -1, cmp.Or(b.uri, b.name)), false
	case "resource":
		return renderResource(b.resource)
	default:
		return note(fmt.Sprintf("content of type %q", excerpt(b.kind)), b.mimeType, len(raw), b.uri), false
	}
}

// renderResource is an embedded resource: its text where it has one.
func renderResource(raw []byte) (text string, isText bool) {
	if absent(raw) {
		return "[an embedded resource without content]", false
	}
	b, ok := readBlock(raw)
	if !ok {
		return "[an embedded resource that cannot be read]", false
	}
	if b.hasText {
		return b.text, true
	}
	if strings.HasPrefix(mediaType(b.mimeType), "text/") {
		if decoded, err := base64.StdEncoding.DecodeString(b.blob); err == nil && len(decoded) > 0 && utf8.Valid(decoded) {
			return string(decoded), true
		}
	}
	return note("embedded resource", b.mimeType, decodedSize(b.blob), b.uri), false
}

// note names content that is not shown: what it is, its MIME type, its size and
// where it is from. It never repeats the content.
func note(what, mimeType string, size int, uri string) string {
	var line strings.Builder
	line.WriteString("[" + what)
	if media := excerpt(mimeType); media != "" {
		line.WriteString(", " + media)
	}
	if size >= 0 {
		fmt.Fprintf(&line, ", %d bytes", size)
	}
	if scheme, _, inline := strings.Cut(uri, ","); inline && strings.HasPrefix(strings.ToLower(uri), "data:") {
		uri = scheme // a data URI is its content
	}
	if uri = excerpt(uri); uri != "" {
		line.WriteString(", " + uri)
	}
	line.WriteString("]")
	return line.String()
}

// decodedSize is how many bytes a base64 text stands for.
func decodedSize(text string) int {
	return len(strings.TrimRight(text, "=")) * 3 / 4
}
