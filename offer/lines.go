package offer

import (
	"fmt"
	"strings"

	"github.com/psych-systems/psych-go/journal"
)

// description is how many characters of a server's description reach the model.
const description = 400

// lines tells the model about its servers, one line each.
func lines(servers []Server, offered []journal.OfferedServer) string {
	if len(servers) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("Tool servers:\n")
	for i, server := range servers {
		fmt.Fprintf(&out, "- %s%s\n", server.Alias, aboutServer(server, offered[i]))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func aboutServer(server Server, offered journal.OfferedServer) string {
	if !offered.Reachable {
		return ": unavailable, its tools cannot be used now: " + shorten(offered.Reason, description)
	}
	about := server.Description
	if about == "" {
		about = server.Snapshot.GetInstructions()
	}
	about = shorten(about, description)
	if about != "" {
		about = ": " + about
	}
	if offered.Deferred {
		return fmt.Sprintf(" (%d tools, by list_tools, get_tool_info and call_tool)%s", offered.ToolCount, about)
	}
	return about
}

// shorten makes one line of a text, of at most limit characters.
func shorten(text string, limit int) string {
	line := strings.Join(strings.Fields(text), " ")
	runes := []rune(line)
	if len(runes) <= limit {
		return line
	}
	return string(runes[:limit-1]) + "…"
}
