package interop_test

import (
	"bytes"
	"testing"

	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
)

// Two tenants' Runs at once: each request carries its own tenant's token, and no
// session serves both.
func carriesItsToken(t *testing.T, h *house) {
	version := h.agent(nil)
	runs := map[messages.Scope]*conversation{acme: h.begin(acme, version), globex: h.begin(globex, version)}
	const turns, each = 3, 4
	for range turns {
		for scope, c := range runs {
			for range each {
				arguments, _ := h.peer.echo("said by " + scope.Tenant)
				c.asking = append(c.asking, call("echo", arguments))
			}
			if h.peer.ours {
				c.asking = append(c.asking, call("whoami", `{}`))
			}
		}
		for _, c := range runs {
			c.asks(c.asking...)
			c.asking = nil
		}
		for scope, c := range runs {
			outcomes := c.outcomes()
			for _, outcome := range outcomes {
				if outcome.Outcome != journal.OutcomeOK {
					t.Errorf("%s: a call ended %+v", scope.Tenant, outcome)
				}
			}
			if h.peer.ours && outcomes[each].Result != "Bearer "+tokenOf(scope) {
				t.Errorf("%s: the server knows it by %q", scope.Tenant, outcomes[each].Result)
			}
		}
	}
	for _, c := range runs {
		c.ends()
	}
	h.now()
	requests := h.seen(mcptest.Any)
	tokens, sessions := map[string]int{}, map[string]string{}
	for _, request := range requests {
		tokens[request.Token()]++
		if session := sessionOf(request); session != "" {
			if before, known := sessions[session]; known && before != request.Token() {
				t.Errorf("one session served %q and %q", before, request.Token())
			}
			sessions[session] = request.Token()
		}
	}
	if len(tokens) != 2 || tokens[tokenOf(acme)] == 0 || tokens[tokenOf(globex)] == 0 {
		t.Errorf("of %d requests, %v came with each token", len(requests), tokens)
	}
	for _, request := range h.seen(mcptest.CallOf("echo")) {
		for scope := range runs {
			if bytes.Contains(request.Params, []byte("said by "+scope.Tenant)) && request.Token() != tokenOf(scope) {
				t.Errorf("a call of %s came with %q", scope.Tenant, request.Token())
			}
		}
	}
	if calls, want := len(h.seen(mcptest.CallOf("echo"))), len(runs)*turns*each; calls != want {
		t.Errorf("%d calls came, not %d", calls, want)
	}
	if want := len(runs); h.peer.sessions && len(sessions) != want {
		t.Errorf("there were the sessions %v", sessions)
	}
}

// sessionOf is the session of a request: in a header, or in the address that
// HTTP+SSE gave it.
func sessionOf(request mcptest.Request) string {
	if id := request.Session(); id != "" {
		return id
	}
	_, id, _ := bytes.Cut([]byte(request.Path), []byte("sessionId="))
	return string(id)
}
