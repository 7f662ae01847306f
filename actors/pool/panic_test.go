package pool_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/catalog"
	"github.com/psych-systems/psych-go/actors/connection"
	"github.com/psych-systems/psych-go/actors/pool"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// panicOn is middleware that panics once, on a message of a type.
func panicOn(kind any, after bool, panicked *atomic.Bool) []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			meant := fmt.Sprintf("%T", envelope.Message) == fmt.Sprintf("%T", kind)
			if meant && !after && panicked.CompareAndSwap(false, true) {
				panic("before")
			}
			next(ctx, envelope)
			if meant && after && panicked.CompareAndSwap(false, true) {
				panic("after")
			}
		}
	}}
}

// TestAPanicOnAnyMessageCostsNoAnswerAndIsOvercome has each actor panic once on
// each message that it receives, in a day of all of them.
func TestAPanicOnAnyMessageCostsNoAnswerAndIsOvercome(t *testing.T) {
	for who, kinds := range map[string][]any{
		"pool": {
			&actor.Started{}, &messages.GetCatalogue{}, &messages.CallTool{}, &messages.CancelCall{},
			&messages.ReleaseSession{}, &messages.ListConnections{}, &messages.Disconnect{},
			&messages.ConnectionStatus{}, &messages.ConnectionIdle{}, &actor.Terminated{},
		},
		"connection": {
			&actor.Started{}, &messages.GetCatalogue{}, &messages.CallTool{}, &messages.CancelCall{},
			&messages.ReleaseSession{}, &messages.CataloguePublished{}, &messages.CatalogueFailed{},
			&actor.Terminated{}, &async.Done{},
		},
		"catalog": {
			&actor.Started{}, &messages.GetCatalogue{}, &messages.SessionOpened{}, &messages.SessionClosed{},
			&messages.CatalogueWanted{}, &async.Done{},
		},
	} {
		for _, kind := range kinds {
			for when, after := range map[string]bool{"before": false, "after": true} {
				t.Run(fmt.Sprintf("%s %s %T", who, when, kind), func(t *testing.T) {
					panicked := &atomic.Bool{}
					plan := func(p *pool.Deps, c *connection.Deps, g *catalog.Deps) {
						c.IdleClose = time.Minute
						faulty := panicOn(kind, after, panicked)
						switch who {
						case "pool":
							p.Middleware = faulty
						case "connection":
							c.Middleware = faulty
						case "catalog":
							g.Middleware = faulty
						}
					}
					inHouse(t, plan, day)
					if !panicked.Load() {
						t.Error("the message never came")
					}
				})
			}
		}
	}
}

// day has every actor receive every message, and ends with a question that is
// answered well.
func day(t *testing.T, h *house) {
	asker := h.count()
	questions := 0
	id := func() string { questions++; return fmt.Sprint("q", questions) }
	pause := func() { time.Sleep(20 * time.Second) }
	tools := func(session string) {
		to := target(t, "acme")
		to.Session = session
		asker.ask(h, &messages.GetCatalogue{RequestId: id(), Target: to, Fresh: true})
		synctest.Wait()
	}
	calls := func() {
		for range 3 {
			asker.ask(h, &messages.CallTool{CallId: id(), Target: target(t, "acme"), Tool: "x", Repeatable: questions%2 == 0})
		}
		synctest.Wait()
	}

	tools("")
	calls()
	pause()
	h.server.set(func() {
		h.server.call = func(context.Context, *messages.CallTool) (*messages.ToolResult, error) {
			return nil, failure.New(failure.KindMcpHeaderMismatchError, "another header", nil)
		}
	})
	calls() // the catalog is wanted
	pause()
	tools("")
	h.server.set(func() { h.server.unlisted = failure.New(failure.KindMcpProtocolError, "no list", nil) })
	tools("") // the catalog fails
	pause()
	h.server.set(func() { h.server.unlisted, h.server.call = nil, nil })
	tools("run")
	calls()
	asker.ask(h, &messages.ReleaseSession{Target: released(t)})
	pause()
	tools("")
	h.server.set(func() {
		for _, one := range h.server.sessions {
			one.lose()
		}
	})
	tools("")
	slow, finish := context.WithCancel(t.Context())
	h.server.set(func() {
		h.server.call = func(ctx context.Context, _ *messages.CallTool) (*messages.ToolResult, error) {
			select {
			case <-ctx.Done():
			case <-slow.Done():
			}
			return &messages.ToolResult{}, nil
		}
	})
	calls()
	asker.ask(h, &messages.CancelCall{CallId: fmt.Sprint("q", questions), Target: target(t, "acme")})
	asker.ask(h, &messages.ListConnections{RequestId: id()})
	pause()
	finish()
	pause()
	tools("")
	time.Sleep(10 * time.Minute) // the connection is idle
	if open := h.server.open(); open != 0 {
		t.Errorf("%d sessions are open after the idle time", open)
	}
	tools("")
	asker.ask(h, &messages.Disconnect{RequestId: id(), Tenant: "acme"})
	pause()
	asker.check(t, h)
	got := ask[*messages.Catalogue](t, h, &messages.GetCatalogue{RequestId: "last", Target: target(t, "acme")})
	done := ask[*messages.CallDone](t, h, &messages.CallTool{CallId: "last", Target: target(t, "acme"), Tool: "x"})
	if got.GetFailure() != nil || done.GetFailure() != nil {
		t.Errorf("the last questions ended %v, %v", got, done)
	}
}

