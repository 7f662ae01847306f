package catalog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/catalog"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source plays a session: a list that changes, answered after a delay with what
// it was when the request came.
type source struct {
	mu      sync.Mutex
	list    int
	delay   time.Duration
	ttl     *int64
	fail    error
	fetches int
	// streams is the streams of changes that are open; ending one ends its Watch.
	streams []stream
	opened  int
	offers  bool
}

type stream struct {
	changed func()
	end     context.CancelFunc
}

func (s *source) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *source) Epoch() (uint64, bool) { return 1, true }

func (s *source) ProtocolVersion() string { return "2026-07-28" }

func (s *source) Instructions() string { return "" }

func (s *source) Awaits() error { return nil }

func (s *source) ListTools(ctx context.Context, previous string, _ bool) (*messages.Listing, error) {
	s.mu.Lock()
	s.fetches++
	etag, delay, ttl, fail := fmt.Sprint(s.list), s.delay, s.ttl, s.fail
	s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if fail != nil {
		return nil, fail
	}
	if etag == previous {
		return &messages.Listing{Etag: etag, Unchanged: true, TtlMs: ttl}, nil
	}
	return &messages.Listing{Etag: etag, TtlMs: ttl, Tools: []*messages.Tool{{Name: "list" + etag}}}, nil
}

func (s *source) Watch(ctx context.Context, opened, changed func()) (bool, error) {
	if !s.offers {
		return false, nil
	}
	own, end := context.WithCancel(ctx)
	defer end()
	s.set(func() {
		s.opened++
		s.streams = append(s.streams, stream{changed, end})
	})
	opened()
	<-own.Done()
	return true, nil
}

// change is a new list, announced on every stream.
func (s *source) change() {
	s.mu.Lock()
	s.list++
	streams := s.streams
	s.mu.Unlock()
	for _, one := range streams {
		one.changed()
	}
}

func (s *source) fetched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

// story runs a catalog under a parent.
func story(t *testing.T, s *source, deps catalog.Deps, tell func(t *testing.T, ask func(fresh bool) *messages.Catalogue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		deps.Source, deps.Logger = s, zap.NewNop()
		system := supervision.NewSystem(zap.NewNop())
		var child *actor.PID
		parent := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, started := ctx.Message().(*actor.Started); started {
				child = ctx.Spawn(catalog.Props(deps))
			}
		}))
		synctest.Wait()
		asked := 0
		tell(t, func(fresh bool) *messages.Catalogue {
			asked++
			answer, err := system.Root.RequestFuture(child, &messages.GetCatalogue{
				RequestId: fmt.Sprint(asked), Fresh: fresh, DeadlineUnixMs: time.Now().Add(30 * time.Second).UnixMilli(),
			}, time.Hour).Result()
			if err != nil {
				t.Fatalf("question %d has no answer: %v", asked, err)
			}
			return answer.(*messages.Catalogue)
		})
		if err := system.Root.StopFuture(parent).Wait(); err != nil {
			t.Error(err)
		}
		system.Shutdown()
	})
}

func name(got *messages.Catalogue) string {
	if got.GetFailure() != nil {
		return got.GetFailure().GetKind()
	}
	return got.GetSnapshot().GetTools()[0].GetName()
}

func TestAChangeDuringAFetchCausesExactlyOneMore(t *testing.T) {
	s := &source{offers: true}
	story(t, s, catalog.Deps{TTL: time.Hour}, func(t *testing.T, ask func(bool) *messages.Catalogue) {
		ask(false)
		time.Sleep(10 * time.Second)
		s.set(func() { s.delay = 500 * time.Millisecond; s.ttl = new(int64(600_000)) })
		before := s.fetched()
		s.change()
		synctest.Wait()
		if s.fetched() != before+1 {
			t.Fatalf("the change caused %d fetches", s.fetched()-before)
		}
		for range 5 {
			s.change()
		}
		time.Sleep(time.Minute)
		if s.fetched() != before+2 {
			t.Errorf("5 changes during a fetch caused %d more", s.fetched()-before-1)
		}
		if got := name(ask(false)); got != "list6" {
			t.Errorf("got %s", got)
		}
		if s.fetched() != before+2 {
			t.Error("a fresh list was fetched again")
		}
	})
}

