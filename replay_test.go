package psych_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
)

// counting is a server with a tool that reads and one that writes, and how often
// each has run.
func counting(t *testing.T, options ...mcptest.Option) (server *mcptest.Server, reads, writes *atomic.Int32) {
	reads, writes = &atomic.Int32{}, &atomic.Int32{}
	write := mcptest.Tool{Name: "write", Annotations: `{"destructiveHint":false}`}
	write.Call = tool("write", func(mcptest.Call) mcptest.Result { writes.Add(1); return mcptest.Text("written") }).Call
	return mcptest.NewServer(t, append(options, mcptest.Tools(write, tool("read", func(mcptest.Call) mcptest.Result {
		reads.Add(1)
		return mcptest.Text("read")
	})))...), reads, writes
}

// A call that ran, or may have, is made once more only where the deployment trusts
// its tool's word that this is harmless; one that a server says it never took up
// goes out again and nobody notices.
func TestACallThatMayHaveRunIsNotMadeAgain(t *testing.T) {
	protocols := map[string][]mcptest.Option{
		"HTTP/1.1": {}, "HTTP/2": {mcptest.TLS()}, "HTTP/1.1, 2025-11-25": {mcptest.Legacy("2025-11-25")},
		"HTTP/2, 2025-11-25": {mcptest.Legacy("2025-11-25"), mcptest.TLS()},
	}
	ran, untouched := true, false
	for _, c := range []struct {
		loses mcptest.Behaviour
		ran   bool
	}{
		{mcptest.Execute().Then(mcptest.Reset()).Named("a reset before the headers"), ran},
		{mcptest.Execute().Then(mcptest.Close()).Named("a close before the headers"), ran},
		{mcptest.CutHalfway(), ran},
		{mcptest.ResetHalfway(), ran},
		{mcptest.CutEvent(), ran},
		{mcptest.Execute().Then(mcptest.Status(500, "", "")).Named("500"), ran},
		{mcptest.Execute().Then(mcptest.Status(502, "text/html", "<p>")).Named("502"), ran},
		{mcptest.Execute().Then(mcptest.Status(503, "", "")).Named("503"), ran},
		{mcptest.Execute().Then(mcptest.Status(504, "", "")).Named("504"), ran},
		{mcptest.Execute().Then(mcptest.BreakConnection()).Named("a broken connection"), ran},
		{mcptest.Execute().Then(mcptest.GoAway(true), mcptest.Reset()).Named("GOAWAY, then a reset"), ran},
		{mcptest.Execute().Then(mcptest.GoAway(true), mcptest.BreakConnection()).Named("GOAWAY, then a broken connection"), ran},
		{mcptest.GoAway(false), untouched},
		{mcptest.RefuseStream(), untouched},
	} {
		for protocol, options := range protocols {
			if !strings.HasPrefix(protocol, "HTTP/2") && (c.ran == untouched || strings.HasPrefix(c.loses.String(), "GOAWAY")) {
				continue
			}
			for _, trusted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s over %s, trusted %v", c.loses, protocol, trusted), func(t *testing.T) {
					t.Parallel()
					server, reads, writes := counting(t, options...)
					server.On(mcptest.CallOf("read"), c.loses.Once())
					server.On(mcptest.CallOf("write"), c.loses.Once())
					runtime := start(t, psych.Options{
						MCP: &psych.MCP{}, RootCAs: mcptest.RootCAs(), Approvals: free, TrustAnnotations: trusted,
						Model: psych.UseModel(play(ask(call("read", "crm__read", `{}`)), ask(call("write", "crm__write", `{}`)), say("done"))),
					})
					got := runAgent(t, runtime, agent(t, nil, at(server)))
					for id, times := range map[string]int32{"read": reads.Load(), "write": writes.Load()} {
						outcome, want, runs := got.finished[id], journal.OutcomeUnknown, int32(1)
						if c.ran == untouched {
							want = journal.OutcomeOK
						} else if trusted && id == "read" {
							want, runs = journal.OutcomeOK, 2
						}
						if outcome.Outcome != want || times != runs {
							t.Errorf("the %s ended %+v and ran %d times; want %s and %d", id, outcome, times, want, runs)
						}
						if want == journal.OutcomeUnknown && (outcome.Error.Kind != failure.KindOutcomeUnknown || !strings.Contains(outcome.Result, "verify before repeating it")) {
							t.Errorf("of the %s the model reads %q", id, outcome.Result)
						}
					}
					for _, one := range server.Requests(mcptest.Any) {
						for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
							if one.Header.Get(header) != "" {
								t.Errorf("%s came with %s", one.Method, header)
							}
						}
						if (one.Proto == "HTTP/2.0") != strings.HasPrefix(protocol, "HTTP/2") {
							t.Errorf("%s came over %s", one.Method, one.Proto)
						}
					}
				})
			}
		}
	}
}

