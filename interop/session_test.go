package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/spec"
)

// What a server remembers of a session is shared by the Runs of one key, also by
// two at once.
func sharesASession(t *testing.T, h *house) {
	version := h.agent(nil)
	first, second := h.begin(acme, version), h.begin(acme, version)
	for i, c := range []*conversation{first, second, first, second} {
		if got, want := c.says("counter", `{}`), fmt.Sprint(i+1); got != want {
			t.Errorf("the counter says %s, not %s", got, want)
		}
	}
	first.ends()
	second.ends()
	third := h.begin(acme, version)
	if got := third.says("counter", `{}`); got != "5" {
		t.Errorf("to a Run after them, the counter says %s", got)
	}
	third.ends()
	h.now()
	if n := len(h.seen("initialize")); n != 1 {
		t.Errorf("%d sessions were opened", n)
	}
	if n := len(h.seen(mcptest.Delete)); n != 0 {
		t.Errorf("%d sessions were ended while the connection stands", n)
	}
}

// A Run that wants a session of its own has one, and it is ended with the Run.
func hasASessionOfItsOwn(t *testing.T, h *house) {
	own := h.agent(func(server *spec.Server) { server.Session = spec.SessionRun })
	shared := h.begin(acme, h.agent(nil))
	first, second := h.begin(acme, own), h.begin(acme, own)
	for i := 1; i <= 2; i++ {
		for _, c := range []*conversation{shared, first, second} {
			if got, want := c.says("counter", `{}`), fmt.Sprint(i); got != want {
				t.Errorf("the counter says %s, not %s", got, want)
			}
		}
	}
	h.now()
	sessions := map[string]int{}
	for _, request := range h.seen(mcptest.CallOf("counter")) {
		sessions[sessionOf(request)]++
	}
	if len(sessions) != 3 {
		t.Errorf("the calls came in the sessions %v", sessions)
	}
	if h.peer.transport == messages.TransportSSE {
		first.ends()
		second.ends()
		shared.ends()
		return // a session ends there with its stream
	}
	var ended []string
	for n, c := range []*conversation{first, second} {
		c.ends()
		eventually(t, "the end of a Run's own session", func() bool { return len(h.seen(mcptest.Delete)) > n })
		ended = append(ended, h.seen(mcptest.Delete)[n].Session())
	}
	if got := shared.says("counter", `{}`); got != "3" {
		t.Errorf("in the shared session, which stands, the counter says %s", got)
	}
	shared.ends()
	h.now()
	calls := h.seen(mcptest.CallOf("counter"))
	if last := calls[len(calls)-1].Session(); slices.Contains(ended, last) || ended[0] == ended[1] || sessions[ended[0]] != 2 || sessions[ended[1]] != 2 {
		t.Errorf("the sessions %v were ended, of %v", ended, sessions)
	}
	if n := len(h.seen(mcptest.Delete)); n != 2 {
		t.Errorf("%d sessions were ended while the connection stands", n)
	}
}

// A server that forgets its sessions, and leaves their streams open, costs no call,
// and what changes from then on is learnt of.
func survivesAForgottenSession(t *testing.T, h *house) {
	c := h.begin(acme, h.agent(nil))
	listens(t, h)
	since := h.now()
	h.at.Order("add meanwhile")
	toolsAre(t, h, len(c.offered)+1)
	h.at.Order("forget")
	again(t, h, c)
	listensAgain(t, h, since)
	h.at.Order("add afterwards")
	toolsAre(t, h, len(strings.Fields(h.peer.tools))+2)
	h.at.Order("remove meanwhile")
	h.at.Order("remove afterwards")
	toolsAre(t, h, len(strings.Fields(h.peer.tools)))
	if opened := len(h.seenAfter(since, "initialize")); opened != 1 {
		t.Errorf("%d sessions were opened for the one that was forgotten", opened)
	}
	c.ends()
}
