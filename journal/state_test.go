package journal_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/model"
)

func TestTheFoldTellsTheConversationInTheOrderInWhichTheModelAsked(t *testing.T) {
	state, err := journal.Fold(slices.Values(aRun()))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, message := range state.Conversation {
		told = append(told, string(message.Role)+" "+message.CallID+" "+message.Text)
	}
	want := []string{"user  help", "assistant  Let me look.", "tool a found", "tool b no such tool", "assistant  Done."}
	if !slices.Equal(told, want) {
		t.Errorf("conversation is %q", told)
	}
	if state.Finished == nil || state.Turn != 2 || state.Seq != 9 {
		t.Errorf("state is %+v", state)
	}
}

func TestALogThatContradictsItselfIsToldWithItsRecord(t *testing.T) {
	run := aRun()
	without := func(i int) []journal.Record {
		var entries []journal.Entry
		for j, record := range run {
			if j != i {
				entries = append(entries, record.Entry)
			}
		}
		return numbered(entries...)
	}
	twice := func(i int) []journal.Record {
		var entries []journal.Entry
		for j, record := range run {
			entries = append(entries, record.Entry)
			if j == i {
				entries = append(entries, record.Entry)
			}
		}
		return numbered(entries...)
	}
	gap := slices.Clone(run)
	gap[3].Seq = 5
	foreign := slices.Clone(run)
	foreign[2].RunID = "run_2"
	for name, test := range map[string]struct {
		records []journal.Record
		seq     int64
	}{
		"no start":               {without(0), 1},
		"no turn":                {without(1), 2},
		"no answer":              {without(2), 3},
		"a result of no call":    {without(4), 5},
		"an open call":           {without(5), 6},
		"two starts":             {twice(0), 2},
		"a turn twice":           {twice(1), 3},
		"two answers":            {twice(2), 4},
		"two refusals":           {twice(3), 5},
		"a call started twice":   {twice(4), 6},
		"a call finished twice":  {twice(5), 7},
		"two ends":               {twice(8), 10},
		"a gap":                  {gap, 5},
		"a record of another":    {foreign, 3},
		"an answer asking twice": {askingTwice(), 3},
	} {
		_, err := journal.Fold(slices.Values(test.records))
		var contradiction *journal.Contradiction
		if !errors.As(err, &contradiction) || contradiction.Seq != test.seq {
			t.Errorf("%s: got %v, want a contradiction at record %d", name, err, test.seq)
		}
	}
}

func askingTwice() []journal.Record {
	run := aRun()
	answer := run[2].Entry.(journal.ModelCallFinished)
	answer.ToolCalls = []journal.RequestedCall{{CallID: "a"}, {CallID: "a"}}
	run[2].Entry = answer
	return run
}

// TestSettlingAnyPrefixEndsTheRunWithOneOutcomeForEachCall cuts Runs anywhere,
// settles them, and reads what came out.
func TestSettlingAnyPrefixEndsTheRunWithOneOutcomeForEachCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := entriesOf(drawRun(t))
		cut := rapid.IntRange(1, len(entries)).Draw(t, "cut")
		prefix := numbered(entries[:cut]...)
		state, err := journal.Fold(slices.Values(prefix))
		if err != nil {
			t.Fatal(err)
		}
		if state.Finished != nil {
			return
		}
		end := journal.RunFinished{
			State: journal.StateFailed,
			Error: &journal.Error{Kind: failure.KindDeadlineExceeded, Message: "too late"},
		}
		all := numbered(append(entries[:cut:cut], journal.Settle(state, end)...)...)
		settled, err := journal.Fold(slices.Values(all))
		if err != nil {
			t.Fatalf("the settled run contradicts itself: %v", err)
		}
		checkOutcomes(t, all)
		for _, message := range settled.Conversation {
			if message.Role == model.RoleTool && message.Text == "" {
				t.Fatal("a call has an empty result")
			}
		}
	})
}

func checkOutcomes(t *rapid.T, records []journal.Record) {
	asked, started, finished := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, record := range records {
		switch entry := record.Entry.(type) {
		case journal.ModelCallFinished:
			for _, call := range entry.ToolCalls {
				asked[call.CallID] = true
			}
		case journal.ToolCallStarted:
			started[entry.CallID] = true
		case journal.ToolCallFinished:
			finished[entry.CallID]++
			if entry.Outcome != journal.OutcomeRefused && !started[entry.CallID] {
				t.Fatalf("call %s is %s without a start", entry.CallID, entry.Outcome)
			}
		}
	}
	for id := range asked {
		if finished[id] != 1 {
			t.Fatalf("call %s has %d outcomes", id, finished[id])
		}
	}
}

func entriesOf(records []journal.Record) []journal.Entry {
	var entries []journal.Entry
	for _, record := range records {
		entries = append(entries, record.Entry)
	}
	return entries
}

// drawRun makes a whole Run whose calls start and finish in any order.
func drawRun(t *rapid.T) []journal.Record {
	entries := []journal.Entry{journal.RunStarted{Spec: "s", Input: "in"}}
	turns := rapid.IntRange(1, 4).Draw(t, "turns")
	for turn := 1; turn <= turns; turn++ {
		entries = append(entries, journal.TurnStarted{Turn: turn})
		answer := journal.ModelCallFinished{Turn: turn, Text: "text"}
		if turn < turns {
			for i := range rapid.IntRange(1, 4).Draw(t, "calls") {
				answer.ToolCalls = append(answer.ToolCalls, journal.RequestedCall{CallID: string(rune('a'+turn)) + string(rune('0'+i))})
			}
		}
		entries = append(entries, answer)
		var steps []journal.Entry
		for _, call := range answer.ToolCalls {
			if rapid.Bool().Draw(t, "refused") {
				steps = append(steps, journal.ToolCallFinished{CallID: call.CallID, Outcome: journal.OutcomeRefused, Result: "no"})
				continue
			}
			steps = append(steps, journal.ToolCallStarted{CallID: call.CallID})
		}
		steps = rapid.Permutation(steps).Draw(t, "order")
		for _, step := range slices.Clone(steps) {
			if started, ok := step.(journal.ToolCallStarted); ok {
				steps = append(steps, journal.ToolCallFinished{CallID: started.CallID, Outcome: journal.OutcomeOK, Result: "yes"})
			}
		}
		entries = append(entries, steps...)
	}
	return numbered(append(entries, journal.RunFinished{State: journal.StateCompleted})...)
}
