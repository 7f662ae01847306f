package mcptest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// messages is the form of Anthropic's Messages API.
type messages struct{}

// wireMessages is a request as it comes.
type wireMessages struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    json.RawMessage `json:"system"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"input_schema"`
		CacheControl json.RawMessage `json:"cache_control"`
	} `json:"tools"`
}

// wireBlock is one block of a message's content.
type wireBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	IsError      bool            `json:"is_error"`
	Content      json.RawMessage `json:"content"`
	CacheControl json.RawMessage `json:"cache_control"`
}

// blocks reads a content, which is a text or a list of blocks.
func blocks(raw json.RawMessage) (read []wireBlock) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []wireBlock{{Type: "text", Text: text}}
	}
	_ = json.Unmarshal(raw, &read) // a content that is neither has no block
	return read
}

func textOf(read []wireBlock) string {
	var text strings.Builder
	for _, block := range read {
		text.WriteString(block.Text)
	}
	return text.String()
}

func (messages) parse(r *ModelRequest, body []byte) (invalid string) {
	var wire wireMessages
	if err := json.Unmarshal(body, &wire); err != nil {
		return "The request body is not valid JSON: " + err.Error()
	}
	r.Model, r.Stream, r.IncludeUsage, r.MaxTokens = wire.Model, wire.Stream, true, wire.MaxTokens
	if len(wire.System) > 0 {
		r.Messages = append(r.Messages, ModelMessage{Role: "system", Content: textOf(blocks(wire.System))})
	}
	for _, m := range wire.Messages {
		said := ModelMessage{Role: m.Role}
		spoke := false
		for _, block := range blocks(m.Content) {
			switch block.Type {
			case "text":
				said.Content, spoke = said.Content+block.Text, true
			case "tool_use":
				said.ToolCalls, spoke = append(said.ToolCalls, ModelCall{ID: block.ID, Name: block.Name, Arguments: string(block.Input)}), true
			case "tool_result":
				r.Messages = append(r.Messages, ModelMessage{
					Role: "tool", ToolCallID: block.ToolUseID, Content: textOf(blocks(block.Content)), Failed: block.IsError,
				})
			}
		}
		if spoke {
			r.Messages = append(r.Messages, said)
		}
	}
	for _, t := range wire.Tools {
		r.Tools = append(r.Tools, ModelTool{Name: t.Name, Description: t.Description, Parameters: t.InputSchema})
	}
	if r.Header.Get("Anthropic-Version") == "" {
		return "anthropic-version: header is required"
	}
	return wire.invalid()
}

// errorTypes are the names that the API has for statuses.
var errorTypes = map[int]string{
	http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error",
	http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests: "rate_limit_error", 529: "overloaded_error",
}

func (messages) failure(status int, message string) object {
	kind := errorTypes[status]
	switch {
	case kind == "" && status >= http.StatusInternalServerError:
		kind = "api_error"
	case kind == "":
		kind = "invalid_request_error"
	}
	return object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_1"}
}

func (messages) event(raw string) string { return "event: error\ndata: " + raw + "\n\n" }

// named is an event of the stream.
func named(members object) string {
	return "event: " + members["type"].(string) + "\ndata: " + encode(members) + "\n\n"
}

func (m messages) chunks(a ModelAnswer, request ModelRequest) (chunks []string, end string) {
	begun := m.message(request, []object{})
	begun["stop_reason"] = nil
	begun["usage"] = a.messagesUsage(0)
	chunks = []string{named(object{"type": "message_start", "message": begun}) + named(object{"type": "ping"})}
	index := 0
	add := func(block object, deltas []object) {
		// A block's begin comes with its first piece and its end with the last.
		start := named(object{"type": "content_block_start", "index": index, "content_block": block})
		for _, delta := range deltas {
			chunks = append(chunks, start+named(object{"type": "content_block_delta", "index": index, "delta": delta}))
			start = ""
		}
		chunks[len(chunks)-1] += named(object{"type": "content_block_stop", "index": index})
		index++
	}
	var texts []object
	for _, piece := range pieces(a.text + a.refusal) {
		texts = append(texts, object{"type": "text_delta", "text": piece})
	}
	if len(texts) > 0 {
		add(object{"type": "text", "text": ""}, texts)
	}
	for _, c := range a.calls {
		parts := append([]string{""}, halves(c.Arguments)...)
		if a.whole {
			parts = []string{c.Arguments}
		}
		var deltas []object
		for _, part := range parts {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": part})
		}
		add(toolUse(c, object{}), deltas)
	}
	usage := a.messagesUsage(-1)
	end = named(object{"type": "message_delta", "delta": object{"stop_reason": a.stopReason(), "stop_sequence": nil}, "usage": usage})
	return chunks, end + named(object{"type": "message_stop"})
}

func (m messages) completion(a ModelAnswer, request ModelRequest) object {
	content := []object{}
	if text := a.text + a.refusal; text != "" {
		content = append(content, object{"type": "text", "text": text})
	}
	for _, c := range a.calls {
		input := any(c.Arguments)
		if json.Valid([]byte(c.Arguments)) {
			input = json.RawMessage(c.Arguments)
		}
		content = append(content, toolUse(c, input))
	}
	whole := m.message(request, content)
	whole["stop_reason"] = a.stopReason()
	whole["usage"] = a.messagesUsage(-1)
	return whole
}

func (messages) message(request ModelRequest, content []object) object {
	return object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": request.Model, "content": content, "stop_sequence": nil,
	}
}

func toolUse(c ModelCall, input any) object {
	block := object{"type": "tool_use", "name": c.Name, "input": input}
	if c.ID != "" {
		block["id"] = c.ID
	}
	return block
}

// stopReason is the finish reason as the Messages API names it.
func (a ModelAnswer) stopReason() string {
	reason := a.finishReason()
	switch {
	case a.refusal != "" && a.finish == "", reason == "content_filter":
		return "refusal"
	case reason == "length":
		return "max_tokens"
	case reason == "tool_calls":
		return "tool_use"
	case reason == "stop":
		return "end_turn"
	default:
		return reason
	}
}

// messagesUsage is a usage as the Messages API counts it, with so many output tokens;
// -1 for all of them. An answer without a usage reports none.
func (a ModelAnswer) messagesUsage(output int) object {
	if a.usage == nil {
		return nil
	}
	if output < 0 {
		output = a.usage.Completion
	}
	members := object{"output_tokens": output}
	input := a.usage.Prompt
	for name, tokens := range map[string]*int{
		"cache_read_input_tokens": a.usage.Cached, "cache_creation_input_tokens": a.usage.Stored,
	} {
		if tokens != nil {
			members[name] = *tokens
			input -= *tokens
		}
	}
	members["input_tokens"] = input
	if a.usage.Reasoning != nil {
		members["output_tokens_details"] = object{"thinking_tokens": *a.usage.Reasoning}
	}
	return members
}
