package main

import (
	"testing"
	"time"

	"github.com/psych-systems/psych-go/journal"
)

func TestAnActivityTellsWhatRunsAndForHowLong(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	doing := &activity{}
	after := func(d time.Duration, want string) {
		t.Helper()
		now = now.Add(d)
		if got := doing.Describe(now); got != want {
			t.Errorf("it tells %q, want %q", got, want)
		}
	}
	record := func(entry journal.Entry) { doing.Record(journal.Record{Entry: entry}, now) }
	after(0, "")
	record(journal.RunStarted{})
	after(2500*time.Millisecond, "  asking the servers for their tools 2.5 s")
	record(journal.TurnStarted{Turn: 1})
	after(300*time.Millisecond, "  the model is thinking 0.3 s")
	for _, piece := range []string{"Let me", " look\n", "\x1b[2J it up"} {
		doing.Say(piece)
	}
	after(time.Second, "  the model says 1.3 s  Let me look [2J it up")
	record(journal.ModelCallFinished{Turn: 1, ToolCalls: []journal.RequestedCall{{CallID: "a"}, {CallID: "b"}}})
	record(journal.ToolCallStarted{CallID: "a", Name: "desk__find"})
	after(time.Second, "  running  desk__find 1.0 s")
	record(journal.ToolCallStarted{CallID: "b", Name: "crm__find"})
	after(time.Second, "  running  desk__find 2.0 s, crm__find 1.0 s")
	record(journal.ToolCallFinished{CallID: "a"})
	record(journal.ToolCallFinished{CallID: "never started"})
	after(time.Second, "  running  crm__find 2.0 s")
	record(journal.ToolCallFinished{CallID: "b"})
	after(time.Second, "  asking the servers for their tools 1.0 s")
	record(journal.TurnStarted{Turn: 2})
	record(journal.ModelCallFinished{Turn: 2})
	after(time.Second, "")
	record(journal.RunFinished{})
	after(time.Second, "")
}
