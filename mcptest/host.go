package mcptest

import (
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// Host is an origin that records whatever reaches it: where a redirect or an
// endpoint event points that nobody should follow.
type Host struct {
	address string

	mu  sync.Mutex
	log []Request
}

// NewHost starts a host and stops it at the end of the test. A nil handler answers
// everything with an empty JSON object.
func NewHost(tb testing.TB, handler http.Handler) *Host {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("mcptest: the host cannot listen: %v", err)
	}
	if handler == nil {
		handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		})
	}
	h := &Host{address: listener.Addr().String()}
	running := serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.log = append(h.log, newRequest(r, body))
		h.mu.Unlock()
		handler.ServeHTTP(w, r)
	}), nil)
	tb.Cleanup(running.stop)
	return h
}

// URL is the host's origin.
func (h *Host) URL() string { return "http://" + h.address }

// Requests is what reached the host, oldest first.
func (h *Host) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.log)
}
