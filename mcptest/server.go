package mcptest

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// Server is an MCP tool server on a loopback socket. Its methods are safe for
// concurrent use.
type Server struct {
	settings
	scripted
	address string
	// running is the process, so to speak: nil while the server is stopped. Only
	// the test's own goroutine starts and stops it.
	running *process

	// What follows is guarded by mu.
	streams  []*stream         // open for notifications, oldest first
	sessions map[string]bool   // the session ids that are alive
	kept     map[string]string // event id -> the message that follows it, for Resume
	serial   int               // of sessions and events
}

// process is one life of a server, from a start to a stop.
type process struct {
	http   *http.Server
	cancel context.CancelFunc
	work   sync.WaitGroup // the accepting, the connections, and work that outlives its request
}

// NewServer starts a server and stops it at the end of the test.
func NewServer(tb testing.TB, options ...Option) *Server {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("mcptest: the server cannot listen: %v", err)
	}
	s := &Server{
		settings: newSettings(options),
		address:  listener.Addr().String(),
		sessions: make(map[string]bool),
		kept:     make(map[string]string),
	}
	s.prepare(tb)
	if s.protection != nil && s.protection.Within {
		s.protection.authorization.adopt(s.Origin())
	}
	s.running = s.serve(listener)
	tb.Cleanup(s.Stop)
	return s
}

// URL is the server's address: its MCP endpoint, or, of an [HTTPSSE] server, the
// address of its stream.
func (s *Server) URL() string {
	if s.sse {
		return s.Origin() + "/sse"
	}
	return s.Origin() + "/mcp"
}

// Origin is the server's scheme, host and port.
func (s *Server) Origin() string {
	if s.tls {
		return "https://" + s.address
	}
	return "http://" + s.address
}

func (s *Server) serve(listener net.Listener) *process {
	if s.tls {
		return serve(listener, s, secure())
	}
	return serve(listener, s, nil)
}

// Start starts a server that [Server.Stop] stopped, at its old address, with
// no session left.
func (s *Server) Start() {
	s.tb.Helper()
	if s.running != nil {
		return
	}
	listener, err := listen(s.address)
	if err != nil {
		s.tb.Fatalf("mcptest: the server cannot listen: %v", err)
	}
	s.running = s.serve(listener)
}

// listen opens a socket again. Its port may be lent to an outgoing connection of
// somebody else for the moment; that passes.
func listen(address string) (net.Listener, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		listener, err := net.Listen("tcp", address)
		if err == nil || time.Now().After(deadline) {
			return listener, err
		}
	}
}

// Stop closes the socket and every connection, and waits until each request has
// ended. Clients are refused until [Server.Start].
func (s *Server) Stop() {
	if s.running == nil {
		return
	}
	s.running.stop()
	s.running = nil
	s.DropSessions()
}

// CloseIdle closes the connections that are kept alive and carry no request, as
// servers do after a while.
func (s *Server) CloseIdle() {
	if s.running != nil {
		s.running.http.SetKeepAlivesEnabled(false)
		s.running.http.SetKeepAlivesEnabled(true)
	}
}

// Restart is a Stop and a Start: connections break, sessions are forgotten, the
// address stays.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()
	s.Start()
}

// DropSessions forgets all sessions, as an expiry does: requests of a forgotten
// session are [LostSession], and open streams stay open.
func (s *Server) DropSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// SetTools replaces the server's tools, without telling anybody.
func (s *Server) SetTools(tools ...Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = slices.Clone(tools)
}

func (s *Server) currentTools() []Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// serve starts a process on a listener; nil for cleartext.
func serve(listener net.Listener, handler http.Handler, secured *tls.Config) *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{cancel: cancel}
	p.http = &http.Server{
		Handler:     withProcess(p, handler),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				p.work.Add(1)
			case http.StateClosed, http.StateHijacked:
				p.work.Done()
			}
		},
	}
	if secured == nil {
		p.work.Go(func() { _ = p.http.Serve(listener) })
		return p
	}
	p.http.TLSConfig = secured
	p.http.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){http2.NextProtoTLS: serveHTTP2}
	p.work.Go(func() { _ = p.http.ServeTLS(listener, "", "") })
	return p
}

// stop ends the process: every request's context first, so that handlers that
// wait return, then every connection.
func (p *process) stop() {
	p.cancel()
	_ = p.http.Close()
	p.work.Wait()
}

type processKey struct{}

func withProcess(p *process, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), processKey{}, p)))
	})
}

// background runs work that outlives the request it came with; the process waits
// for it when it stops.
func background(ctx context.Context, work func()) {
	ctx.Value(processKey{}).(*process).work.Go(work)
}

// ServeHTTP answers one request: by a script, or as an ordinary server.
func (s *Server) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the client hung up
	}
	x := &Exchange{Request: NewRequest(hr, body), http: hr, writer: w, server: s, ordinary: s.answer}
	x.Request.lost = s.isLost(x.Request)
	s.play(x)
}

// isLost reports whether a request names a session that the server does not know.
func (s *Server) isLost(r Request) bool {
	id := r.Session()
	if s.sse {
		_, id, _ = strings.Cut(r.Path, "session=")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return id != "" && !s.sessions[id]
}
