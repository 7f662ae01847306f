package endpoint

import (
	"fmt"

	"github.com/psych-systems/psych-go/model"
)

// TakenIDs are the ids of the conversation's calls so far. A new call must not
// bear one of them: its result would be taken for the old call's.
func TakenIDs(request model.Request) map[string]bool {
	taken := map[string]bool{}
	for _, said := range request.Messages {
		for _, call := range said.ToolCalls {
			taken[call.ID] = true
		}
	}
	return taken
}

// GiveIDs makes up the ids of calls that came without one, or with one that is
// taken by an earlier call.
func GiveIDs(calls []model.ToolCall, taken map[string]bool) {
	fresh := len(taken)
	for i := range calls {
		for calls[i].ID == "" || taken[calls[i].ID] {
			fresh++
			calls[i].ID = fmt.Sprintf("call_%d", fresh)
		}
		taken[calls[i].ID] = true
	}
}
