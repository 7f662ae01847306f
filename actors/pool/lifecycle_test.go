package pool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/actors/catalog"
	"github.com/psych-systems/psych-go/actors/connection"
	"github.com/psych-systems/psych-go/actors/pool"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// begin puts a question and does not wait.
func (h *house) begin(question any) *actor.Future {
	future := h.system.Root.RequestFuture(h.pool, question, time.Hour)
	synctest.Wait()
	return future
}

// end waits for the answer to a call.
func end(t *testing.T, future *actor.Future) *messages.CallDone {
	t.Helper()
	answer, err := future.Result()
	if err != nil {
		t.Fatalf("a call has no answer: %v", err)
	}
	return answer.(*messages.CallDone)
}

// outcome is an answer in a word.
func outcome(done *messages.CallDone) string {
	switch {
	case done.GetStaleKey():
		return "stale"
	case done.GetFailure() != nil && done.GetSent():
		return done.GetFailure().GetKind() + ", sent"
	case done.GetFailure() != nil:
		return done.GetFailure().GetKind()
	default:
		return done.GetResult().GetText()
	}
}

func call(t *testing.T, id string) *messages.CallTool {
	return &messages.CallTool{CallId: id, Target: target(t, "acme"), Tool: "x"}
}

func catalogueOf(t *testing.T) *messages.GetCatalogue {
	return &messages.GetCatalogue{RequestId: "catalogue", Target: target(t, "acme")}
}

// connections lists the pool once what was said last has come to it.
func (h *house) connections(t *testing.T) []*messages.ConnectionStatus {
	t.Helper()
	time.Sleep(100 * time.Millisecond)
	return ask[*messages.Connections](t, h, &messages.ListConnections{RequestId: "list"}).GetConnections()
}

func TestALostSessionIsReplacedAndOnlyAHarmlessCallIsIssuedAgain(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		var cut context.Context
		cut, lose := context.WithCancel(t.Context())
		h.server.call = func(context.Context, *messages.CallTool) (*messages.ToolResult, error) {
			<-cut.Done()
			return nil, lostAnswer{errors.New("the stream ended")}
		}
		harmless := call(t, "1")
		harmless.Repeatable = true
		first, second := h.begin(harmless), h.begin(call(t, "2"))
		h.server.set(func() {
			h.server.sessions[0].lose()
			h.server.call = nil
		})
		lose()
		if got := outcome(end(t, first)); got != "acme" {
			t.Errorf("the harmless call ended %s", got)
		}
		done := end(t, second)
		if got := outcome(done); got != "OutcomeUnknown, sent" {
			t.Errorf("the other call ended %s", got)
		}
		for _, part := range []string{`"x"`, `"crm"`, "verify before repeating it"} {
			if sentence := done.GetFailure().GetMessage(); !strings.Contains(sentence, part) {
				t.Errorf("%q does not say %s", sentence, part)
			}
		}
		if len(h.server.sessions) != 2 {
			t.Errorf("%d sessions were opened", len(h.server.sessions))
		}
	})
}

func TestAConnectionWhoseSecretWasRotatedEndsItself(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		ask[*messages.Catalogue](t, h, catalogueOf(t))
		release := make(chan struct{})
		h.server.set(func() {
			h.server.call = func(_ context.Context, call *messages.CallTool) (*messages.ToolResult, error) {
				if call.GetCallId() == "slow" {
					<-release
					return &messages.ToolResult{Text: "slow"}, nil
				}
				return nil, fmt.Errorf("not asked: %w", messages.ErrStaleKey)
			}
		})
		slow := h.begin(call(t, "slow"))
		if got := outcome(end(t, h.begin(call(t, "1")))); got != "stale" {
			t.Errorf("the call ended %s", got)
		}
		if list := h.connections(t); len(list) != 1 || list[0].GetLastError() != "the credential was rotated" {
			t.Errorf("while it is in use, listed is %v", list)
		}
		close(release)
		if got := outcome(end(t, slow)); got != "slow" {
			t.Errorf("the slow call ended %s", got)
		}
		h.server.set(func() { h.server.refuse = messages.ErrStaleKey })
		time.Sleep(time.Second)
		if got := outcome(end(t, h.begin(call(t, "2")))); got != "stale" {
			t.Errorf("the call ended %s", got)
		}
		got := ask[*messages.Catalogue](t, h, catalogueOf(t)).GetFailure()
		if got.GetKind() != string(failure.KindMcpServerUnreachable) || got.GetMessage() != "the credential was rotated" {
			t.Errorf("the catalogue ended %v", got)
		}
		if list := h.connections(t); len(list) != 0 {
			t.Errorf("at last, listed is %v", list)
		}
	})
}

