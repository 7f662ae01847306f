package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/journal/memory"
)

func record(run string, seq int64, entry journal.Entry) journal.Record {
	return journal.Record{RunID: run, Seq: seq, Entry: entry}
}

func TestOnlyTheExpectedNextRecordIsTaken(t *testing.T) {
	ctx, store := context.Background(), memory.New(0)
	if err := store.Append(ctx, "r", 0, []journal.Record{record("r", 1, journal.RunStarted{})}); err != nil {
		t.Fatal(err)
	}
	var conflict *journal.Conflict
	if err := store.Append(ctx, "r", 0, []journal.Record{record("r", 1, journal.RunStarted{})}); !errors.As(err, &conflict) || conflict.Actual != 1 {
		t.Errorf("a second owner got %v", err)
	}
	var contradiction *journal.Contradiction
	if err := store.Append(ctx, "r", 1, []journal.Record{record("r", 3, journal.TurnStarted{})}); !errors.As(err, &contradiction) {
		t.Errorf("a gap got %v", err)
	}
	if err := store.Append(ctx, "r", 1, []journal.Record{record("q", 2, journal.TurnStarted{})}); !errors.As(err, &contradiction) {
		t.Errorf("a foreign record got %v", err)
	}
	records, err := store.Read(ctx, "r", 0)
	if err != nil || len(records) != 1 {
		t.Errorf("the log is %v (%v)", records, err)
	}
}

func TestOfManyOwnersOneWins(t *testing.T) {
	ctx, store := context.Background(), memory.New(0)
	var won, lost int
	var mu sync.Mutex
	var owners sync.WaitGroup
	for range 16 {
		owners.Go(func() {
			err := store.Append(ctx, "r", 0, []journal.Record{record("r", 1, journal.RunStarted{})})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else {
				lost++
			}
		})
	}
	owners.Wait()
	if won != 1 || lost != 15 {
		t.Errorf("%d won and %d lost", won, lost)
	}
}

func TestFinishedRunsAreForgottenBeyondTheLimitAndOthersAreNot(t *testing.T) {
	ctx, store := context.Background(), memory.New(2)
	if err := store.Append(ctx, "open", 0, []journal.Record{record("open", 1, journal.RunStarted{})}); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		run := fmt.Sprint("run", i)
		err := store.Append(ctx, run, 0, []journal.Record{
			record(run, 1, journal.RunStarted{}), record(run, 2, journal.RunFinished{}),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for run, want := range map[string]int{"open": 1, "run0": 0, "run2": 0, "run3": 2, "run4": 2} {
		if records, err := store.Read(ctx, run, 0); err != nil || len(records) != want {
			t.Errorf("%s has %d records (%v), want %d", run, len(records), err, want)
		}
	}
}