// A server may close a connection that is idle, or say in good order that it will;
// the next call is made on another and nobody notices.
func TestAConnectionThatWasClosedIdleCostsNoCall(t *testing.T) {
	for name, test := range map[string]struct {
		options []mcptest.Option
		before  func(*mcptest.Server)
	}{
		"HTTP/1.1": {nil, (*mcptest.Server).CloseIdle},
		"GOAWAY": {[]mcptest.Option{mcptest.TLS()}, func(s *mcptest.Server) {
			s.On("tools/call", mcptest.GoAway(true).Once())
		}},
		"Connection: close": {nil, func(s *mcptest.Server) { s.On("tools/call", mcptest.Header("Connection", "close").Once()) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _, writes := counting(t, test.options...)
			runtime := start(t, psych.Options{
				MCP: &psych.MCP{}, RootCAs: mcptest.RootCAs(), Approvals: free,
				Model: psych.UseModel(play(ask(call("write", "crm__write", `{}`)), say("done"))),
			})
			version := agent(t, nil, at(server))
			for n := range 4 {
				got := runAgent(t, runtime, version)
				if outcome := got.finished["write"]; outcome.Outcome != journal.OutcomeOK || writes.Load() != int32(n+1) {
					t.Fatalf("call %d ended %+v and the tool ran %d times", n+1, outcome, writes.Load())
				}
				test.before(server)
				time.Sleep(100 * time.Millisecond) // nothing is asked, and the end of the connection arrives
			}
			if connections := len(connectionsOf(server, "tools/call")); connections < 2 {
				t.Errorf("all calls came on %d connection", connections)
			}
		})
	}
}

// connectionsOf are the connections that requests about one thing came on.
func connectionsOf(server *mcptest.Server, what string) map[string]bool {
	from := map[string]bool{}
	for _, one := range server.Requests(what) {
		from[one.From] = true
	}
	return from
}

// Nothing of a request goes where a redirect points, be it a call, the stream, the
// list or the end of a session: no token, no session id, no argument.
func TestNothingOfARequestFollowsARedirect(t *testing.T) {
	for name, options := range map[string][]mcptest.Option{
		"http": {mcptest.Legacy("2025-11-25")}, "https": {mcptest.Legacy("2025-06-18"), mcptest.TLS()}, "2026-07-28": {mcptest.Modern()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			foreign := mcptest.NewHost(t, nil)
			server := mcptest.NewServer(t, append(options, mcptest.Tools(tool("find", nil), tool("bad", nil)))...)
			runtime := start(t, psych.Options{
				MCP: &psych.MCP{Secrets: secrets{"acme": {"key": "hush"}}}, RootCAs: mcptest.RootCAs(),
				Model: psych.UseModel(play(ask(call("bad", "crm__bad", `{}`), call("find", "crm__find", `{}`)), say("done"))),
			})
			definition := at(server)
			definition.Credential = "key"
			version := agent(t, nil, definition)
			port := foreign.URL()[strings.LastIndex(foreign.URL(), ":"):]
			ended := 0
			for _, status := range []int{301, 302, 303, 307, 308} {
				for where, location := range map[string]string{
					"another port": foreign.URL() + "/mcp", "another host": "http://localhost" + port, "no scheme": "//127.0.0.1" + port,
					"a sub-domain": "http://api.localhost" + port, "another scheme": strings.NewReplacer("https:", "http:", "http:", "https:").Replace(server.URL()),
					"a user": strings.Replace(server.URL(), "://", "://user:pw@", 1), "itself": server.URL(), "its own path": "/mcp", "a script": "javascript:alert(1)",
					"metadata": "http://169.254.169.254/latest/", "nowhere": "", "a loop": server.URL() + "?again",
				} {
					if status != http.StatusTemporaryRedirect && !slices.Contains([]string{"another port", "a user", "its own path"}, where) {
						continue
					}
					odd := mcptest.Redirect(status, location)
					server.On(mcptest.CallOf("bad"), odd)
					server.On(mcptest.Get, odd)
					server.On(mcptest.Delete, odd)
					server.On("subscriptions/listen", odd)
					got := runAgent(t, runtime, version)
					if got.end.State != journal.StateCompleted || got.finished["bad"].Outcome != journal.OutcomeError || got.finished["find"].Outcome != journal.OutcomeOK {
						t.Errorf("%d to %s: the Run ended %+v, its calls %+v", status, where, got.end, got.finished)
					}
					if strings.Contains(got.finished["bad"].Result, "hush") || strings.Contains(got.finished["bad"].Result, "pw@") {
						t.Errorf("%d to %s: the model reads %q", status, where, got.finished["bad"].Result)
					}
					if _, err := runtime.Disconnect(t.Context(), acme, ""); err != nil {
						t.Fatal(err)
					}
					if ended++; name != "2026-07-28" {
						server.WaitFor(mcptest.Delete, ended)
					}
				}
			}
			for _, what := range []string{"server/discover", "initialize", "tools/list"} {
				server.On(what, mcptest.Redirect(http.StatusTemporaryRedirect, foreign.URL()))
				_, err := runtime.Probe(t.Context(), messages.Scope{Tenant: "other-" + strings.ReplaceAll(what, "/", "-")}, psych.ProbeTarget{URL: server.URL()})
				old := name != "2026-07-28" // which is asked to initialize whatever it says to the other question
				if asked := old == (what == "initialize") || what == "tools/list"; err == nil && asked {
					t.Errorf("%s was redirected and the probe went well", what)
				}
				server.On(what)
			}
			if strayed := foreign.Requests(); len(strayed) > 0 {
				t.Errorf("%d requests strayed, such as %s %s under %v", len(strayed), strayed[0].HTTPMethod, strayed[0].Path, strayed[0].Header)
			}
		})
	}
}
