package mcpwire_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/mcpwire"
)

const (
	acknowledged = `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID},"notifications":{"toolsListChanged":true}}}` + "\n\n"
	grantNothing = `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}` + "\n\n"
	changedOnce  = `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n\n"
	ended        = `data: {"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete"}}` + "\n\n"
)

// stream is the key under which a peer of a revision is asked for its stream.
func stream(version string) string {
	if version == modern {
		return "subscriptions/listen"
	}
	return http.MethodGet
}

func TestWhatAStreamOfChangesTells(t *testing.T) {
	cases := []struct {
		name            string
		version         string
		peer            behaviour
		opened, changed int32
		again, failed   bool
	}{
		{"a change and an end in order", modern, events(acknowledged + changedOnce + ended), 1, 1, true, false},
		{"a change and an end", modern, events(acknowledged + changedOnce + changedOnce), 1, 2, true, false},
		{"an end that is announced", modern, func(w http.ResponseWriter, r *request) {
			events(acknowledged+`data: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}`+"\n\n")(w, r)
			hangs(w, r)
		}, 1, 0, true, false},
		{"comments and odd events", modern, events(": hi\n\ndata: ping\n\n" + acknowledged + "data: {}\n\n" + changedOnce), 1, 1, true, false},
		{"no acknowledgement", modern, events(""), 0, 0, true, false},
		{"an acknowledgement of nothing", modern, events(grantNothing), 0, 0, false, false},
		{"202", modern, raw(202, "-", ""), 0, 0, false, true},
		{"a page", modern, raw(200, "text/html", "<html>"), 0, 0, false, true},
		{"an ordinary result", modern, raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{}}`), 0, 0, false, true},
		{"no such method", modern, raw(404, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"x"}}`), 0, 0, false, true},
		{"no such method, in a stream", modern, events(`data: {"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"x"}}` + "\n\n"), 0, 0, false, true},
		{"400", modern, raw(400, "-", ""), 0, 0, false, true},
		{"500", modern, raw(500, "-", ""), 0, 0, true, true},
		{"502 of the type of a stream", modern, raw(502, "text/event-stream", changedOnce), 0, 0, true, true},
		{"too large an event", modern, func(w http.ResponseWriter, r *request) {
			events(acknowledged+"data: ")(w, r)
			endless(w, r)
		}, 1, 0, true, true},
		{"a header that never comes", modern, hangs, 0, 0, true, true},

		{"a change", legacy, events(changedOnce), 1, 1, true, false},
		{"a ping event without id", legacy, events("event: ping\ndata\n\n"), 1, 0, true, false},
		{"an array", legacy, events(`data: [{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}]` + "\n\n"), 1, 1, true, false},
		{"405", legacy, raw(405, "-", ""), 0, 0, false, true},
		{"405 with an error", legacy, raw(405, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Method not allowed."}}`), 0, 0, false, true},
		{"404", legacy, raw(404, "-", ""), 0, 0, false, true},
		{"429", legacy, raw(429, "-", ""), 0, 0, true, true},
		{"401", legacy, challenge, 0, 0, true, true},
		{"a page", legacy, raw(200, "text/html", "<html>"), 0, 0, false, true},
		{"a reset", legacy, func(w http.ResponseWriter, _ *request) { cut(w, "") }, 0, 0, true, true},
		{"a header that never comes", legacy, hangs, 0, 0, true, true},
	}
	for _, c := range cases {
		t.Run(c.version+" "+c.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, c.version)
			p.does(stream(c.version), c.peer)
			s := connect(t, p, func(o *mcpwire.Options) {
				o.WatchHeaderTimeout = 200 * time.Millisecond
				o.MaxResponseBytes = func() int64 { return ceiling }
			})
			settle := neighbours(t, p, s)
			var opened, changed atomic.Int32
			again, err := s.Watch(t.Context(), "", func() { opened.Add(1) }, func() { changed.Add(1) })
			if again != c.again || (err != nil) != c.failed {
				t.Errorf("again %v, %v", again, err)
			}
			if opened.Load() != c.opened || changed.Load() != c.changed {
				t.Errorf("opened %d times, changed %d times", opened.Load(), changed.Load())
			}
			if n := len(p.seen(stream(c.version))); n != 1 {
				t.Errorf("the stream was asked for %d times", n)
			}
			settle()
		})
	}
}

// A stream that was open once is worth opening again after nearly everything,
// and a session that is lost meanwhile is opened again.
func TestAStreamThatWasOpenOnce(t *testing.T) {
	for name, c := range map[string]struct {
		next     behaviour
		again    bool
		sessions int
	}{
		"400": {raw(400, "text/plain", "session already exists"), true, 1},
		"404": {raw(404, "-", ""), true, 2},
		"405": {raw(405, "-", ""), false, 1},
		"502": {raw(502, "text/event-stream", ""), true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, legacy)
			p.does(http.MethodGet, events(""))
			s := connect(t, p)
			if again, err := s.Watch(t.Context(), "", func() {}, func() {}); !again || err != nil {
				t.Fatal(again, err)
			}
			p.does(http.MethodGet, c.next)
			if again, err := s.Watch(t.Context(), "", func() {}, func() {}); again != c.again || err == nil {
				t.Error(again, err)
			}
			if n := len(p.seen("initialize")); n != c.sessions {
				t.Errorf("%d sessions were opened", n)
			}
		})
	}
}

func TestAServerThatTellsNothingIsNotAsked(t *testing.T) {
	p := newPeer(t, modern)
	p.does("server/discover", func(w http.ResponseWriter, r *request) {
		answer(w, r, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	})
	if again, err := connect(t, p).Watch(t.Context(), "", func() {}, func() {}); again || err != nil {
		t.Error(again, err)
	}
	if len(p.seen("subscriptions/listen")) != 0 {
		t.Error("it was asked all the same")
	}
}

// Connecting does not wait for the stream, and the stream is silent for longer
// than any answer may be.
func TestASilentStreamStays(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			p := newPeer(t, version)
			more := make(chan struct{})
			p.does(stream(version), func(w http.ResponseWriter, r *request) {
				events(acknowledged)(w, r)
				<-more
				_, _ = io.WriteString(w, changedOnce)
				_ = http.NewResponseController(w).Flush()
				hangs(w, r)
			})
			s := connect(t, p, func(o *mcpwire.Options) {
				o.IdleTimeout, o.WatchHeaderTimeout, o.RequestTimeout = 20*time.Millisecond, time.Second, 30*time.Millisecond
			})
			ctx, cancel := context.WithCancel(t.Context())
			opened, changed, done := make(chan struct{}), make(chan struct{}, 1), make(chan bool)
			go func() {
				again, _ := s.Watch(ctx, "", func() { close(opened) }, func() { changed <- struct{}{} })
				done <- again
			}()
			<-opened
			time.Sleep(60 * time.Millisecond)
			close(more)
			<-changed
			cancel()
			if again := <-done; !again {
				t.Error("a stream that its owner left is not refused")
			}
		})
	}
}

// Older servers may tell of a change with the answer to a call.
func TestAChangeToldWithAnAnswer(t *testing.T) {
	p := newPeer(t, legacy)
	p.does("bootstrap", events(changedOnce+"data: $REPLY\n\n"))
	s := connect(t, p)
	var changed atomic.Int32
	if again, _ := s.Watch(t.Context(), "", func() {}, func() { changed.Add(1) }); again {
		t.Fatal("this peer has no stream")
	}
	if _, err := call(t.Context(), s, "bootstrap"); err != nil || changed.Load() != 1 {
		t.Errorf("%v, told %d times", err, changed.Load())
	}
}