func TestARunsOwnSessionIsItsOwnAndOutlivesItsIdlenessButNotAnyRun(t *testing.T) {
	idle := func(_ *pool.Deps, c *connection.Deps, _ *catalog.Deps) { c.IdleClose = time.Minute }
	inHouse(t, idle, func(t *testing.T, h *house) {
		ask[*messages.Catalogue](t, h, catalogueOf(t))
		for _, run := range []string{"run1", "run2"} {
			own := catalogueOf(t)
			own.Target.Session = run
			if got := ask[*messages.Catalogue](t, h, own); got.GetFailure() != nil {
				t.Fatal(got)
			}
		}
		release := &messages.ReleaseSession{Target: target(t, "acme")}
		release.Target.Session = "run1"
		h.system.Root.Send(h.pool, release)
		synctest.Wait()
		if open := h.server.open(); open != 2 {
			t.Errorf("%d sessions are open after one of 3 was released", open)
		}
		time.Sleep(time.Hour) // the other Run's model thinks
		if open := h.server.open(); open != 2 {
			t.Errorf("%d sessions are open while a Run has one", open)
		}
		time.Sleep(27 * time.Hour) // no Run is as long
		if open := h.server.open(); open != 0 {
			t.Errorf("%d sessions are open after their Run must have ended", open)
		}
		h.server.stall = make(chan struct{})
		own := call(t, "1")
		own.Target.Session = "run1"
		waiting := h.begin(own)
		h.system.Root.Send(h.pool, release)
		if got := outcome(end(t, waiting)); got != "Cancelled" {
			t.Errorf("a call that waited for a session which was released ended %s", got)
		}
	})
}

func TestEveryQuestionHasItsOwnDeadline(t *testing.T) {
	one := func(_ *pool.Deps, c *connection.Deps, _ *catalog.Deps) { c.MaxCalls, c.ConnectTimeout = 1, time.Minute }
	inHouse(t, one, func(t *testing.T, h *house) {
		soon := func() int64 { return time.Now().Add(5 * time.Second).UnixMilli() }
		h.server.stall = make(chan struct{})
		began := time.Now()
		tools, tool := catalogueOf(t), call(t, "1")
		tools.DeadlineUnixMs, tool.DeadlineUnixMs = soon(), soon()
		calling := h.begin(tool)
		if got := ask[*messages.Catalogue](t, h, tools).GetFailure(); got.GetMessage() != "the connection timed out" {
			t.Errorf("the catalogue ended %v", got)
		}
		if got := outcome(end(t, calling)); got != "DeadlineExceeded" || time.Since(began) != 5*time.Second {
			t.Errorf("a call that waited for the session ended %s after %s", got, time.Since(began))
		}
		close(h.server.stall)
		h.server.set(func() {
			h.server.call = func(ctx context.Context, _ *messages.CallTool) (*messages.ToolResult, error) {
				<-ctx.Done()
				return nil, lostAnswer{failure.New(failure.KindDeadlineExceeded, "late", nil)}
			}
		})
		running, queued, late := call(t, "2"), call(t, "3"), call(t, "4")
		running.DeadlineUnixMs = time.Now().Add(time.Minute).UnixMilli()
		queued.DeadlineUnixMs = soon()
		late.DeadlineUnixMs = time.Now().Add(-time.Second).UnixMilli()
		first, second := h.begin(running), h.begin(queued)
		if got := outcome(end(t, h.begin(late))); got != "DeadlineExceeded" {
			t.Errorf("a call that came too late ended %s", got)
		}
		if got := outcome(end(t, second)); got != "DeadlineExceeded" {
			t.Errorf("a call that waited behind another ended %s", got)
		}
		if got := outcome(end(t, first)); got != "OutcomeUnknown, sent" || time.Since(began) < time.Minute {
			t.Errorf("the call that ran ended %s after %s", got, time.Since(began))
		}
	})
}

