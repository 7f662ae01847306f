package journal_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
)

func tokens(n int64) *int64 { return &n }

// aRun is a Run with two turns, as its records tell it.
func aRun() []journal.Record {
	return numbered(
		journal.RunStarted{Spec: "support", Version: "ab12", Scope: messages.Scope{Tenant: "acme", Principal: "ann"}, Input: "help"},
		journal.TurnStarted{
			Turn:    1,
			Tools:   []journal.OfferedTool{{Name: "crm__find", Server: "crm", Tool: "find", Class: "read-only"}},
			Servers: []journal.OfferedServer{{Name: "crm", Reachable: true, ToolCount: 1}},
		},
		journal.ModelCallFinished{
			Turn: 1, Text: "Let me look.",
			ToolCalls: []journal.RequestedCall{
				{CallID: "a", Name: "crm__find", Arguments: `{"q":"x"}`},
				{CallID: "b", Name: "crm__gone", Arguments: `{"q":`},
			},
			Usage: model.Usage{Input: tokens(10), Output: tokens(0)}, RequestBytes: 900, DurationMS: 12,
		},
		journal.ToolCallFinished{
			CallID: "b", Name: "crm__gone", Outcome: journal.OutcomeRefused, Result: "no such tool",
			Error: &journal.Error{Kind: failure.KindUnknownTool, Message: "no such tool"},
		},
		journal.ToolCallStarted{CallID: "a", Name: "crm__find", Server: "crm", Tool: "find", Arguments: json.RawMessage(`{"q":"x"}`)},
		journal.ToolCallFinished{CallID: "a", Name: "crm__find", Outcome: journal.OutcomeOK, Result: "found", Structured: json.RawMessage(`[1]`), DurationMS: 3},
		journal.TurnStarted{Turn: 2, Tools: []journal.OfferedTool{}, Servers: []journal.OfferedServer{}},
		journal.ModelCallFinished{Turn: 2, Text: "Done.", ToolCalls: []journal.RequestedCall{}},
		journal.RunFinished{State: journal.StateCompleted, Text: "Done."},
	)
}

func numbered(entries ...journal.Entry) []journal.Record {
	records := make([]journal.Record, len(entries))
	for i, entry := range entries {
		records[i] = journal.Record{
			RunID: "run_1", Seq: int64(i) + 1, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Entry: entry,
		}
	}
	return records
}

func TestRecordsAreFlatObjectsThatReadBackEqual(t *testing.T) {
	for _, record := range aRun() {
		encoded, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(encoded, &fields); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"run_id", "seq", "at", "type"} {
			if _, ok := fields[field]; !ok {
				t.Errorf("%s has no %s", encoded, field)
			}
		}
		var back journal.Record
		if err := json.Unmarshal(encoded, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, record) {
			t.Errorf("read back\n%#v\nwant\n%#v", back, record)
		}
	}
}

func TestArgumentsAreAnObjectWhereTheyAreOneAndElseText(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"a":1}`: `"arguments":{"a":1}`,
		`{"a":`:   `"arguments":"{\"a\":"`,
		``:        `"arguments":""`,
		`[1]`:     `"arguments":"[1]"`,
		`null`:    `"arguments":"null"`,
	} {
		encoded, err := json.Marshal(journal.RequestedCall{CallID: "c", Name: "n", Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(encoded), want) {
			t.Errorf("%q is written as %s", arguments, encoded)
		}
		var back journal.RequestedCall
		if err := json.Unmarshal(encoded, &back); err != nil || back.Arguments != arguments {
			t.Errorf("%q reads back as %q (%v)", arguments, back.Arguments, err)
		}
	}
}

func TestUsageThatWasNotReportedIsAbsent(t *testing.T) {
	encoded, err := json.Marshal(aRun()[2])
	if err != nil {
		t.Fatal(err)
	}
	if text := string(encoded); !strings.Contains(text, `"usage":{"input":10,"output":0}`) {
		t.Errorf("usage is written as %s", text)
	}
}

func TestARecordOfAnUnknownTypeIsNotRead(t *testing.T) {
	var record journal.Record
	err := json.Unmarshal([]byte(`{"run_id":"r","seq":1,"at":"2026-01-02T03:04:05Z","type":"surprise"}`), &record)
	if err == nil || !strings.Contains(err.Error(), "surprise") {
		t.Fatalf("got %v", err)
	}
}
