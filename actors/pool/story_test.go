package pool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/catalog"
	"github.com/psych-systems/psych-go/actors/connection"
	"github.com/psych-systems/psych-go/actors/pool"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lostAnswer is a call that was sent and not answered.
type lostAnswer struct{ error }

func (lostAnswer) Sent() bool { return true }

func (lostAnswer) Kind() failure.Kind { return failure.KindMcpServerUnreachable }

func (l lostAnswer) Unwrap() error { return l.error }

// server is what all sessions of a story speak to.
type server struct {
	mu       sync.Mutex
	dials    []string
	sessions []*session
	// refuse is what dialing fails with; nil lets it succeed.
	refuse error
	// call plays a call; nil answers at once.
	call func(ctx context.Context, call *messages.CallTool) (*messages.ToolResult, error)
}

func (s *server) Dial(_ context.Context, target *messages.Target) (connection.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials = append(s.dials, target.GetKey().GetTenant())
	if s.refuse != nil {
		return nil, s.refuse
	}
	opened := &session{server: s, tenant: target.GetKey().GetTenant(), lost: make(chan struct{})}
	s.sessions = append(s.sessions, opened)
	return opened, nil
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// open counts the sessions that were dialed and not closed.
func (s *server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := 0
	for _, one := range s.sessions {
		if one.closes == 0 {
			open++
		}
		if one.closes > 1 {
			panic("a session was closed twice")
		}
	}
	return open
}

type session struct {
	server *server
	tenant string
	lost   chan struct{}
	closes int
}

func (*session) ProtocolVersion() string { return "2026-07-28" }

func (*session) Instructions() string { return "" }

func (s *session) ListTools(context.Context, string, string) (*messages.Listing, error) {
	return &messages.Listing{Etag: s.tenant, Tools: []*messages.Tool{{Name: "of-" + s.tenant}}}, nil
}

func (s *session) CallTool(ctx context.Context, call *messages.CallTool) (*messages.ToolResult, error) {
	s.server.mu.Lock()
	play := s.server.call
	s.server.mu.Unlock()
	if call.GetTarget().GetKey().GetTenant() != s.tenant {
		panic("a call of another tenant")
	}
	if play == nil {
		return &messages.ToolResult{Text: s.tenant}, nil
	}
	return play(ctx, call)
}

func (*session) Watch(ctx context.Context, _ string, opened, _ func()) (bool, error) {
	opened()
	<-ctx.Done()
	return true, ctx.Err()
}

func (s *session) Closed() <-chan struct{} { return s.lost }

func (s *session) Close() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.closes++
}

// house is a pool with real connections and catalogs over a played server.
type house struct {
	system *actor.ActorSystem
	pool   *actor.PID
	server *server
}

func inHouse(t *testing.T, change func(*pool.Deps, *connection.Deps, *catalog.Deps), story func(t *testing.T, h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		logger := zap.NewNop()
		h := &house{system: supervision.NewSystem(logger), server: &server{}}
		pools := pool.Deps{Logger: logger}
		connections := connection.Deps{Dialer: h.server, Logger: logger}
		catalogs := catalog.Deps{Logger: logger}
		if change != nil {
			change(&pools, &connections, &catalogs)
		}
		connections.Catalog = func(source connection.Source) *actor.Props {
			own := catalogs
			own.Source = source
			return catalog.Props(own)
		}
		pools.Connection = func(key messages.PoolKey) *actor.Props { return connection.Props(key, connections) }
		h.pool = h.system.Root.Spawn(pool.Props(pools))
		story(t, h)
		if err := h.system.Root.StopFuture(h.pool).Wait(); err != nil {
			t.Errorf("the pool does not stop: %v", err)
		}
		synctest.Wait()
		if open := h.server.open(); open != 0 {
			t.Errorf("%d sessions are open after the end", open)
		}
		h.system.Shutdown()
	})
}

func target(t testing.TB, tenant string) *messages.Target {
	t.Helper()
	key, err := messages.NewPoolKey(messages.Scope{Tenant: tenant}, "https://mcp.example.com/", messages.TransportHTTP, "")
	if err != nil {
		t.Fatal(err)
	}
	return &messages.Target{Key: key.Message(), Server: "crm"}
}

// ask puts a question and waits for its answer.
func ask[A any](t testing.TB, h *house, question any) A {
	t.Helper()
	answer, err := h.system.Root.RequestFuture(h.pool, question, 10*time.Minute).Result()
	if err != nil {
		t.Fatalf("%T has no answer: %v", question, err)
	}
	typed, ok := answer.(A)
	if !ok {
		t.Fatalf("%T is answered by %T", question, answer)
	}
	return typed
}

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

// counting is an asker that counts the answers to each of its questions.
type counting struct {
	mu      sync.Mutex
	answers map[string]int
}

