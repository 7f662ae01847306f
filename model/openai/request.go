package openai

import (
	"bytes"

	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/endpoint"
)

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
	if err := endpoint.Write(body, request.Model); err != nil {
		return nil, err
	}
	body.WriteString(`,"messages":`)
	if err := endpoint.Write(body, messages(request)); err != nil {
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
	body.WriteString(`{"type":"function","function":{`)
	if err := endpoint.WriteTool(body, tool, "parameters"); err != nil {
		return err
	}
	body.WriteString(`}}`)
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
