package async_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// owner runs functions on its own goroutine and collects what comes back.
type owner struct {
	group *async.Group
	limit int
	got   chan any
}

type do func(group *async.Group)

func (o *owner) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		o.group = async.NewGroup(ctx, o.limit)
	case *actor.Restarting, *actor.Stopping:
		o.group.Close()
	case do:
		message(o.group)
	case *async.Done:
		if opened, current := o.group.Take(message); current {
			o.got <- opened
		}
	}
}

func withOwner(t *testing.T, limit int, story func(t *testing.T, tell func(do), got chan any)) {
	synctest.Test(t, func(t *testing.T) {
		system := supervision.NewSystem(zap.NewNop())
		defer system.Shutdown()
		o := &owner{limit: limit, got: make(chan any, 10_000)}
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return o },
			actor.WithGuardian(supervision.Guardian(zap.NewNop()))))
		defer func() { _ = system.Root.StopFuture(pid).Wait() }()
		story(t, func(job do) { system.Root.Send(pid, job) }, o.got)
	})
}

type result struct {
	value int
	err   error
}

func done(value int, err error) any { return result{value, err} }

func TestWorkComesBackOnceWhateverBecomesOfIt(t *testing.T) {
	withOwner(t, 8, func(t *testing.T, tell func(do), got chan any) {
		tell(func(g *async.Group) {
			async.Go(g, time.Second, func(context.Context) (int, error) { return 1, nil }, done)
			async.Go(g, time.Second, func(context.Context) (int, error) { panic("boom") }, done)
			async.Go(g, time.Second, func(ctx context.Context) (int, error) { <-ctx.Done(); return 3, ctx.Err() }, done)
			cancel := async.Go(g, 0, func(ctx context.Context) (int, error) { <-ctx.Done(); return 4, ctx.Err() }, done)
			cancel()
		})
		seen := map[string]int{}
		for range 4 {
			switch r := (<-got).(result); {
			case r.err == nil:
				seen["value"]++
			case failure.KindOf(r.err) == failure.KindInternal && r.value == 0:
				seen["panic"]++
			case errors.Is(r.err, context.DeadlineExceeded):
				seen["deadline"]++
			case errors.Is(r.err, context.Canceled):
				seen["cancelled"]++
			}
		}
		synctest.Wait()
		if len(got) != 0 || seen["value"] != 1 || seen["panic"] != 1 || seen["deadline"] != 1 || seen["cancelled"] != 1 {
			t.Errorf("got %v and %d more", seen, len(got))
		}
	})
}

func TestNoMoreThanTheLimitRunsAtOnceAndAllOfItRuns(t *testing.T) {
	withOwner(t, 3, func(t *testing.T, tell func(do), got chan any) {
		var running, most atomic.Int32
		tell(func(g *async.Group) {
			for range 20 {
				async.Go(g, 0, func(context.Context) (int, error) {
					if now := running.Add(1); now > most.Load() {
						most.Store(now)
					}
					time.Sleep(time.Millisecond)
					running.Add(-1)
					return 0, nil
				}, done)
			}
		})
		for range 20 {
			<-got
		}
		if most.Load() != 3 {
			t.Errorf("%d ran at once", most.Load())
		}
	})
}

func TestAClosedGroupBringsNothing(t *testing.T) {
	withOwner(t, 1, func(t *testing.T, tell func(do), got chan any) {
		ended := make(chan struct{})
		tell(func(g *async.Group) {
			async.Go(g, 0, func(ctx context.Context) (int, error) { <-ctx.Done(); close(ended); return 0, nil }, done)
			async.Go(g, 0, func(context.Context) (int, error) { t.Error("queued work ran"); return 0, nil }, done)
			g.After(time.Second, "alarm")
			g.Close()
			g.Close()
		})
		<-ended
		time.Sleep(time.Minute)
		if len(got) != 0 {
			t.Errorf("got %v", <-got)
		}
	})
}

func TestAnAlarmRingsOnceOrNeverWhenItIsTakenBack(t *testing.T) {
	withOwner(t, 1, func(t *testing.T, tell func(do), got chan any) {
		begun := time.Now()
		tell(func(g *async.Group) {
			g.After(3*time.Second, "late")
			stop := g.After(time.Second, "never")
			stop()
			late := g.After(0, "on its way")
			time.Sleep(time.Second) // the alarm rings, and lies in the mailbox behind this
			late()
		})
		if message := <-got; message != "late" || time.Since(begun) != 3*time.Second {
			t.Errorf("got %v after %s", message, time.Since(begun))
		}
	})
}

func TestWorkBeyondTheQueueIsRefused(t *testing.T) {
	const most = 4096
	withOwner(t, 1, func(t *testing.T, tell func(do), got chan any) {
		release := make(chan struct{})
		wait := func(context.Context) (int, error) { <-release; return 1, nil }
		tell(func(g *async.Group) {
			for range most + 2 {
				async.Go(g, 0, wait, done)
			}
		})
		if refused := (<-got).(result); failure.KindOf(refused.err) != failure.KindBusy {
			t.Errorf("the work was refused with %v", refused.err)
		}
		close(release)
		for range most + 1 {
			if r := (<-got).(result); r.err != nil {
				t.Fatal(r.err)
			}
		}
	})
}

func TestWhatAnOlderIncarnationStartedIsDropped(t *testing.T) {
	withOwner(t, 1, func(t *testing.T, tell func(do), got chan any) {
		finish := make(chan struct{})
		tell(func(g *async.Group) {
			async.Go(g, 0, func(context.Context) (int, error) { <-finish; return 1, nil }, done)
			g.Tell("old")
			panic("boom")
		})
		time.Sleep(time.Minute)
		close(finish)
		tell(func(g *async.Group) { g.Tell("new") })
		if message := <-got; message != "new" {
			t.Errorf("the new incarnation got %v", message)
		}
		synctest.Wait()
		if len(got) != 0 {
			t.Errorf("the new incarnation got %v too", <-got)
		}
	})
}

func TestEachWorkComesBackExactlyOnceWhileTheGroupIsOpen(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		works := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 40).Draw(r, "works")
		limit := rapid.IntRange(1, 5).Draw(r, "limit")
		seen := map[int]int{}
		withOwner(t, limit, func(_ *testing.T, tell func(do), got chan any) {
			tell(func(g *async.Group) {
				for i, kind := range works {
					startWork(g, i, kind)
				}
			})
			time.Sleep(time.Hour)
			synctest.Wait()
			for range len(got) {
				seen[(<-got).(result).value]++
			}
		})
		for i := range works {
			if seen[i] != 1 {
				r.Fatalf("work %d came back %d times", i, seen[i])
			}
		}
	})
}

// startWork starts work that returns, panics, runs out of time or is cancelled.
func startWork(g *async.Group, i, kind int) {
	cancel := async.Go(g, time.Second, func(ctx context.Context) (int, error) {
		switch kind {
		case 0:
			return i, nil
		case 1:
			panic("boom")
		default:
			<-ctx.Done()
			return i, ctx.Err()
		}
	}, func(_ int, err error) any { return result{i, err} })
	if kind == 3 {
		cancel()
	}
}
