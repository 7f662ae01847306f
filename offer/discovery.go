package offer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/narrow"
)

// listed is how many tools one list_tools answer holds at most, and
// listedDescription how many characters of each description.
const (
	listed            = 50
	listedDescription = 120
)

// The built-ins' texts are short because every request of a Run with a deferred
// server carries them.
var builtIns = []Tool{
	{
		Public: narrow.ListTools, Name: narrow.ListTools, Class: narrow.ReadOnly,
		Description: "List tools of the servers, or search them by words.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string"},"search":{"type":"string"},"offset":{"type":"integer","minimum":0}},"additionalProperties":false}`),
	},
	{
		Public: narrow.GetToolInfo, Name: narrow.GetToolInfo, Class: narrow.ReadOnly,
		Description: "Read a tool's description and input schema.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string"},"tool":{"type":"string"}},"required":["server","tool"],"additionalProperties":false}`),
	},
	{
		Public: narrow.CallTool, Name: narrow.CallTool, Class: narrow.Write,
		Description: "Call a server's tool by the name that list_tools gives.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string"},"tool":{"type":"string"},"arguments":{"type":"object"}},"required":["server","tool"],"additionalProperties":false}`),
	},
}

// listTools answers list_tools: one line a tool, narrowed as a call would be.
func (o *Offer) listTools(arguments json.RawMessage, tenant TenantPlane) (string, error) {
	var query struct {
		Server, Search string
		Offset         int
	}
	if err := json.Unmarshal(arguments, &query); err != nil {
		return "", invalidArguments(narrow.ListTools, "they are not of the form that its schema gives", err)
	}
	if query.Server != "" && o.server(query.Server) == nil {
		return "", o.unknownServer(query.Server)
	}
	var found []Tool
	for _, tool := range o.table.All() {
		if tool.Server == "" || (query.Server != "" && tool.Server != query.Server) {
			continue
		}
		if o.permitted(tool, tenant) == "" && matches(tool, query.Search) {
			found = append(found, tool)
		}
	}
	if len(found) == 0 {
		return "No tool matches.", nil
	}
	first := min(max(query.Offset, 0), len(found))
	last := min(first+listed, len(found))
	var out strings.Builder
	for _, tool := range found[first:last] {
		fmt.Fprintf(&out, "%s %s: %s\n", tool.Server, tool.Name, shorten(tool.Description, listedDescription))
	}
	if last < len(found) || first > 0 {
		fmt.Fprintf(&out, "Tools %d to %d of %d; search, or go on with offset %d.\n", min(first+1, last), last, len(found), last)
	}
	return out.String(), nil
}

// getToolInfo answers get_tool_info.
func (o *Offer) getToolInfo(arguments json.RawMessage, tenant TenantPlane) (string, error) {
	var query struct{ Server, Tool string }
	if err := json.Unmarshal(arguments, &query); err != nil {
		return "", invalidArguments(narrow.GetToolInfo, "they are not of the form that its schema gives", err)
	}
	tool, err := o.serverTool(query.Server, query.Tool, tenant)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s of server %s (%s)\n%s\nInput schema: %s\n",
		tool.Name, tool.Server, tool.Class, tool.Description, schemaText(tool.InputSchema)), nil
}

func schemaText(schema json.RawMessage) string {
	if len(schema) == 0 {
		return `{"type":"object"}`
	}
	return string(schema)
}

// matches reports whether each word of a search stands in a tool's name or
// description, whatever its case.
func matches(tool Tool, search string) bool {
	text := strings.ToLower(tool.Server + " " + tool.Name + " " + tool.Description)
	for _, word := range strings.Fields(strings.ToLower(search)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func invalidArguments(tool, why string, cause error) error {
	return failure.New(failure.KindInvalidArguments,
		fmt.Sprintf("the arguments of %s cannot be used: %s", tool, why), cause)
}