func released(t *testing.T) *messages.Target {
	to := target(t, "acme")
	to.Session = "run"
	return to
}

func TestACatalogThatFailsCostsNoCallAndItsVersionsGoOn(t *testing.T) {
	panicked := &atomic.Bool{}
	panicked.Store(true)
	faulty := func(_ *pool.Deps, _ *connection.Deps, g *catalog.Deps) {
		g.Middleware = panicOn(&messages.GetCatalogue{}, false, panicked)
	}
	inHouse(t, faulty, func(t *testing.T, h *house) {
		release := make(chan struct{})
		h.server.call = func(context.Context, *messages.CallTool) (*messages.ToolResult, error) {
			<-release
			return &messages.ToolResult{Text: "done"}, nil
		}
		first := ask[*messages.Catalogue](t, h, catalogueOf(t)).GetSnapshot()
		slow := h.begin(call(t, "1"))
		panicked.Store(false)
		if got := ask[*messages.Catalogue](t, h, catalogueOf(t)); got.GetFailure() == nil {
			t.Errorf("the catalog did not fail: %v", got)
		}
		again := ask[*messages.Catalogue](t, h, catalogueOf(t)).GetSnapshot()
		if again.GetVersion() != first.GetVersion() || again.GetEtag() != first.GetEtag() {
			t.Errorf("version %d became %d", first.GetVersion(), again.GetVersion())
		}
		close(release)
		if got := outcome(end(t, slow)); got != "done" {
			t.Errorf("the call ended %s", got)
		}
	})
}

