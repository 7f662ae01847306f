package mcpwire_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
)

// lostSession answers requests of session s1 in some server's words for "gone".
func lostSession(gone behaviour) func(*peer) behaviour {
	return func(p *peer) behaviour {
		return func(w http.ResponseWriter, r *request) {
			if r.Header.Get("Mcp-Session-Id") == "s1" {
				gone(w, r)
				return
			}
			p.standard(w, r)
		}
	}
}

// A lost session is opened again underneath, once, and what was certainly not
// carried out is sent again.
func TestALostSessionIsOpenedAgain(t *testing.T) {
	cases := []struct {
		name string
		gone behaviour
		// failing is how many calls fail before the session is taken for lost.
		failing int
		ran     bool
	}{
		{"404", raw(404, "-", ""), 0, false},
		{"404 with an error without id", raw(404, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`), 0, false},
		{"404 with an error of our id", raw(404, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"Session not found"}}`), 0, false},
		{"404 with an error of a constant id", raw(404, "application/json", `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`), 0, false},
		{"400", raw(400, "text/plain", "no valid session id"), 0, false},
		{"400 with an error", raw(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`), 0, false},
		{"401", challenge, 0, false},
		{"404 with a page", raw(404, "text/html", "<p>Not found.</p>"), 0, false},
		{"404 with a text", raw(404, "text/plain", "Session not found"), 0, false},
		{"404 of the type of a stream", raw(404, "text/event-stream", "data: {}\n\n"), 0, false},
		{"409", raw(409, "text/plain", "the session has ended"), 0, false},
		{"410", raw(410, "-", ""), 0, false},
		{"422", raw(422, "-", ""), 0, false},
		{"500 with a text", raw(500, "text/plain", "Session not found"), 2, true},
		{"500 with an error", raw(500, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session not found"}}`), 1, false},
		{"503", raw(503, "-", ""), 2, true},
		{"an error in a stream that is not JSON-RPC", events("data: {\"error\":\"Session not found\"}\n\n"), 2, true},
		{"an error that is not JSON-RPC", raw(200, "application/json", `{"error":"Session not found"}`), 2, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, legacy)
			s := connect(t, p)
			settle := neighbours(t, p, s)
			p.does("echo", lostSession(c.gone)(p))
			p.does("ping", lostSession(c.gone)(p))
			for range c.failing {
				if _, err := call(t.Context(), s, "echo"); err == nil || maybeRan(err) != c.ran {
					t.Fatalf("a call that met the loss: %v", err)
				}
			}
			if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" {
				t.Errorf("the call after the loss: %q, %v", text, err)
			}
			if n := len(p.seen("initialize")); n != 2 {
				t.Errorf("%d sessions were opened", n)
			}
			if p.seen("initialize")[1].Header.Get("Mcp-Session-Id") != "" {
				t.Error("the new session was asked for within the old one")
			}
			if n := len(p.seen("notifications/initialized")); n != 2 {
				t.Errorf("%d sessions were made ready", n)
			}
			settle()
		})
	}
}

