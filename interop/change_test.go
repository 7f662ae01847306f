package interop_test

import (
	"testing"

	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
)

// A tool that appears is offered in the next turn, because the server told of it.
func learnsOfAChange(t *testing.T, h *house) {
	c := h.begin(acme, h.agent(nil))
	listens(t, h)
	known := len(c.offered)
	h.now()
	lists := len(h.seen("tools/list"))
	if got := c.says("grow", `{"name":"grown"}`); got != "grown" {
		t.Errorf("grow says %q", got)
	}
	toolsAre(t, h, known+1)
	h.now()
	if fetched := len(h.seen("tools/list")) - lists; fetched != 1 {
		t.Errorf("the list was fetched %d times for one change", fetched)
	}
	again(t, h, c)
	if !c.offers("grown") {
		t.Fatal("the new tool is not offered in the turn after")
	}
	if got := c.says("grown", `{}`); got != "grown" {
		t.Errorf("the new tool says %q", got)
	}
	h.at.Order("remove grown")
	toolsAre(t, h, known)
	again(t, h, c)
	if c.offers("grown") {
		t.Error("a tool that has gone is still offered")
	}
	c.ends()
}

// A stream of changes that the server breaks costs no call, and what changes in the
// gap and after it is learnt of all the same.
func survivesABrokenStream(t *testing.T, h *house) {
	c := h.begin(acme, h.agent(nil))
	if !h.peer.tells {
		for range 2 {
			since := h.now()
			h.at.CutStreams()
			isSeenToBreak(t, h, since)
			again(t, h, c)
		}
		c.ends()
		return
	}
	listens(t, h)
	breaks := map[string]func(){"broken": h.at.CutStreams}
	if h.peer.ends {
		breaks["ended"] = func() { h.at.Order("end") }
	}
	for how, breakStreams := range breaks {
		known, since := len(c.offered), h.now()
		breakStreams()
		h.at.Order("add in-the-gap-" + how)
		isSeenToBreak(t, h, since)
		again(t, h, c)
		again(t, h, c)
		listensAgain(t, h, since)
		toolsAre(t, h, known+1)
		h.at.Order("add afterwards-" + how)
		toolsAre(t, h, known+2)
		again(t, h, c)
		again(t, h, c)
		for _, tool := range []string{"in-the-gap-" + how, "afterwards-" + how} {
			if !c.offers(tool) || c.says(tool, `{}`) != tool {
				t.Errorf("the tool %s is not there", tool)
			}
			h.at.Order("remove " + tool)
		}
		toolsAre(t, h, known)
		again(t, h, c)
	}
	c.ends()
}

// isSeenToBreak waits until the runtime knows that an HTTP+SSE session is over: it
// ends with its stream, and what is sent before that is seen gets no answer.
func isSeenToBreak(t *testing.T, h *house, since int) {
	t.Helper()
	if h.peer.transport == messages.TransportSSE {
		eventually(t, "that the session is seen to be over", func() bool {
			return h.connection().State != "ready" || len(h.seenAfter(since, mcptest.Get)) > 0
		})
	}
}

// again has the Run take another turn, with a call that must succeed.
func again(t *testing.T, h *house, c *conversation) {
	t.Helper()
	arguments, result := h.peer.echo("again")
	if got := c.says("echo", arguments); got != result {
		t.Errorf("echo says %q", got)
	}
}

// toolsAre waits until the runtime knows so many tools of the peer.
func toolsAre(t *testing.T, h *house, n int) {
	t.Helper()
	eventually(t, "the change", func() bool { return h.connection().Tools == n })
}

// listens waits until the stream of changes of a Run's first turn stands and the list
// has been asked for once more because of it.
func listens(t *testing.T, h *house) {
	t.Helper()
	eventually(t, "the stream of changes", func() bool { return streams(h.seen) > 0 && len(h.seen("tools/list")) > 1 })
}

// listensAgain waits until the stream has been opened after a number of requests, and
// the list been asked for because of it.
func listensAgain(t *testing.T, h *house, since int) {
	t.Helper()
	lists := 1
	if h.peer.transport == messages.TransportSSE {
		lists = 2 // the new session's first, too
	}
	after := func(what string) []mcptest.Request { return h.seenAfter(since, what) }
	eventually(t, "the stream of changes", func() bool { return streams(after) > 0 && len(after("tools/list")) >= lists })
}

func streams(seen func(string) []mcptest.Request) int {
	return len(seen(mcptest.Get)) + len(seen("subscriptions/listen"))
}
