package journal

import (
	"maps"
	"slices"
)

// Settle returns the entries that end a Run over whatever is still open: each
// open call gets its one outcome, then the Run ends. A call that had started is
// unknown, because it may have run; one that had not is refused.
func Settle(state *State, end RunFinished) []Entry {
	entries := settleOpen(state, end.Error)
	return append(entries, end)
}

// SettleStarted returns the outcomes of the calls that had started when their
// owner was lost.
func SettleStarted(state *State, why *Error) []Entry {
	var entries []Entry
	for _, entry := range settleOpen(state, why) {
		if entry.(ToolCallFinished).Outcome == OutcomeUnknown {
			entries = append(entries, entry)
		}
	}
	return entries
}

func settleOpen(state *State, why *Error) []Entry {
	var entries []Entry
	for _, id := range slices.Sorted(maps.Keys(state.Nested)) {
		call := state.Nested[id]
		entries = append(entries, unanswered(call, call.Started.ParentCallID, why))
	}
	for _, call := range state.Calls {
		if call.Finished == nil {
			entries = append(entries, unanswered(call, "", why))
		}
	}
	return entries
}

func unanswered(call Call, parent string, why *Error) Entry {
	finished := ToolCallFinished{
		CallID: call.CallID, ParentCallID: parent, Name: call.Name, Outcome: OutcomeRefused,
		Result: "The call was not made.", Error: why,
	}
	if call.Started != nil {
		finished.Name = call.Started.Name
		finished.Outcome = OutcomeUnknown
		finished.Result = "The call was sent and its outcome is not known: it may have taken effect. Verify before repeating it."
	}
	return finished
}