func TestAnAskerNeverGetsAListThatAnAnnouncedChangeHadMadeStale(t *testing.T) {
	s := &source{offers: true, delay: 500 * time.Millisecond}
	story(t, s, catalog.Deps{TTL: time.Hour}, func(t *testing.T, ask func(bool) *messages.Catalogue) {
		for want := 1; want < 20; want++ {
			ask(false)
			s.change()
			synctest.Wait()
			if got := name(ask(false)); got != fmt.Sprint("list", want) {
				t.Fatalf("after change %d, got %s", want, got)
			}
		}
	})
}

func TestTimeToLive(t *testing.T) {
	for name, test := range map[string]struct {
		server *int64
		lives  time.Duration
	}{
		"the deployment's":      {nil, 5 * time.Minute},
		"the server's":          {new(int64(20_000)), 20 * time.Second},
		"at least a second":     {new(int64(0)), time.Second},
		"at most an hour":       {new(int64(1 << 50)), time.Hour},
		"never a negative time": {new(int64(-5)), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := &source{ttl: test.server}
			story(t, s, catalog.Deps{TTL: 5 * time.Minute}, func(t *testing.T, ask func(bool) *messages.Catalogue) {
				if got := ask(false).GetSnapshot().GetTtlMs(); got != test.lives.Milliseconds() {
					t.Errorf("the list lives %d ms", got)
				}
				before := s.fetched()
				ask(false)
				if s.fetched() != before {
					t.Error("a fresh list was fetched again")
				}
				// Nobody asks: it is swept once more, because it was in use, and then left.
				time.Sleep(10 * test.lives)
				if more := s.fetched() - before; more > 1 {
					t.Errorf("an unused list was fetched %d times", more)
				}
				before = s.fetched()
				ask(false)
				if s.fetched() != before+1 {
					t.Error("an old list was not fetched again")
				}
			})
		})
	}
}

func TestAStreamThatEndsIsOpenedAgainAndTheListFetchedAgain(t *testing.T) {
	s := &source{offers: true}
	story(t, s, catalog.Deps{TTL: time.Hour}, func(t *testing.T, ask func(bool) *messages.Catalogue) {
		ask(false)
		time.Sleep(time.Minute)
		for round := 1; round < 5; round++ {
			s.set(func() {
				s.list++ // unannounced: the stream is gone
				s.streams[len(s.streams)-1].end()
			})
			time.Sleep(3 * time.Minute)
			opened := 0
			s.set(func() { opened = s.opened })
			if opened != round+1 {
				t.Fatalf("after %d ends the stream was opened %d times", round, opened)
			}
			if got := name(ask(false)); got != fmt.Sprint("list", round) {
				t.Errorf("after the gap, got %s", got)
			}
		}
	})
}

func TestAFailureIsToldAndTheNextAskerTriesAgain(t *testing.T) {
	s := &source{fail: failure.New(failure.KindMcpResponseTooLarge, "too large", nil)}
	story(t, s, catalog.Deps{TTL: time.Hour}, func(t *testing.T, ask func(bool) *messages.Catalogue) {
		for range 3 {
			if got := name(ask(false)); got != string(failure.KindMcpResponseTooLarge) {
				t.Errorf("got %s", got)
			}
		}
		s.set(func() { s.fail = nil })
		if got := name(ask(false)); got != "list0" {
			t.Errorf("got %s", got)
		}
		s.set(func() { s.delay = time.Hour })
		if got := name(ask(true)); got != string(failure.KindMcpServerUnreachable) {
			t.Errorf("a server that does not answer: got %s", got)
		}
	})
}

func TestVersionsCountChangesAndEqualBytesAreTheSameVersion(t *testing.T) {
	s := &source{}
	story(t, s, catalog.Deps{TTL: time.Hour}, func(t *testing.T, ask func(bool) *messages.Catalogue) {
		first := ask(true).GetSnapshot()
		same := ask(true).GetSnapshot()
		s.change()
		next := ask(true).GetSnapshot()
		if first.GetVersion() != same.GetVersion() || next.GetVersion() != first.GetVersion()+1 || len(same.GetTools()) != 1 {
			t.Errorf("versions are %d, %d, %d", first.GetVersion(), same.GetVersion(), next.GetVersion())
		}
	})
}
