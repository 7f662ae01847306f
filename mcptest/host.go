package mcptest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// Host is an origin that records whatever reaches it: where a redirect or an
// endpoint event points that nobody should follow, or where a handler of others
// is served that a test stops, starts and watches.
type Host struct {
	tb      testing.TB
	address string
	handler http.Handler
	// running is nil while the host is stopped. Only the test's own goroutine starts
	// and stops it.
	running *process

	mu  sync.Mutex
	log []Request
	// streams end the streams of changes that are open.
	streams map[*context.CancelCauseFunc]struct{}
}

// NewHost starts a host and stops it at the end of the test. A nil handler answers
// everything with an empty JSON object.
func NewHost(tb testing.TB, handler http.Handler) *Host {
	tb.Helper()
	if handler == nil {
		handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		})
	}
	h := &Host{tb: tb, address: "127.0.0.1:0", handler: handler, streams: map[*context.CancelCauseFunc]struct{}{}}
	h.Start()
	tb.Cleanup(h.Stop)
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

// Start starts a host that [Host.Stop] stopped, at its old address.
func (h *Host) Start() {
	h.tb.Helper()
	if h.running != nil {
		return
	}
	listener, err := listen(h.address)
	if err != nil {
		h.tb.Fatalf("mcptest: the host cannot listen: %v", err)
	}
	h.address = listener.Addr().String()
	h.running = serve(listener, http.HandlerFunc(h.serve), nil)
}

// Kill closes the socket and every connection, as a machine's end does, and leaves
// the handlers of requests to end by themselves. Clients are refused until
// [Host.Start].
func (h *Host) Kill() {
	if h.running != nil {
		_ = h.running.http.Close()
		h.running.cancel()
	}
}

// Stop is a [Host.Kill], and waits until each request has ended.
func (h *Host) Stop() {
	h.Kill()
	if h.running != nil {
		h.running.work.Wait()
		h.running = nil
	}
}

var errCut = errors.New("the stream was cut")

// CutStreams breaks the connections that carry a stream of changes: the answer to
// a GET, or to a subscriptions/listen.
func (h *Host) CutStreams() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for cut := range h.streams {
		(*cut)(errCut)
	}
}

func (h *Host) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	request := NewRequest(r, body)
	h.mu.Lock()
	h.log = append(h.log, request)
	h.mu.Unlock()
	if !request.About(Get) && !request.About("subscriptions/listen") {
		h.handler.ServeHTTP(w, r)
		return
	}
	ctx, cut := context.WithCancelCause(r.Context())
	h.mu.Lock()
	h.streams[&cut] = struct{}{}
	h.mu.Unlock()
	h.handler.ServeHTTP(w, r.WithContext(ctx))
	h.mu.Lock()
	delete(h.streams, &cut)
	h.mu.Unlock()
	if errors.Is(context.Cause(ctx), errCut) {
		panic(http.ErrAbortHandler)
	}
	cut(nil)
}
