package mcptest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var (
	// messagesToolName and toolUseID are what the Messages API takes.
	messagesToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	toolUseID        = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

// cacheMarks is how many places a request may mark for the cache.
const cacheMarks = 4

// invalid says what the Messages API would refuse about a request; "" for nothing.
func (r *wireMessages) invalid() string {
	switch {
	case r.Model == "":
		return "model: Field required"
	case r.MaxTokens < 1:
		return "max_tokens: Field required"
	case len(r.Messages) == 0:
		return "messages: at least one message is required"
	case r.Messages[0].Role != "user":
		return `messages: first message must use the "user" role`
	}
	named := make(map[string]bool)
	for i, t := range r.Tools {
		var schema struct {
			Type string `json:"type"`
		}
		switch err := json.Unmarshal(t.InputSchema, &schema); {
		case !messagesToolName.MatchString(t.Name):
			return fmt.Sprintf("tools.%d.custom.name: String should match pattern", i)
		case named[t.Name]:
			return "tools: Tool names must be unique."
		case err != nil || schema.Type != "object":
			return fmt.Sprintf("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		named[t.Name] = true
	}
	if marks := r.marks(); marks > cacheMarks {
		return fmt.Sprintf("A maximum of %d blocks with cache_control may be provided. Found %d.", cacheMarks, marks)
	}
	return r.misplaced()
}

// marks counts the places that are marked for the cache.
func (r *wireMessages) marks() (count int) {
	marked := func(mark json.RawMessage) {
		if len(mark) > 0 && string(mark) != "null" {
			count++
		}
	}
	for _, t := range r.Tools {
		marked(t.CacheControl)
	}
	contents := []json.RawMessage{r.System}
	for _, m := range r.Messages {
		contents = append(contents, m.Content)
	}
	for _, content := range contents {
		for _, block := range blocks(content) {
			marked(block.CacheControl)
		}
	}
	return count
}

// misplaced says which block has no place where it stands.
func (r *wireMessages) misplaced() string {
	open, used := map[string]bool{}, map[string]bool{}
	for i, m := range r.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return fmt.Sprintf("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		read := blocks(m.Content)
		if len(read) == 0 {
			return fmt.Sprintf("messages.%d: content must not be empty", i)
		}
		spoke := false
		for j, block := range read {
			where := fmt.Sprintf("messages.%d.content.%d: ", i, j)
			switch {
			case block.Type == "text" && strings.TrimSpace(block.Text) == "":
				return where + "text content blocks must contain non-whitespace text"
			case block.Type == "tool_result" && (spoke || !open[block.ToolUseID]):
				return where + "unexpected `tool_use_id` found in `tool_result` blocks: " + block.ToolUseID
			case block.Type == "tool_result":
				delete(open, block.ToolUseID)
				continue
			case len(open) > 0:
				return where + "`tool_use` ids were found without `tool_result` blocks immediately after"
			}
			spoke = true
		}
		if len(open) > 0 {
			return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after", i)
		}
		for j, block := range read {
			if block.Type != "tool_use" {
				continue
			}
			where := fmt.Sprintf("messages.%d.content.%d.tool_use", i, j)
			var input map[string]json.RawMessage
			switch err := json.Unmarshal(block.Input, &input); {
			case m.Role != "assistant":
				return where + ": only an assistant may use a tool"
			case !toolUseID.MatchString(block.ID):
				return where + ".id: String should match pattern"
			case used[block.ID]:
				return where + ": `tool_use` ids must be unique"
			case !messagesToolName.MatchString(block.Name):
				return where + ".name: String should match pattern"
			case err != nil || input == nil:
				return where + ".input: Input should be an object"
			}
			open[block.ID], used[block.ID] = true, true
		}
	}
	if len(open) > 0 {
		return "`tool_use` ids were found without `tool_result` blocks immediately after"
	}
	return ""
}
