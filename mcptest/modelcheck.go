package mcptest

import (
	"fmt"
	"regexp"
)

// toolName is what endpoints take as the name of a function.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// invalid says what a real endpoint would refuse about a request; "" for nothing.
func (r *ModelRequest) invalid() string {
	if r.Model == "" {
		return "you must provide a model parameter"
	}
	if len(r.Messages) == 0 {
		return "[] is too short - 'messages'"
	}
	named := make(map[string]bool)
	for i, t := range r.Tools {
		if !toolName.MatchString(t.Name) {
			return fmt.Sprintf("Invalid 'tools[%d].function.name': string does not match pattern", i)
		}
		if named[t.Name] {
			return fmt.Sprintf("Invalid 'tools[%d].function.name': tool names must be unique", i)
		}
		named[t.Name] = true
	}
	return r.unpaired()
}

// unpaired says which call has no result, or which result no call.
func (r *ModelRequest) unpaired() string {
	open := make(map[string]bool) // calls that wait for their result
	for i, m := range r.Messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Sprintf("Invalid 'messages[%d]': a tool message must follow the tool call that it answers", i)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("Invalid 'messages[%d]': %d tool calls before it have no result", i, len(open))
		}
		for _, c := range m.ToolCalls {
			if c.ID == "" || open[c.ID] {
				return fmt.Sprintf("Invalid 'messages[%d]': a tool call without an id of its own", i)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("%d tool calls have no result", len(open))
	}
	return ""
}