func TestACallThatIsCancelled(t *testing.T) {
	one := func(_ *pool.Deps, c *connection.Deps, _ *catalog.Deps) { c.MaxCalls = 1 }
	inHouse(t, one, func(t *testing.T, h *house) {
		h.server.call = func(ctx context.Context, call *messages.CallTool) (*messages.ToolResult, error) {
			<-ctx.Done()
			stopped := failure.New(failure.KindCancelled, "stopped", nil)
			if call.GetTool() == "unsent" {
				return nil, stopped
			}
			return nil, lostAnswer{stopped}
		}
		for tool, want := range map[string]string{"sent": "OutcomeUnknown, sent", "unsent": "Cancelled"} {
			running, queued := call(t, "1"), call(t, "2")
			running.Tool = tool
			first, second := h.begin(running), h.begin(queued)
			cancel := func(future *actor.Future, id string) {
				h.system.Root.RequestWithCustomSender(h.pool, &messages.CancelCall{CallId: id, Target: target(t, "acme")}, future.PID())
			}
			cancel(first, "2") // another asker's call of that id
			cancel(second, "2")
			if got := outcome(end(t, second)); got != "Cancelled" {
				t.Errorf("a call that waited ended %s", got)
			}
			cancel(first, "1")
			if got := outcome(end(t, first)); got != want {
				t.Errorf("a call that was %s ended %s", tool, got)
			}
		}
	})
}

func TestDisconnectSettlesWhatIsInFlight(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		h.server.call = func(ctx context.Context, _ *messages.CallTool) (*messages.ToolResult, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil, ctx.Err()
		}
		running := h.begin(call(t, "1"))
		got := ask[*messages.Disconnected](t, h, &messages.Disconnect{RequestId: "d", Tenant: "acme"})
		if got.GetClosed() != 1 {
			t.Errorf("disconnected: %v", got)
		}
		began := time.Now()
		if got := outcome(end(t, running)); got != "OutcomeUnknown, sent" || time.Since(began) != 0 {
			t.Errorf("the call ended %s after %s", got, time.Since(began))
		}
		time.Sleep(time.Second)
		if open := h.server.open(); open != 0 {
			t.Errorf("%d sessions are open", open)
		}
		h.server.set(func() { h.server.call = nil })
		if got := outcome(end(t, h.begin(call(t, "2")))); got != "acme" {
			t.Errorf("the next call ended %s", got)
		}
	})
}

func TestAMessageWithABadKeyIsAnswered(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		bad := &messages.Target{Key: &messages.Key{Tenant: "acme", Url: "ftp://x", Transport: "http"}}
		got := ask[*messages.CallDone](t, h, &messages.CallTool{CallId: "1", Target: bad})
		if got.GetFailure().GetKind() != string(failure.KindSpecInvalid) {
			t.Errorf("got %v", got)
		}
		h.system.Root.Send(h.pool, &messages.ReleaseSession{Target: bad})
		if none := ask[*messages.Catalogue](t, h, &messages.GetCatalogue{RequestId: "c"}); none.GetFailure() == nil {
			t.Errorf("got %v", none)
		}
	})
}

func TestARotatedSecretThatAListingMeetsEndsTheConnectionToo(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		ask[*messages.Catalogue](t, h, catalogueOf(t))
		h.server.set(func() { h.server.unlisted = fmt.Errorf("not asked: %w", messages.ErrStaleKey) })
		again := catalogueOf(t)
		again.Fresh = true
		got := ask[*messages.Catalogue](t, h, again).GetFailure()
		if got.GetKind() != string(failure.KindMcpServerUnreachable) || got.GetMessage() != "the credential was rotated" {
			t.Errorf("the catalogue ended %v", got)
		}
		if list := h.connections(t); len(list) != 0 {
			t.Errorf("listed is %v", list)
		}
	})
}

func TestAServerThatNeverAnswersIsUnreachable(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		h.server.stall = make(chan struct{})
		began := time.Now()
		got := ask[*messages.Catalogue](t, h, catalogueOf(t)).GetFailure()
		if got.GetMessage() != `the server "crm" could not be reached: the connection timed out` || time.Since(began) != 30*time.Second {
			t.Errorf("after %s the catalogue ended %v", time.Since(began), got)
		}
		if list := h.connections(t); len(list) != 1 || list[0].GetState() == "ready" || list[0].GetLastError() != got.GetMessage() {
			t.Errorf("listed is %v", list)
		}
	})
}
