package interop_test

import (
	"testing"
	"time"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/spec"
)

// The server is started anew under a running Run. The next turn's calls succeed,
// and one that was under way has its one outcome; nothing runs twice.
func survivesARestart(t *testing.T, h *house) {
	c := h.begin(acme, h.agent(func(server *spec.Server) { server.Optional = true }))
	again(t, h, c)
	if h.peer.listens() {
		listens(t, h)
	}
	listed, since := fetched(t, h), h.now()
	ran := h.at.Ran("echo")
	h.at.Stop()
	h.at.Start()
	returns(t, h)
	arguments, result := h.peer.echo("after")
	c.asks(call("echo", arguments), call("echo", arguments), call("echo", arguments))
	for _, outcome := range c.outcomes() {
		if outcome.Outcome != journal.OutcomeOK || outcome.Result != result {
			t.Errorf("after the restart a call ended %s: %s", outcome.Outcome, outcome.Result)
		}
	}
	if opened := len(h.seenAfter(since, "initialize")); h.peer.sessions && opened != 1 {
		t.Errorf("%d sessions were opened after the restart", opened)
	}
	if h.peer.remembers {
		if got := c.says("counter", `{}`); got != "1" {
			t.Errorf("in the new session the counter says %s", got)
		}
	}
	again(t, h, c)
	if h.peer.ours {
		h.at.Order("tell")
		if n := h.at.Ran("echo") - ran; n != 4 {
			t.Errorf("four calls ran %d times", n)
		}
	}

	if h.peer.listens() {
		// The stream stands again, and the list that is at hand is in no doubt.
		eventually(t, "the list", func() bool { return !fetched(t, h).Equal(listed) })
	}
	ran = h.at.Ran(h.peer.slow)
	c.asks(call(h.peer.slow, h.peer.slowly))
	eventually(t, "the call", func() bool { return h.at.Ran(h.peer.slow) == ran+1 })
	h.at.Stop()
	if h.peer.resumes {
		h.at.Start() // else the call's answer is asked for again for some seconds
	}
	cut := c.outcomes()[0]
	if cut.Outcome != journal.OutcomeUnknown || cut.Error == nil || cut.Error.Kind != failure.KindOutcomeUnknown {
		t.Errorf("the call under way ended %s, %+v", cut.Outcome, cut.Error)
	}
	if !h.peer.resumes && h.peer.transport != messages.TransportSSE { // there, no session is no list
		// One that is written to a connection which was kept alive may have arrived.
		down := c.does("echo", arguments)
		refused := down.Outcome == journal.OutcomeError && down.Error.Kind == failure.KindMcpServerUnreachable
		if !refused && down.Outcome != journal.OutcomeUnknown {
			t.Errorf("a call while the server is away ended %s, %+v", down.Outcome, down.Error)
		}
	}
	h.at.Start()
	returns(t, h)
	if !c.offers("echo") {
		c.asks(call("nothing", `{}`)) // for a turn that is resolved now
		c.outcomes()
	}
	again(t, h, c)
	again(t, h, c)
	h.at.Order("tell")
	if n := h.at.Ran(h.peer.slow) - ran; n != 1 {
		t.Errorf("the call that was cut off ran %d times", n)
	}
	if sent := len(h.seen(mcptest.CallOf(h.peer.slow))); sent != 1 {
		t.Errorf("the call that was cut off was sent %d times", sent)
	}
	c.ends()
}

// fetched is when the list at hand was fetched.
func fetched(t *testing.T, h *house) time.Time {
	t.Helper()
	report, err := probe(t, h)
	if err != nil {
		t.Fatal(err)
	}
	return report.FetchedAt
}

// probe is of the connection that the Runs use.
func probe(t *testing.T, h *house) (psych.ProbeReport, error) {
	return h.Probe(t.Context(), acme, psych.ProbeTarget{URL: h.url(), Transport: h.peer.transport, Credential: "key"})
}

// returns waits until the runtime reaches the server again.
func returns(t *testing.T, h *house) {
	t.Helper()
	if h.peer.transport != messages.TransportSSE {
		return // a list is at hand, and the next call reaches it
	}
	eventually(t, "the server's return", func() bool {
		_, err := probe(t, h)
		return err == nil && h.connection().State == "ready"
	})
}
