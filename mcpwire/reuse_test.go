package mcpwire_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcpwire"
)

// connections are the addresses that requests came from.
func (p *peer) connections() int {
	from := make(map[string]bool)
	for _, r := range p.seen("") {
		from[r.RemoteAddr] = true
	}
	return len(from)
}

// An answer that is a stream leaves its connection usable, like any other.
func TestCallsShareAConnection(t *testing.T) {
	for name, b := range map[string]behaviour{
		"JSON": raw(200, "application/json", "$REPLY"), "a stream": events("data: $REPLY\n\n"),
		"202": raw(202, "-", ""), "an error's body": raw(500, "text/plain", "oops"),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, modern)
			p.does("x", b)
			s := connect(t, p)
			for range 10 {
				_, _ = call(t.Context(), s, "x")
				time.Sleep(2 * time.Millisecond) // the rest of an answer is read away from the caller
			}
			if n := p.connections(); n > 2 {
				t.Errorf("10 calls took %d connections", n)
			}
		})
	}
}

// With HTTP/2 one connection carries a session's calls, its watcher, and what
// goes wrong with any of them.
func TestOneConnectionCarriesEverything(t *testing.T) {
	p := &peer{version: modern, release: make(chan struct{}), on: make(map[string]behaviour)}
	p.Server = httptest.NewUnstartedServer(p)
	p.Server.EnableHTTP2 = true
	p.Server.StartTLS()
	t.Cleanup(p.Server.Close)
	s := connect(t, p, func(o *mcpwire.Options) {
		o.Client = p.Server.Client()
		o.MaxResponseBytes = func() int64 { return ceiling }
	})
	p.does("subscriptions/listen", func(w http.ResponseWriter, r *request) {
		events(acknowledged)(w, r)
		hangs(w, r)
	})
	p.does("endless", func(w http.ResponseWriter, r *request) {
		w.Header().Set("Content-Type", "application/json")
		endless(w, r)
	})
	p.does("aborted", func(w http.ResponseWriter, _ *request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{")
		panic(http.ErrAbortHandler)
	})
	p.does("silent", hangs)
	ctx, leave := context.WithCancel(t.Context())
	opened, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		_, _ = s.Watch(ctx, "", func() { close(opened) }, func() {})
	}()
	soon(t, "the stream is opened", opened)
	settle := neighbours(t, p, s)
	for tool, kind := range map[string]failure.Kind{
		"endless": failure.KindMcpResponseTooLarge, "aborted": failure.KindMcpServerUnreachable, "silent": failure.KindDeadlineExceeded,
	} {
		patience, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := call(patience, s, tool); failure.KindOf(err) != kind || !maybeRan(err) {
			t.Errorf("%s: %v", tool, err)
		}
		cancel()
	}
	settle()
	leave()
	soon(t, "the watcher has left", left)
	for _, r := range p.seen("") {
		if r.ProtoMajor != 2 {
			t.Fatalf("%s came over %s", r.key(), r.Proto)
		}
	}
	if n := p.connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
