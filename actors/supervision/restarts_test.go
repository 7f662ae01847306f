package supervision_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/messages"
)

// parent supervises one child, which panics when it is told "panic".
type parent struct {
	supervision.Restarts
	work  *async.Group
	child *actor.PID
	seen  *log
}

// log is what became of the child.
type log struct {
	mu      sync.Mutex
	started []time.Time
	gaveUp  int
	ended   int
}

func (l *log) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// told is the log in words.
func (l *log) told() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("started %d, given up %d, ended %d", len(l.started), l.gaveUp, l.ended)
}

func (l *log) lastStart() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started[len(l.started)-1]
}

func (p *parent) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		p.work = async.NewGroup(ctx, 1)
		p.Supervise(zap.NewNop(), p.work.After, func(*actor.PID, any) { p.seen.note(func() { p.seen.gaveUp++ }) })
		p.child = ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				p.seen.note(func() { p.seen.started = append(p.seen.started, time.Now()) })
			case string:
				panic("boom")
			}
		}))
	case *actor.Stopping:
		p.work.Close()
	case *actor.Terminated:
		p.Ended(message.GetWho())
		p.seen.note(func() { p.seen.ended++ })
	case string:
		if message == "stop" {
			p.Stop(ctx, p.child)
			return
		}
		ctx.Send(p.child, message)
	case *async.Done:
		if own, current := p.work.Take(message); current {
			p.Restart(ctx, own.(supervision.RestartDue))
		}
	}
}

func withParent(t *testing.T, story func(t *testing.T, tell func(string), seen *log)) {
	synctest.Test(t, func(t *testing.T) {
		system := supervision.NewSystem(zap.NewNop())
		defer system.Shutdown()
		seen := &log{}
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &parent{seen: seen} }))
		synctest.Wait()
		story(t, func(word string) { system.Root.Send(pid, word); synctest.Wait() }, seen)
		_ = system.Root.StopFuture(pid).Wait()
	})
}

func (l *log) expect(t *testing.T, started, gaveUp, ended int) {
	t.Helper()
	if got, want := l.told(), fmt.Sprintf("started %d, given up %d, ended %d", started, gaveUp, ended); got != want {
		t.Errorf("the child was %s, want %s", got, want)
	}
}

func TestAFailedChildComesBackWithPatienceAndIsGivenUpInTheEnd(t *testing.T) {
	withParent(t, func(t *testing.T, tell func(string), seen *log) {
		const tolerated = 8
		for failed := range tolerated {
			bound := min(50*time.Millisecond<<failed, 10*time.Second)
			before := time.Now()
			tell("panic")
			time.Sleep(bound)
			synctest.Wait()
			seen.expect(t, failed+2, 0, 0)
			if wait := seen.lastStart().Sub(before); wait < bound/10 {
				t.Errorf("after %d failures the child came back after %s", failed+1, wait)
			}
		}
		tell("panic")
		seen.expect(t, tolerated+1, 1, 1)
	})
}

func TestFailuresOfLongAgoAreForgiven(t *testing.T) {
	withParent(t, func(t *testing.T, tell func(string), seen *log) {
		for range 50 {
			tell("panic")
			time.Sleep(20 * time.Second)
		}
		seen.expect(t, 51, 0, 0)
	})
}

func TestAChildThatIsStoppedWhileItWaitsIsNotRevived(t *testing.T) {
	withParent(t, func(t *testing.T, tell func(string), seen *log) {
		tell("panic")
		tell("stop")
		time.Sleep(time.Minute)
		seen.expect(t, 1, 0, 1)
	})
}

func TestNothingIsRestartedAfterTheSupervisorHasStopped(t *testing.T) {
	withParent(t, func(_ *testing.T, tell func(string), _ *log) { tell("panic") })
}

func TestBackoffGrowsToItsCapAndNeverPassesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.IntRange(1, 1000).Draw(t, "base")) * time.Millisecond
		backoff := supervision.Backoff{Base: base, Cap: base * time.Duration(rapid.IntRange(1, 1000).Draw(t, "cap"))}
		n := rapid.IntRange(1, 1_000_000).Draw(t, "n")
		bound := backoff.Cap
		if n < 30 {
			bound = min(bound, base<<(n-1))
		}
		if wait := backoff.Wait(n); wait < bound/10 || wait > bound {
			t.Fatalf("failure %d waits %s of at most %s", n, wait, bound)
		}
	})
}

func TestNoMessageIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.DebugLevel)
		system := supervision.NewSystem(zap.New(core))
		defer system.Shutdown()
		gone := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*messages.CallTool); ok {
				panic("boom")
			}
		}))
		secret := &messages.CallTool{CallId: "c", Arguments: []byte(`{"password":"hunter2"}`)}
		system.Root.Send(gone, secret)
		_ = system.Root.StopFuture(gone).Wait()
		system.Root.Send(gone, secret)
		_, _ = system.Root.RequestFuture(gone, secret, time.Second).Result()
		time.Sleep(time.Second) // the library counts dead letters for a moment
		system.Logger().With("message", secret).WithGroup("g").Error("it failed", "message", secret)
		entries := logs.All()
		for _, entry := range entries {
			if text := entry.Message; strings.Contains(text, "hunter2") || len(entry.Context) != 0 {
				t.Errorf("a message was logged: %q %v", text, entry.Context)
			}
		}
		if len(entries) != 1 || entries[0].Message != "actor library: it failed" {
			t.Errorf("logged %v", entries)
		}
	})
}