func (c *counting) Receive(ctx actor.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch message := ctx.Message().(type) {
	case *messages.Catalogue:
		c.answers[message.GetRequestId()]++
	case *messages.CallDone:
		c.answers[message.GetCallId()]++
	case *messages.Connections:
		c.answers[message.GetRequestId()]++
	case *messages.Disconnected:
		c.answers[message.GetRequestId()]++
	}
}

// TestWhateverFailsEachQuestionHasExactlyOneAnswer asks at random, while
// connections and catalogs panic before and after their messages, sessions are
// lost, dialing fails, calls hang, are lost, panic and are cancelled, and
// connections are disconnected.
func TestWhateverFailsEachQuestionHasExactlyOneAnswer(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func chaos(t *testing.T, chance *rand.Rand) {
	var mu sync.Mutex
	rolls := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return chance.IntN(n)
	}
	panics := actor.ReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			switch envelope.Message.(type) {
			case actor.SystemMessage, actor.AutoReceiveMessage, *actor.Started:
				next(ctx, envelope)
				return
			}
			roll := rolls(60)
			if roll == 0 {
				panic("before")
			}
			next(ctx, envelope)
			if roll == 1 {
				panic("after")
			}
		}
	})
	plans := func(p *pool.Deps, c *connection.Deps, g *catalog.Deps) {
		p.MaxConnections, c.MaxCalls, c.MaxWaiting, c.IdleClose = 4, 3, 4, 20*time.Second
		c.Middleware, g.Middleware = []actor.ReceiverMiddleware{panics}, []actor.ReceiverMiddleware{panics}
	}
	inHouse(t, plans, func(t *testing.T, h *house) {
		h.server.call = func(ctx context.Context, _ *messages.CallTool) (*messages.ToolResult, error) {
			switch rolls(6) {
			case 0:
				<-ctx.Done()
				return nil, lostAnswer{failure.New(failure.KindCancelled, "cancelled", nil)}
			case 1:
				return nil, lostAnswer{errors.New("lost")}
			case 2:
				panic("in the session")
			default:
				time.Sleep(time.Duration(rolls(3000)) * time.Millisecond)
				return &messages.ToolResult{Text: "done"}, nil
			}
		}
		asker := &counting{answers: map[string]int{}}
		pid := h.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return asker }))
		var questions []string
		for i := range 400 {
			id := fmt.Sprint("q", i)
			to := target(t, fmt.Sprint("tenant", rolls(6)))
			if rolls(5) == 0 {
				to.Session = fmt.Sprint("run", rolls(3))
			}
			deadline := time.Now().Add(time.Duration(rolls(20)) * time.Second).UnixMilli()
			var message any
			switch rolls(12) {
			case 0, 1, 2:
				message = &messages.GetCatalogue{RequestId: id, Target: to, Fresh: rolls(4) == 0, DeadlineUnixMs: deadline}
			case 3:
				message = &messages.ListConnections{RequestId: id}
			case 4:
				message = &messages.Disconnect{RequestId: id, Tenant: to.GetKey().GetTenant()}
			case 5:
				h.system.Root.RequestWithCustomSender(h.pool, &messages.CancelCall{CallId: fmt.Sprint("q", rolls(i+1)), Target: to}, pid)
			case 6:
				h.system.Root.RequestWithCustomSender(h.pool, &messages.ReleaseSession{Target: to}, pid)
			case 7:
				h.server.set(func() {
					h.server.refuse = nil
					if rolls(3) == 0 {
						h.server.refuse = failure.New(failure.KindMcpServerUnreachable, "away", nil)
					}
					for _, one := range h.server.sessions {
						if one.closes == 0 && rolls(4) == 0 {
							select {
							case <-one.lost:
							default:
								close(one.lost)
							}
						}
					}
				})
			default:
				message = &messages.CallTool{CallId: id, Target: to, Tool: "x", DeadlineUnixMs: deadline, Repeatable: rolls(2) == 0}
			}
			if message != nil {
				questions = append(questions, id)
				h.system.Root.RequestWithCustomSender(h.pool, message, pid)
			}
			if rolls(3) == 0 {
				time.Sleep(time.Duration(rolls(500)) * time.Millisecond)
			}
		}
		time.Sleep(15 * time.Minute)
		asker.mu.Lock()
		wrong := map[string]int{}
		for _, id := range questions {
			if got := asker.answers[id]; got != 1 {
				wrong[id] = got
			}
		}
		extra := len(asker.answers) - len(questions) + len(wrong)
		asker.mu.Unlock()
		if len(wrong) > 0 || extra < 0 {
			t.Errorf("of %d questions, these have another number of answers than one: %v", len(questions), slices.Sorted(maps.Keys(wrong)))
			t.Log(wrong)
		}
		if err := h.system.Root.StopFuture(pid).Wait(); err != nil {
			t.Error(err)
		}
	})
}