func TestManyCallsOpenOneSession(t *testing.T) {
	p := newPeer(t, legacy)
	s := connect(t, p)
	p.does("echo", lostSession(raw(404, "-", ""))(p))
	p.does("initialize", func(w http.ResponseWriter, r *request) {
		time.Sleep(20 * time.Millisecond)
		p.standard(w, r)
	})
	var calls sync.WaitGroup
	for range 32 {
		calls.Go(func() {
			if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	calls.Wait()
	if n := len(p.seen("initialize")); n != 2 {
		t.Errorf("%d sessions were opened", n)
	}
}

// A server that loses two sessions in a row is not mistaken for ever for one whose
// status says nothing: later losses cost no call.
func TestASessionThatIsLostTwiceInARow(t *testing.T) {
	p := newPeer(t, legacy)
	s := connect(t, p)
	lost := map[string]bool{"s1": true, "s2": true}
	var mu sync.Mutex
	gone := func(w http.ResponseWriter, r *request) {
		mu.Lock()
		dead := lost[r.Header.Get("Mcp-Session-Id")]
		mu.Unlock()
		if dead {
			raw(404, "-", "")(w, r)
			return
		}
		p.standard(w, r)
	}
	p.does("echo", gone)
	p.does("ping", gone)
	failed := 0
	for session := 3; session < 9; session++ {
		for range 3 {
			if _, err := call(t.Context(), s, "echo"); err != nil {
				failed++
			}
		}
		mu.Lock()
		lost[fmt.Sprint("s", session)] = true
		mu.Unlock()
	}
	if failed > 2 {
		t.Errorf("%d calls failed", failed)
	}
	if opened := len(p.seen("initialize")); opened != 8 {
		t.Errorf("%d sessions were opened", opened)
	}
}

// A status that a new session does not change says nothing about sessions: the
// call fails, and no later one costs its neighbours their session.
func TestAStatusThatSaysNothingAboutTheSession(t *testing.T) {
	for _, status := range []int{400, 404, 409, 410, 422} {
		p := newPeer(t, legacy)
		s := connect(t, p)
		p.does("bad", raw(status, "-", ""))
		for range 5 {
			for range 3 {
				if _, err := call(t.Context(), s, "bad"); err == nil || maybeRan(err) {
					t.Fatal(err)
				}
			}
			if _, err := call(t.Context(), s, "echo"); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.seen("initialize")); n != 2 {
			t.Errorf("%d: %d sessions were opened", status, n)
		}
		// And yet a session that is lost later is opened again.
		lost := func(w http.ResponseWriter, r *request) {
			if r.Header.Get("Mcp-Session-Id") == "s2" {
				w.WriteHeader(status)
				return
			}
			p.standard(w, r)
		}
		p.does("echo", lost)
		p.does("ping", lost)
		_, _ = call(t.Context(), s, "echo")
		if _, err := call(t.Context(), s, "echo"); err != nil {
			t.Errorf("%d: after the loss: %v", status, err)
		}
	}
	invalid := raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"no such tool"}}`)
	q := newPeer(t, legacy)
	s := connect(t, q)
	q.does("bad", invalid)
	_, _ = call(t.Context(), s, "bad")
	if len(q.seen("initialize")) != 1 || len(q.seen("bad")) != 1 {
		t.Error("an error about the request cost a session")
	}
}

func TestASessionThatCannotBeOpenedAgain(t *testing.T) {
	p := newPeer(t, legacy)
	s := connect(t, p)
	p.does("echo", lostSession(raw(404, "-", ""))(p))
	p.does("initialize", raw(503, "-", ""))
	for n := range 3 {
		if _, err := call(t.Context(), s, "echo"); failure.KindOf(err) != failure.KindMcpServerUnreachable {
			t.Fatal(err)
		}
		if seen := len(p.seen("initialize")); seen != n+2 {
			t.Errorf("%d failures asked %d times for a session", n+1, seen-1)
		}
	}
	p.does("initialize", p.standard)
	if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" {
		t.Errorf("when the server is back: %q, %v", text, err)
	}
}

// The new session is opened away from any caller: one that stops waiting does
// not stop it for the others.
func TestACallerThatLeavesDoesNotStopTheNewSession(t *testing.T) {
	p := newPeer(t, legacy)
	s := connect(t, p)
	p.does("echo", lostSession(raw(404, "-", ""))(p))
	opened := make(chan struct{})
	p.does("initialize", func(w http.ResponseWriter, r *request) {
		<-opened
		p.standard(w, r)
	})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { _, err := call(ctx, s, "echo"); left <- err }()
	eventually(t, "the session is being opened", func() bool { return len(p.seen("initialize")) == 2 })
	leave()
	if err := <-left; err == nil {
		t.Error("no error for the one who left")
	}
	stayed := make(chan error)
	go func() { _, err := call(t.Context(), s, "echo"); stayed <- err }()
	eventually(t, "another call waits", func() bool { return len(p.seen("echo")) == 2 })
	close(opened)
	if err := <-stayed; err != nil {
		t.Error(err)
	}
	if n := len(p.seen("initialize")); n != 2 {
		t.Errorf("%d sessions were opened", n-1)
	}
}

// A server of an older revision asks for something of its own and waits for the
// answer before it goes on.
func TestAServersOwnRequestsAreAnswered(t *testing.T) {
	p := newPeer(t, legacy)
	answers := make(chan string, 2)
	p.does("", func(w http.ResponseWriter, r *request) {
		answers <- r.Body
		w.WriteHeader(http.StatusAccepted)
	})
	p.does("asks", func(w http.ResponseWriter, r *request) {
		events(`data: {"jsonrpc":"2.0","id":"p1","method":"ping"}`+"\n\n"+
			`data: {"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}`+"\n\n")(w, r)
		got := map[string]bool{<-answers: true, <-answers: true}
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"structuredContent\":%t}}\n\n", id(r),
			got[`{"jsonrpc":"2.0","id":"p1","result":{}}`] &&
				got[`{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"this client offers no such method"}}`])
	})
	s := connect(t, p)
	if text, err := call(t.Context(), s, "asks"); err != nil || text != "true" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestACallThatIsCalledOffIsCancelled(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			p := newPeer(t, version)
			gone := make(chan struct{})
			p.does("long", func(w http.ResponseWriter, r *request) {
				events(": here\n\n")(w, r)
				<-r.Context().Done()
				close(gone)
			})
			s := connect(t, p)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { _, err := call(ctx, s, "long"); ended <- err }()
			eventually(t, "the call is in flight", func() bool { return len(p.seen("long")) == 1 })
			cancel()
			if err := <-ended; failure.KindOf(err) != failure.KindCancelled || !maybeRan(err) {
				t.Error(err)
			}
			<-gone
			if version == modern {
				s.Close()
				if len(p.seen("notifications/cancelled")) != 0 {
					t.Error("the end of the stream tells it, no notification does")
				}
				return
			}
			eventually(t, "the server is told", func() bool { return len(p.seen("notifications/cancelled")) == 1 })
			if got, want := p.seen("notifications/cancelled")[0].Body, `"requestId":`+id(p.seen("long")[0]); !contains(got, want) {
				t.Errorf("%s does not name %s", got, want)
			}
		})
	}
}

