package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model"
)

// noProperties is the schema of a tool that came without one.
const noProperties = `{"type":"object","properties":{}}`

type message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// encode writes the body of one request. It is put together by hand around the
// tools' schemas, because every encoder of JSON would rewrite those.
func encode(request model.Request) ([]byte, error) {
	body := &bytes.Buffer{}
	body.WriteString(`{"model":`)
	if err := write(body, request.Model); err != nil {
		return nil, err
	}
	body.WriteString(`,"messages":`)
	if err := write(body, messages(request)); err != nil {
		return nil, err
	}
	// Endpoints refuse an empty list of tools.
	for i, tool := range request.Tools {
		if i == 0 {
			body.WriteString(`,"tools":[`)
		} else {
			body.WriteByte(',')
		}
		if err := writeTool(body, tool); err != nil {
			return nil, err
		}
		if i == len(request.Tools)-1 {
			body.WriteByte(']')
		}
	}
	body.WriteString(`,"stream":true,"stream_options":{"include_usage":true}}`)
	return body.Bytes(), nil
}

func writeTool(body *bytes.Buffer, tool model.Tool) error {
	schema := []byte(tool.InputSchema)
	if len(schema) == 0 {
		schema = []byte(noProperties)
	}
	if !json.Valid(schema) {
		return failure.New(failure.KindModelError,
			fmt.Sprintf("the input schema of %s is no JSON and cannot be offered to the model", tool.Name), nil)
	}
	body.WriteString(`{"type":"function","function":{"name":`)
	if err := write(body, tool.Name); err != nil {
		return err
	}
	if tool.Description != "" {
		body.WriteString(`,"description":`)
		if err := write(body, tool.Description); err != nil {
			return err
		}
	}
	body.WriteString(`,"parameters":`)
	body.Write(schema)
	body.WriteString(`}}`)
	return nil
}

// write encodes a value without the escapes that JSON inside HTML would need.
func write(body *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return failure.New(failure.KindModelError, "the request to the model cannot be written as JSON", err)
	}
	body.Truncate(body.Len() - 1) // the encoder's newline
	return nil
}

func messages(request model.Request) []message {
	all := make([]message, 0, len(request.Messages)+1)
	if request.System != "" {
		all = append(all, message{Role: "system", Content: &request.System})
	}
	for _, said := range request.Messages {
		one := message{Role: string(said.Role), Content: &said.Text, ToolCallID: said.CallID}
		for _, call := range said.ToolCalls {
			arguments := call.Arguments
			if arguments == "" {
				// Endpoints read the arguments of past calls, and nothing is no JSON.
				arguments = "{}"
			}
			one.ToolCalls = append(one.ToolCalls, toolCall{
				ID: call.ID, Type: "function", Function: function{Name: call.Name, Arguments: arguments},
			})
		}
		if said.Text == "" && len(one.ToolCalls) > 0 {
			one.Content = nil
		}
		all = append(all, one)
	}
	return all
}

// takenIDs are the ids of the conversation's calls so far. A new call must not
// bear one of them: its answer would be taken for the old call's.
func takenIDs(request model.Request) map[string]bool {
	taken := map[string]bool{}
	for _, said := range request.Messages {
		for _, call := range said.ToolCalls {
			taken[call.ID] = true
		}
	}
	return taken
}
