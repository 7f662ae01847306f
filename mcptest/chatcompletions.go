package mcptest

import (
	"encoding/json"
	"fmt"
)

// chatCompletions is the form of OpenAI and of the many endpoints like it.
type chatCompletions struct{}

func (chatCompletions) parse(r *ModelRequest, body []byte) (invalid string) {
	var wire struct {
		Model         string `json:"model"`
		MaxTokens     int    `json:"max_completion_tokens"`
		Stream        bool   `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return fmt.Sprintf("the body cannot be read: %v", err)
	}
	r.Model, r.Stream, r.IncludeUsage, r.MaxTokens = wire.Model, wire.Stream, wire.StreamOptions.IncludeUsage, wire.MaxTokens
	for _, m := range wire.Messages {
		message := ModelMessage{Role: m.Role, Content: string(m.Content), ToolCallID: m.ToolCallID}
		_ = json.Unmarshal(m.Content, &message.Content) // else it stays raw
		for _, c := range m.ToolCalls {
			message.ToolCalls = append(message.ToolCalls, ModelCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		r.Messages = append(r.Messages, message)
	}
	for _, t := range wire.Tools {
		r.Tools = append(r.Tools, ModelTool(t.Function))
	}
	return r.invalid()
}

func (chatCompletions) failure(_ int, message string) object {
	return object{"error": object{"message": message, "type": "invalid_request_error", "param": nil, "code": nil}}
}

func (chatCompletions) event(raw string) string { return "data: " + raw + "\n\n" }

func (c chatCompletions) chunks(a ModelAnswer, request ModelRequest) (chunks []string, end string) {
	for _, delta := range a.deltas() {
		chunks = append(chunks, c.event(encode(chunk(request, []object{{"index": 0, "delta": delta, "finish_reason": nil}}))))
	}
	end = c.event(encode(chunk(request, []object{{"index": 0, "delta": object{}, "finish_reason": a.finishReason()}})))
	if request.IncludeUsage && a.usage != nil {
		usage := chunk(request, []object{})
		usage["usage"] = a.usage.object()
		end += c.event(encode(usage))
	}
	return chunks, end + c.event("[DONE]")
}

// deltas are the pieces of a streamed answer, before its finish reason.
func (a ModelAnswer) deltas() []object {
	deltas := []object{{"role": "assistant", "content": ""}}
	for _, piece := range pieces(a.text) {
		deltas = append(deltas, object{"content": piece})
	}
	for _, piece := range pieces(a.refusal) {
		deltas = append(deltas, object{"refusal": piece})
	}
	for i, c := range a.calls {
		call := func(members object) { deltas = append(deltas, object{"tool_calls": []object{members}}) }
		first := object{"index": i, "type": "function", "function": object{"name": c.Name, "arguments": ""}}
		if c.ID != "" {
			first["id"] = c.ID
		}
		if a.whole {
			first["function"] = object{"name": c.Name, "arguments": c.Arguments}
			call(first)
			continue
		}
		call(first)
		for _, part := range halves(c.Arguments) {
			call(object{"index": i, "function": object{"arguments": part}})
		}
	}
	return deltas
}

func chunk(request ModelRequest, choices []object) object {
	return object{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": request.At.Unix(),
		"model": request.Model, "choices": choices,
	}
}

func (chatCompletions) completion(a ModelAnswer, request ModelRequest) object {
	message := object{"role": "assistant", "content": a.text, "refusal": nil}
	if a.refusal != "" {
		message["content"], message["refusal"] = nil, a.refusal
	}
	var calls []object
	for _, c := range a.calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	whole := chunk(request, []object{{"index": 0, "message": message, "finish_reason": a.finishReason()}})
	whole["object"] = "chat.completion"
	if a.usage != nil {
		whole["usage"] = a.usage.object()
	}
	return whole
}

func (u ModelUsage) object() object {
	members := object{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
	}
	details := func(of, name string, tokens *int) {
		if tokens == nil {
			return
		}
		if members[of] == nil {
			members[of] = object{}
		}
		members[of].(object)[name] = *tokens
	}
	details("prompt_tokens_details", "cached_tokens", u.Cached)
	details("prompt_tokens_details", "cache_write_tokens", u.Stored)
	details("completion_tokens_details", "reasoning_tokens", u.Reasoning)
	return members
}