func TestAConnectionThatFailsTellsItsCallsAtOnceAndIsGivenUpInTheEnd(t *testing.T) {
	panicked := &atomic.Bool{}
	panicked.Store(true)
	faulty := func(_ *pool.Deps, c *connection.Deps, _ *catalog.Deps) {
		c.Middleware = panicOn(&messages.CancelCall{}, false, panicked)
	}
	inHouse(t, faulty, func(t *testing.T, h *house) {
		h.server.call = func(ctx context.Context, _ *messages.CallTool) (*messages.ToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		fail := func() {
			panicked.Store(false)
			h.system.Root.Send(h.pool, &messages.CancelCall{CallId: "x", Target: target(t, "acme")})
		}
		running := h.begin(call(t, "1"))
		began := time.Now()
		fail()
		if got := outcome(end(t, running)); got != "OutcomeUnknown, sent" || time.Since(began) != 0 {
			t.Errorf("the call ended %s after %s", got, time.Since(began))
		}
		h.server.set(func() { h.server.call = nil })
		if got := outcome(end(t, h.begin(call(t, "2")))); got != "acme" {
			t.Errorf("the next call ended %s", got)
		}
		if list := h.connections(t); len(list) != 1 || list[0].GetRestarts() != 1 {
			t.Errorf("listed is %v", list)
		}
		for range 8 {
			fail()
			time.Sleep(6 * time.Second)
		}
		list := h.connections(t)
		if len(list) != 1 || list[0].GetState() != "closed" || list[0].GetLastError() != "the connection failed too often and was given up" {
			t.Errorf("listed is %v", list)
		}
		if got := outcome(end(t, h.begin(call(t, "3")))); got != "acme" {
			t.Errorf("after it was given up, a call ended %s", got)
		}
		if list := h.connections(t); len(list) != 1 || list[0].GetState() != "ready" || list[0].GetRestarts() != 0 {
			t.Errorf("listed is %v", list)
		}
	})
}

func TestACatalogThatIsGivenUpIsReplaced(t *testing.T) {
	panicked := &atomic.Bool{}
	faulty := func(_ *pool.Deps, _ *connection.Deps, g *catalog.Deps) {
		g.Middleware = panicOn(&messages.GetCatalogue{}, false, panicked)
	}
	inHouse(t, faulty, func(t *testing.T, h *house) {
		for range 9 {
			panicked.Store(false)
			if got := ask[*messages.Catalogue](t, h, catalogueOf(t)); got.GetFailure() == nil {
				t.Fatalf("the catalog did not fail: %v", got)
			}
		}
		if got := ask[*messages.Catalogue](t, h, catalogueOf(t)); got.GetFailure() != nil {
			t.Errorf("the next catalog failed: %v", got)
		}
		if list := h.connections(t); len(list) != 1 || list[0].GetRestarts() != 0 {
			t.Errorf("listed is %v", list)
		}
	})
}

// TestWhatAnOlderIncarnationBeganIsDropped has actors fail while their work is open
// somewhere else: what comes of it later reaches nobody, is not taken for the news
// of today, and leaves nothing open.
func TestWhatAnOlderIncarnationBeganIsDropped(t *testing.T) {
	t.Run("a session that was being opened", func(t *testing.T) {
		panicked := &atomic.Bool{}
		faulty := func(_ *pool.Deps, c *connection.Deps, _ *catalog.Deps) {
			c.Middleware = panicOn(&messages.CancelCall{}, false, panicked)
		}
		inHouse(t, faulty, func(t *testing.T, h *house) {
			stall := make(chan struct{})
			h.server.stall = stall
			waiting := h.begin(call(t, "1"))
			began := time.Now()
			h.system.Root.Send(h.pool, &messages.CancelCall{CallId: "x", Target: target(t, "acme")})
			if got := outcome(end(t, waiting)); got == "acme" || time.Since(began) != 0 {
				t.Errorf("the call ended %s after %s", got, time.Since(began))
			}
			close(stall) // the dial of the older incarnation comes to its end now
			synctest.Wait()
			h.server.set(func() { h.server.stall = nil })
			time.Sleep(time.Minute)
			if got := outcome(end(t, h.begin(call(t, "2")))); got != "acme" {
				t.Errorf("the next call ended %s", got)
			}
			if open := h.server.open(); open != 1 {
				t.Errorf("%d sessions are open", open)
			}
		})
	})
	t.Run("a call", func(t *testing.T) {
		panicked := &atomic.Bool{}
		faulty := func(_ *pool.Deps, c *connection.Deps, _ *catalog.Deps) {
			c.Middleware = panicOn(&messages.CancelCall{}, false, panicked)
		}
		inHouse(t, faulty, func(t *testing.T, h *house) {
			release := make(chan struct{})
			h.server.call = func(context.Context, *messages.CallTool) (*messages.ToolResult, error) {
				<-release // whatever its context says
				return &messages.ToolResult{Text: "old"}, nil
			}
			asker := h.count()
			asker.ask(h, &messages.CallTool{CallId: "1", Target: target(t, "acme"), Tool: "x"})
			synctest.Wait()
			h.system.Root.Send(h.pool, &messages.CancelCall{CallId: "x", Target: target(t, "acme")})
			time.Sleep(time.Minute)
			h.server.set(func() { h.server.call = nil })
			asker.ask(h, &messages.CallTool{CallId: "2", Target: target(t, "acme"), Tool: "x"})
			synctest.Wait()
			close(release)
			time.Sleep(time.Minute)
			asker.check(t, h) // one answer each
		})
	})
}
