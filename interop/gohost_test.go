package interop_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/mcptest"
)

// life is one life of a server in this process.
type life interface {
	http.Handler
	// change adds or removes a tool, and has that told.
	change(what, name string)
	// close ends what would outlive the server's connections.
	close()
}

// hosted is a server of a Go SDK on a real socket.
type hosted struct {
	*mcptest.Host
	bear    func(*hosted) life
	current atomic.Pointer[life]

	mu  sync.Mutex
	ran map[string]int
	// over is closed when the life ends that began last.
	over chan struct{}
}

func host(t testing.TB, bear func(*hosted) life) *hosted {
	t.Helper()
	s := &hosted{bear: bear, ran: map[string]int{}}
	s.born()
	s.Host = mcptest.NewHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.current.Load()).ServeHTTP(w, r) }))
	t.Cleanup(s.Stop)
	return s
}

// born makes what a new process would: it remembers nothing of the one before.
func (s *hosted) born() {
	s.over = make(chan struct{})
	now := s.bear(s)
	s.current.Store(&now)
}

func (s *hosted) Origin() string { return s.URL() }

func (s *hosted) Ran(tool string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran[tool]
}

// runs counts a run of a tool.
func (s *hosted) runs(tool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran[tool]++
}

// Order changes the tools; see server.
func (s *hosted) Order(order string) {
	if what, name, changes := strings.Cut(order, " "); changes {
		(*s.current.Load()).change(what, name)
	}
}

func (s *hosted) Stop() {
	select {
	case <-s.over:
		return
	default:
	}
	s.Kill()
	close(s.over)
	s.Host.Stop()
	(*s.current.Load()).close()
}

// startTime is how long a process takes to start. A client that keeps connections
// learns meanwhile that they have ended.
const startTime = 200 * time.Millisecond

func (s *hosted) Start() {
	time.Sleep(startTime)
	s.born()
	s.Host.Start()
}
