package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/run"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/journal/memory"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/narrow"
	"github.com/psych-systems/psych-go/offer"
	"github.com/psych-systems/psych-go/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// following is a follower that may panic, as any code may that an actor calls.
type following struct {
	mu      sync.Mutex
	panics  int
	records map[int64]journal.Record
	ends    int
	err     error
}

func (f *following) Recorded(record journal.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records[record.Seq] = record
	if _, started := record.Entry.(journal.ToolCallStarted); started && f.panics > 0 {
		f.panics--
		panic("in the follower")
	}
}

func (f *following) Said(string) {}

func (f *following) Ended(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ends++; f.ends == 1 {
		f.err = err
	}
}

// around is what surrounds the Runs of a story: a host tool that counts its
// calls, and a model that asks for it once.
type around struct {
	mu    sync.Mutex
	calls int
}

func (a *around) Offered([]string) []offer.HostTool {
	return []offer.HostTool{{Name: "count", Class: narrow.ReadOnly}}
}

func (a *around) Call(context.Context, messages.Scope, string, json.RawMessage) (run.HostResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	return run.HostResult{Text: "counted"}, nil
}

func (a *around) Grant(string, string) narrow.Grant { return narrow.All() }

func (a *around) Describe(messages.Scope, string) string { return "" }

func (a *around) Target(context.Context, messages.Scope, spec.Server, string) (*messages.Target, error) {
	return nil, errors.New("no Spec of these stories names a server")
}

func (a *around) Generate(_ context.Context, request model.Request, _ func(string)) (model.Response, error) {
	if len(request.Messages) == 1 {
		return model.Response{ToolCalls: []model.ToolCall{{ID: "c", Name: "count"}}}, nil
	}
	return model.Response{Text: "done"}, nil
}

// boom has a Run's actor panic.
type boom struct{}

func explosive(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		if _, explodes := envelope.Message.(boom); explodes {
			panic("boom")
		}
		next(ctx, envelope)
	}
}

// story admits one Run whose follower panics that many times, and waits long. The
// Run's actor is sent a boom after each of the pauses.
func story(t *testing.T, store journal.Store, panics int, check func(t *testing.T, a *around, f *following, log []journal.Record), pauses ...time.Duration) {
	t.Helper()
	version, err := spec.New(spec.Spec{Name: "s", Model: spec.Model{Model: "m"}, Tools: []string{"count"}})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		system, a := supervision.NewSystem(zap.NewNop()), &around{}
		runs := system.Root.Spawn(run.SupervisorProps(run.Deps{
			Model: a, Store: store, Targets: a, Hosts: a, Planes: a, Clock: time.Now, Logger: zap.NewNop(),
			Middleware: []actor.ReceiverMiddleware{explosive},
		}))
		f := &following{panics: panics, records: map[int64]journal.Record{}}
		system.Root.Send(runs, run.Admit{RunID: "run_1", Version: version, Scope: messages.Scope{Tenant: "acme"}, Input: "go", Follower: f})
		for _, pause := range pauses {
			time.Sleep(pause)
			system.Root.Send(system.NewLocalPID(runs.GetId()+"/run/run_1"), boom{})
		}
		time.Sleep(9 * time.Minute)
		log, err := store.Read(t.Context(), "run_1", 0)
		if err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		a.mu.Lock()
		check(t, a, f, log)
		a.mu.Unlock()
		f.mu.Unlock()
		if err := system.Root.StopFuture(runs).Wait(); err != nil {
			t.Error(err)
		}
		system.Shutdown()
		time.Sleep(time.Second)
	})
}

func outcomes(log []journal.Record) map[journal.Outcome]int {
	found := map[journal.Outcome]int{}
	for _, record := range log {
		if finished, ok := record.Entry.(journal.ToolCallFinished); ok {
			found[finished.Outcome]++
		}
	}
	return found
}