// A stream of changes is its session's: a server that has lost the session may leave
// it open and say nothing more on it. With a new session the stream is left for
// another one, and what the tools are has to be asked again, also where the server
// has no such stream.
func TestANewSessionHasAStreamOfChangesOfItsOwn(t *testing.T) {
	silent := func(w http.ResponseWriter, r *request) {
		events("")(w, r)
		hangs(w, r)
	}
	for name, c := range map[string]struct {
		stream behaviour
		again  bool
	}{
		"a stream that stays open":  {silent, true},
		"a stream that never opens": {hangs, true},
		"no stream":                 {raw(405, "-", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, legacy)
			p.does(http.MethodGet, c.stream)
			s := connect(t, p)
			changed, ended := make(chan struct{}, 1), make(chan bool, 1)
			go func() {
				again, err := s.Watch(t.Context(), "", func() {}, func() { changed <- struct{}{} })
				speaksWell(t, err)
				ended <- again
			}()
			eventually(t, "the stream is asked for", func() bool { return len(p.seen(http.MethodGet)) == 1 })
			p.does("echo", lostSession(raw(404, "-", ""))(p))
			if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" {
				t.Fatalf("the call after the loss: %q, %v", text, err)
			}
			if again := <-ended; again != c.again {
				t.Errorf("listening again is worth it: %v", again)
			}
			<-changed
			if !c.again {
				return
			}
			p.does(http.MethodGet, events(changedOnce))
			if again, err := s.Watch(t.Context(), "", func() {}, func() { changed <- struct{}{} }); !again || err != nil {
				t.Errorf("the next stream: %v, %v", again, err)
			}
			<-changed
			streams := p.seen(http.MethodGet)
			if first, second := streams[0].Header.Get("Mcp-Session-Id"), streams[1].Header.Get("Mcp-Session-Id"); first != "s1" || second != "s2" {
				t.Errorf("the streams were opened in the sessions %q and %q", first, second)
			}
		})
	}
}
