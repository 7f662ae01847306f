package pool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

func TestEachKeyHasOneConnectionAndItsOwnTools(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		for range 3 {
			for _, tenant := range []string{"acme", "globex"} {
				got := ask[*messages.Catalogue](t, h, &messages.GetCatalogue{RequestId: "c", Target: target(t, tenant)})
				if got.GetFailure() != nil || got.GetSnapshot().GetTools()[0].GetName() != "of-"+tenant {
					t.Errorf("%s got %v", tenant, got)
				}
				done := ask[*messages.CallDone](t, h, &messages.CallTool{CallId: "1", Target: target(t, tenant), Tool: "x"})
				if done.GetResult().GetText() != tenant {
					t.Errorf("%s got %v", tenant, done)
				}
			}
		}
		if !slices.Equal(slices.Sorted(slices.Values(h.server.dials)), []string{"acme", "globex"}) {
			t.Errorf("dialed were %v", h.server.dials)
		}
		time.Sleep(time.Second)
		list := ask[*messages.Connections](t, h, &messages.ListConnections{RequestId: "l", Tenant: "acme"})
		if len(list.GetConnections()) != 1 || list.GetConnections()[0].GetState() != "ready" || list.GetConnections()[0].GetToolCount() != 1 {
			t.Errorf("listed are %v", list)
		}
	})
}

func TestADeadServerIsProbedAndItsCallersReadWhyAtOnce(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		h.server.refuse = failure.New(failure.KindMcpServerUnreachable, `the server "crm" refused the connection`, nil)
		for range 50 {
			got := ask[*messages.Catalogue](t, h, &messages.GetCatalogue{RequestId: "c", Target: target(t, "acme")})
			if got.GetFailure().GetKind() != string(failure.KindMcpServerUnreachable) || got.GetFailure().GetMessage() != `the server "crm" refused the connection` {
				t.Fatalf("got %v", got)
			}
		}
		if dials := len(h.server.dials); dials > 3 {
			t.Errorf("the dead server was dialed %d times", dials)
		}
		time.Sleep(5 * time.Minute)
		h.server.set(func() { h.server.refuse = nil })
		if got := ask[*messages.Catalogue](t, h, &messages.GetCatalogue{RequestId: "c", Target: target(t, "acme")}); got.GetFailure() != nil {
			t.Errorf("once it is back, got %v", got)
		}
	})
}

func TestTheBreakerOpensOnLostAnswersAndLetsOneProbe(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		// What the catalog fetches is a success that would count between the failures.
		ask[*messages.Catalogue](t, h, &messages.GetCatalogue{RequestId: "c", Target: target(t, "acme")})
		time.Sleep(time.Minute)
		sent := 0
		h.server.call = func(context.Context, *messages.CallTool) (*messages.ToolResult, error) {
			h.server.set(func() { sent++ })
			return nil, lostAnswer{errors.New("the server broke off its answer")}
		}
		kinds := map[string]int{}
		for i := range 40 {
			done := ask[*messages.CallDone](t, h, &messages.CallTool{CallId: fmt.Sprint(i), Target: target(t, "acme"), Tool: "x"})
			kinds[done.GetFailure().GetKind()]++
		}
		if sent > 5 || kinds[string(failure.KindOutcomeUnknown)] != sent || kinds[string(failure.KindMcpServerUnreachable)] != 40-sent {
			t.Errorf("%d were sent and ended %v", sent, kinds)
		}
		time.Sleep(time.Minute)
		h.server.set(func() { h.server.call = nil })
		if done := ask[*messages.CallDone](t, h, &messages.CallTool{CallId: "probe", Target: target(t, "acme"), Tool: "x"}); done.GetFailure() != nil {
			t.Errorf("the probe ended %v", done)
		}
	})
}

func TestWhatIsBeyondTheLimitsIsBusyAndASlowCallDelaysNobody(t *testing.T) {
	limits := func(_ *pool.Deps, c *connection.Deps, _ *catalog.Deps) { c.MaxCalls, c.MaxWaiting = 3, 2 }
	inHouse(t, limits, func(t *testing.T, h *house) {
		release := make(chan struct{})
		h.server.call = func(context.Context, *messages.CallTool) (*messages.ToolResult, error) {
			<-release
			return &messages.ToolResult{Text: "slow"}, nil
		}
		var futures []*actor.Future
		for i := range 8 {
			futures = append(futures, h.system.Root.RequestFuture(h.pool, &messages.CallTool{CallId: fmt.Sprint(i), Target: target(t, "acme"), Tool: "x"}, time.Minute))
			synctest.Wait()
		}
		other := ask[*messages.Catalogue](t, h, &messages.GetCatalogue{RequestId: "c", Target: target(t, "acme")})
		if other.GetFailure() != nil {
			t.Errorf("beside slow calls, the tools are %v", other)
		}
		close(release)
		ends := map[string]int{}
		for _, future := range futures {
			answer, err := future.Result()
			if err != nil {
				t.Fatal(err)
			}
			ends[answer.(*messages.CallDone).GetFailure().GetKind()]++
		}
		if ends[""] != 5 || ends[string(failure.KindBusy)] != 3 {
			t.Errorf("the calls ended %v", ends)
		}
	})
}

func TestIdleConnectionsCloseAndAFullPoolMakesRoom(t *testing.T) {
	small := func(p *pool.Deps, c *connection.Deps, _ *catalog.Deps) {
		p.MaxConnections, c.IdleClose = 2, time.Minute
	}
	inHouse(t, small, func(t *testing.T, h *house) {
		for _, tenant := range []string{"a", "b", "c", "d"} {
			if got := ask[*messages.Catalogue](t, h, &messages.GetCatalogue{RequestId: "c", Target: target(t, tenant)}); got.GetFailure() != nil {
				t.Errorf("%s got %v", tenant, got)
			}
			time.Sleep(time.Second)
		}
		list := ask[*messages.Connections](t, h, &messages.ListConnections{RequestId: "l"})
		if len(list.GetConnections()) != 2 {
			t.Errorf("the pool holds %v", list)
		}
		time.Sleep(10 * time.Minute)
		if list := ask[*messages.Connections](t, h, &messages.ListConnections{RequestId: "l"}); len(list.GetConnections()) != 0 {
			t.Errorf("after the idle time the pool holds %v", list)
		}
		if open := h.server.open(); open != 0 {
			t.Errorf("%d sessions are open", open)
		}
	})
}

func TestAMessageUnderAForeignKeyIsRefused(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		ask[*messages.Catalogue](t, h, &messages.GetCatalogue{RequestId: "c", Target: target(t, "acme")})
		id := ask[*messages.Connections](t, h, &messages.ListConnections{RequestId: "l"}).GetConnections()[0].GetId()
		direct := actor.NewPID(h.pool.GetAddress(), h.pool.GetId()+"/connection/"+id)
		answer, err := h.system.Root.RequestFuture(direct, &messages.CallTool{CallId: "1", Target: target(t, "globex"), Tool: "x"}, time.Minute).Result()
		if err != nil || answer.(*messages.CallDone).GetFailure().GetKind() != string(failure.KindAccessDenied) {
			t.Errorf("got %v (%v)", answer, err)
		}
	})
}
