package pool_test

import (
	"context"
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
	// stall is waited for by dialing; nil is nothing.
	stall chan struct{}
	// unlisted is what listing fails with; nil lets it succeed.
	unlisted error
	// call plays a call; nil answers at once.
	call func(ctx context.Context, call *messages.CallTool) (*messages.ToolResult, error)
}

func (s *server) Dial(ctx context.Context, target *messages.Target) (connection.Session, error) {
	s.mu.Lock()
	stall := s.stall
	s.mu.Unlock()
	if stall != nil {
		select {
		case <-stall:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
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
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.unlisted != nil {
		return nil, s.server.unlisted
	}
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

// lose ends the session from the server's side.
func (s *session) lose() {
	select {
	case <-s.lost:
	default:
		close(s.lost)
	}
}

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