func TestARunThatPanicsReadsItsJournalAndGoesOn(t *testing.T) {
	story(t, memory.New(0), 1, func(t *testing.T, a *around, f *following, log []journal.Record) {
		finished, ok := log[len(log)-1].Entry.(journal.RunFinished)
		if !ok || finished.State != journal.StateCompleted || f.err != nil || len(f.records) != len(log) {
			t.Errorf("the run ended %+v (%v), %d of %d records were told", finished, f.err, len(f.records), len(log))
		}
		if got := outcomes(log); got[journal.OutcomeUnknown] != 1 || len(got) != 1 || a.calls > 1 {
			t.Errorf("the call ended %v and ran %d times", got, a.calls)
		}
	})
}

func TestARunThatFailsTooOftenStillHasItsEnd(t *testing.T) {
	story(t, refusing{memory.New(0)}, 0, func(t *testing.T, _ *around, f *following, log []journal.Record) {
		if f.ends == 0 || failure.KindOf(f.err) != failure.KindInternal || len(log) != 0 {
			t.Errorf("with a journal that fails, the run ended %d times (%v), with %d records", f.ends, f.err, len(log))
		}
	})
	story(t, memory.New(0), 1<<30, func(t *testing.T, a *around, f *following, log []journal.Record) {
		finished, ok := log[len(log)-1].Entry.(journal.RunFinished)
		if !ok || finished.State != journal.StateFailed || finished.Error.Kind != failure.KindInternal || f.ends == 0 {
			t.Errorf("the run ended %+v, told %d times", log[len(log)-1], f.ends)
		}
		if got := outcomes(log); got[journal.OutcomeUnknown] != 1 || len(got) != 1 || a.calls > 1 {
			t.Errorf("the call ended %v and ran %d times", got, a.calls)
		}
	})
}

// refusing is a journal that cannot be written.
type refusing struct{ journal.Store }

func (refusing) Append(context.Context, string, int64, []journal.Record) error {
	return errors.New("the disk is full")
}

// An actor that fails while its append is under way must not take that append for
// another owner's.
func TestARunThatPanicsDuringASlowAppendGoesOn(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		story(t, slow{memory.New(0), heeds}, 0, func(t *testing.T, a *around, f *following, log []journal.Record) {
			finished, ok := log[len(log)-1].Entry.(journal.RunFinished)
			if !ok || finished.State != journal.StateCompleted || f.err != nil || a.calls > 1 {
				t.Errorf("a store that heeds its context %t: the run ended %+v (%v), its call ran %d times", heeds, log[len(log)-1].Entry, f.err, a.calls)
			}
		}, time.Second, 2*time.Second, 2*time.Second, 2*time.Second, 1500*time.Millisecond)
	}
}

// slow is a journal that takes its time, and heeds its context or does not.
type slow struct {
	journal.Store
	heeds bool
}

func (s slow) Append(ctx context.Context, runID string, expected int64, records []journal.Record) error {
	if !s.heeds {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(2 * time.Second):
		return s.Store.Append(ctx, runID, expected, records)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestOfTwoOwnersOneStops(t *testing.T) {
	store := memory.New(0)
	err := store.Append(t.Context(), "run_1", 0, []journal.Record{{RunID: "run_1", Seq: 1, Entry: journal.RunStarted{Input: "go"}}})
	if err != nil {
		t.Fatal(err)
	}
	story(t, overtaken{store}, 0, func(t *testing.T, a *around, f *following, log []journal.Record) {
		if f.ends != 1 || f.err == nil || a.calls != 0 || len(log) != 1 {
			t.Errorf("the loser ended %d times (%v), made %d calls and left %d records", f.ends, f.err, a.calls, len(log))
		}
	})
}

// overtaken is a journal to which another owner has written.
type overtaken struct{ journal.Store }

func (overtaken) Append(_ context.Context, runID string, expected int64, _ []journal.Record) error {
	return &journal.Conflict{RunID: runID, Expected: expected, Actual: expected + 1}
}
