package mcpwire_test

import (
	"testing"
	"time"

	"github.com/psych-systems/psych-go/mcpwire"
)

// A server that was replaced by one of the other era ends the session, so that
// another is connected; one odd tool does not.
func TestAServerOfTheOtherEra(t *testing.T) {
	for name, versions := range map[string][2]string{"older": {modern, legacy}, "newer": {legacy, modern}} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, versions[0])
			s := connect(t, p)
			p.mu.Lock()
			p.version = versions[1]
			p.mu.Unlock()
			if versions[1] == modern {
				p.does("echo", raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32600,"message":"no metadata"}}`))
				p.does("initialize", raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"x"}}`))
			}
			if _, err := call(t.Context(), s, "echo"); err == nil || maybeRan(err) {
				t.Errorf("the call that met it: %v", err)
			}
			soon(t, "the session is over", s.Closed())
			p.does("echo", nil)
			if text, err := call(t.Context(), connect(t, p, func(o *mcpwire.Options) { o.KnownVersion = versions[0] }), "echo"); err != nil || text != "ok" {
				t.Errorf("on a new session: %q, %v", text, err)
			}
		})
	}
}

func TestAnOddToolDoesNotEndTheSession(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		p := newPeer(t, version)
		p.does("odd", raw(400, "text/plain", "no"))
		s := connect(t, p)
		for range 4 {
			if _, err := call(t.Context(), s, "odd"); err == nil {
				t.Fatal("no error")
			}
		}
		if version == modern {
			eventually(t, "the server is asked", func() bool { return len(p.seen("server/discover")) == 2 })
		}
		select {
		case <-s.Closed():
			t.Error("the session is over")
		case <-time.After(20 * time.Millisecond):
		}
		if n := len(p.seen("server/discover")); n > 2 {
			t.Errorf("the server was asked %d times", n-1)
		}
	}
}
