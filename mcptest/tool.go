package mcptest

import (
	"context"
	"encoding/json"
	"net/http"
)

// Tool is a tool of a [Server]. Raw JSON reaches the wire byte for byte.
type Tool struct {
	Name        string
	Description string
	// InputSchema is raw JSON; "" is an object that takes anything.
	InputSchema string
	// OutputSchema is raw JSON; "" is none.
	OutputSchema string
	// Annotations is raw JSON; "" is none.
	Annotations string
	// Definition, when it is not "", is the raw JSON that tools/list shows in
	// place of everything above, so that it may be wrong.
	Definition string
	// Call runs the tool. Its context ends when the client hangs up or the server
	// stops. nil answers with the text "ok".
	Call func(ctx context.Context, call Call) Result
}

// Call is one call of a tool.
type Call struct {
	Tool      string
	Arguments json.RawMessage
	// Header is the HTTP request's header; Token is the bearer token in it.
	Header http.Header
	Token  string

	notify func(method, params string)
}

// Notify sends a notification with raw JSON params ahead of the call's answer,
// which then comes as an event stream.
func (c Call) Notify(method, params string) { c.notify(method, params) }

// Result is what a tool answers. The zero value is an empty content list.
type Result struct {
	raw string
}

// Text is a result of one text block.
func Text(text string) Result {
	return Raw(`{"content":[{"type":"text","text":` + quote(text) + `}]}`)
}

// ToolError is a result of one text block that says the tool failed.
func ToolError(text string) Result {
	return Raw(`{"content":[{"type":"text","text":` + quote(text) + `}],"isError":true}`)
}

// Raw is a whole result as raw JSON. A modern server adds resultType where it is
// an object without one.
func Raw(result string) Result { return Result{raw: result} }

func (r Result) json() string {
	if r.raw == "" {
		return `{"content":[]}`
	}
	return r.raw
}

func quote(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always encodes
	}
	return string(encoded)
}

// definition is the tool as tools/list shows it.
func (t Tool) definition() json.RawMessage {
	if t.Definition != "" {
		return json.RawMessage(t.Definition)
	}
	text := `{"name":` + quote(t.Name)
	if t.Description != "" {
		text += `,"description":` + quote(t.Description)
	}
	text += `,"inputSchema":` + t.schema()
	if t.OutputSchema != "" {
		text += `,"outputSchema":` + t.OutputSchema
	}
	if t.Annotations != "" {
		text += `,"annotations":` + t.Annotations
	}
	return json.RawMessage(text + `}`)
}

func (t Tool) schema() string {
	if t.InputSchema == "" {
		return `{"type":"object"}`
	}
	return t.InputSchema
}
