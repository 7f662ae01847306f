package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
)

const toldStory = `
run      run_7 of support, version 0123456789ab, for acme/ann
turn 1   3 tools: desk 2, crm 351 on demand
without  mail, which is unavailable: the connection timed out
model    1.5 s, 12 tokens in and 5 out, asks for 2 calls at once:
         desk__find, desk__drop
         says: One moment.
ok       desk__find {"order":7}  3 ms
         a teapot, in two lines
refused  desk__drop {"order":7}
         desk__drop is destructive and the selector @destructive
         holds it for an approval
turn 2   2 tools: desk 2; new: desk__note; gone: desk__find,
         call_tool
model    2 ms, asks for desk__note
unknown  desk__note  1.0 s
         the connection was cut
model    2 ms, answers
end      completed after 2 turns, 2 calls and 4.0 s
`

func TestAStoryIsReadTopToBottom(t *testing.T) {
	began := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	told := newStory(false, 66)
	var lines []string
	for i, entry := range []journal.Entry{
		journal.RunStarted{Spec: "support", Version: "0123456789abcdef", Scope: messages.Scope{Tenant: "acme", Principal: "ann"}},
		journal.TurnStarted{
			Turn:  1,
			Tools: []journal.OfferedTool{{Name: "desk__find"}, {Name: "desk__drop"}, {Name: "call_tool"}},
			Servers: []journal.OfferedServer{
				{Name: "desk", Reachable: true, ToolCount: 2},
				{Name: "crm", Reachable: true, ToolCount: 351, Deferred: true},
				{Name: "mail", Reason: "the connection timed out"},
			},
		},
		journal.ModelCallFinished{
			Text: "One moment.", DurationMS: 1500, Usage: model.Usage{Input: new(int64(12)), Output: new(int64(5))},
			ToolCalls: []journal.RequestedCall{
				{CallID: "a", Name: "desk__find", Arguments: `{"order":7}`}, {CallID: "b", Name: "desk__drop", Arguments: `{"order":7}`},
			},
		},
		journal.ToolCallStarted{CallID: "a", Name: "desk__find", Arguments: json.RawMessage(`{"order":7}`)},
		journal.ToolCallFinished{CallID: "a", Name: "desk__find", Outcome: journal.OutcomeOK, Result: "a teapot,\nin two\x1b lines", DurationMS: 3},
		journal.ToolCallFinished{CallID: "b", Name: "desk__drop", Outcome: journal.OutcomeRefused, Error: &journal.Error{
			Kind:    failure.KindApprovalDenied,
			Message: "desk__drop is destructive and the selector @destructive holds it for an approval",
		}},
		journal.TurnStarted{
			Turn: 2, Tools: []journal.OfferedTool{{Name: "desk__drop"}, {Name: "desk__note"}},
			Servers: []journal.OfferedServer{{Name: "desk", Reachable: true, ToolCount: 2}},
		},
		journal.ModelCallFinished{DurationMS: 2, ToolCalls: []journal.RequestedCall{{CallID: "c", Name: "desk__note"}}},
		journal.ToolCallStarted{CallID: "c", Name: "desk__note", Arguments: json.RawMessage(`{}`)},
		journal.ToolCallFinished{CallID: "c", Name: "desk__note", Outcome: journal.OutcomeUnknown, DurationMS: 1000, Error: &journal.Error{
			Kind: failure.KindOutcomeUnknown, Message: "the connection was cut",
		}},
		journal.ModelCallFinished{DurationMS: 2},
		journal.RunFinished{State: journal.StateCompleted, Text: "done"},
	} {
		at := began
		if i > 0 {
			at = began.Add(4 * time.Second)
		}
		lines = append(lines, told.Lines(journal.Record{RunID: "run_7", Seq: int64(i + 1), At: at, Entry: entry})...)
	}
	if got := "\n" + strings.Join(lines, "\n") + "\n"; got != toldStory {
		t.Errorf("the story is:%s", got)
	}
}

func TestColoursChangeNoLetter(t *testing.T) {
	record := journal.Record{Entry: journal.ToolCallFinished{Name: "desk__find", Outcome: journal.OutcomeOK, Result: "a teapot"}}
	plain, coloured := newStory(false, 80).Lines(record), newStory(true, 80).Lines(record)
	stripped := strings.NewReplacer("\x1b[32m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(strings.Join(coloured, "\n"))
	if stripped != strings.Join(plain, "\n") || !strings.Contains(coloured[0], "\x1b[32mok\x1b[0m") {
		t.Errorf("got %q", coloured)
	}
}
