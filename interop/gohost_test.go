package interop_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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
	make    func(*hosted) life
	current atomic.Pointer[life]

	mu  sync.Mutex
	ran map[string]int
	// more are the tools that were added and not removed.
	more map[string]bool
}

func host(t testing.TB, make func(*hosted) life) *hosted {
	t.Helper()
	s := &hosted{make: make, ran: map[string]int{}, more: map[string]bool{}}
	s.born()
	s.Host = mcptest.NewHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.current.Load()).ServeHTTP(w, r) }))
	t.Cleanup(s.Stop)
	return s
}

// born makes what a new process would: it remembers nothing of the one before.
func (s *hosted) born() {
	s.more = map[string]bool{"gone": true}
	now := s.make(s)
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
	what, name, _ := strings.Cut(order, " ")
	s.mu.Lock()
	s.more[name] = what == "add"
	s.mu.Unlock()
	(*s.current.Load()).change(what, name)
}

func (s *hosted) Stop() {
	s.Host.Stop()
	(*s.current.Load()).close()
}

func (s *hosted) Start() {
	s.born()
	s.Host.Start()
}
