package psych_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/spec"
)

// eras are the kinds of servers that a Run may meet.
var eras = map[string][]mcptest.Option{
	"2026-07-28":                 {mcptest.Modern()},
	"2026-07-28, event streams":  {mcptest.Modern(), mcptest.EventStream()},
	"2026-07-28 over HTTP/2":     {mcptest.Modern(), mcptest.TLS()},
	"2025-11-25":                 {mcptest.Legacy("2025-11-25")},
	"2025-06-18 over HTTP/2":     {mcptest.Legacy("2025-06-18"), mcptest.TLS(), mcptest.EventStream()},
	"2024-11-05, with two paths": {mcptest.HTTPSSE()},
}

// at is a Spec's server at a test's server.
func at(server *mcptest.Server) spec.Server {
	made := spec.Server{Name: "crm", URL: server.URL()}
	if strings.HasSuffix(made.URL, "/sse") {
		made.Transport = messages.TransportSSE
	}
	return made
}

// forgiven are the faults behind which the good reply is found all the same.
var forgiven = []string{
	"JSON after a byte order mark", "JSON that is no UTF-8", "a reply of no type", "a reply with a charset", "a batch",
	"another JSON-RPC", "a reply after a comment", "a reply after a line without a colon", "a reply after a bare data line",
	"a reply after data that is no JSON", "a reply after an empty object", "a reply after an empty event",
	"a reply after an unknown field", "a reply after a byte order mark", "a reply after a reply to nobody",
	"a reply after a ping of the server", "a reply after a question of the server", "data on two lines", "CRLF line ends",
	"CR line ends", "a batch in an event", "an event of another name",
}

// spoken are the faults that say themselves what became of the call: the server
// refused it, or its answer is there and cannot be taken.
var spoken = map[failure.Kind][]string{
	failure.KindMcpProtocolError: {
		"status 400", "status 403", "status 409", "status 413", "status 418", "status 422",
		"400 with an error that is no JSON-RPC", "400 with a JSON-RPC error", "404 with a null id",
		"result and error", "error -32603", "error -32001",
	},
	failure.KindMcpServerUnreachable: {
		"status 404", "status 405", "status 408", "status 429", "401", "401 without a challenge", "executed, then 404",
	},
	failure.KindInsufficientScope:               {"403 with a challenge"},
	failure.KindMcpInputRequiredError:           {"input required"},
	failure.KindMcpHeaderMismatchError:          {"error -32020"},
	failure.KindMcpMissingClientCapabilityError: {"error -32021"},
	failure.KindMcpUnsupportedProtocolVersion:   {"error -32022"},
	failure.KindMcpResponseTooLarge: {
		"a huge body", "a huge event", "a gzip bomb", "very many notifications", "a huge text",
	},
}

// expected says what a Run's records hold of a call that met a fault: how it
// ended and the kind of its error. Whatever is neither forgiven nor spoken leaves
// open what the tool did.
func expected(fault string) (journal.Outcome, failure.Kind) {
	for _, name := range forgiven {
		if name == fault {
			return journal.OutcomeOK, ""
		}
	}
	for kind, names := range spoken {
		for _, name := range names {
			if name == fault {
				return journal.OutcomeError, kind
			}
		}
	}
	return journal.OutcomeUnknown, failure.KindOutcomeUnknown
}

// Whatever is wrong with the answer to one call, a Run goes on: the call has its
// one right outcome and was made once, and the call beside it has its answer.
func TestEachFaultOfAServerCostsOneCallOfARun(t *testing.T) {
	const allowed = 64 << 10
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := mcptest.NewServer(t, append(era, mcptest.Tools(tool("good", nil), tool("bad", nil)))...)
			onePath := at(server).Transport != messages.TransportSSE
			patience := 20 * time.Second
			if !onePath {
				patience = 150 * time.Millisecond // what answers a POST there says nothing
			}
			within := func(patience time.Duration) *psych.Runtime {
				return start(t, psych.Options{
					MCP: &psych.MCP{MaxResponseBytes: allowed, CallTimeout: patience}, RootCAs: mcptest.RootCAs(),
					Model: psych.UseModel(play(ask(call("bad", "crm__bad", `{}`)), ask(call("good", "crm__good", `{}`)), say("done"))),
				})
			}
			hurried, patient := within(patience), within(20*time.Second)
			version := agent(t, nil, at(server))
			for _, fault := range mcptest.Faults(allowed) {
				server.Forget()
				server.On(mcptest.CallOf("bad"), fault)
				// Each is small, and there what answers the POST says nothing.
				harmless := !onePath && (fault.String() == "very many notifications" || fault.String() == "a reply under a huge header")
				runtime := hurried
				if harmless {
					runtime = patient
				}
				got := runAgent(t, runtime, version)
				bad, kind := got.finished["bad"], failure.Kind("")
				if bad.Error != nil {
					kind = bad.Error.Kind
				}
				outcome, want := expected(fault.String())
				switch {
				case fault.String() == "a result of another type" && !strings.HasPrefix(name, "2026"),
					fault.String() == "an event id, then the end, then end" && strings.HasPrefix(name, "2025"):
					outcome, want = journal.OutcomeOK, "" // these revisions say so
				case harmless:
					outcome, want = journal.OutcomeOK, ""
				case !onePath && bad.Outcome == journal.OutcomeUnknown:
					outcome, want = journal.OutcomeUnknown, failure.KindOutcomeUnknown
				}
				if bad.Outcome != outcome || kind != want {
					t.Errorf("%s: the call ended %s, %s (%q); want %s, %s", fault, bad.Outcome, kind, bad.Result, outcome, want)
				}
				if kind == failure.KindOutcomeUnknown && !strings.Contains(bad.Result, "verify before repeating it") ||
					kind == failure.KindMcpResponseTooLarge && !strings.Contains(bad.Result, fmt.Sprint(allowed)) || len(bad.Result) > 1000 {
					t.Errorf("%s: the model reads %q", fault, bad.Result)
				}
				if good := got.finished["good"]; good.Outcome != journal.OutcomeOK || got.end.State != journal.StateCompleted {
					t.Errorf("%s: the next call ended %+v and the Run %+v", fault, good, got.end)
				}
				refused := outcome == journal.OutcomeError && want != failure.KindMcpResponseTooLarge
				if sent := len(server.Requests(mcptest.CallOf("bad"))); sent > 1 && !refused {
					t.Errorf("%s: the call was sent %d times", fault, sent)
				}
			}
			oneConnection(t, hurried)
		})
	}
}

// oneConnection checks that nothing has cost the one connection of a test.
func oneConnection(t *testing.T, runtime *psych.Runtime) {
	t.Helper()
	connections, err := runtime.Connections(t.Context(), "acme")
	if err != nil || len(connections) != 1 || connections[0].Restarts != 0 || connections[0].State != "ready" {
		t.Errorf("the connections are %+v (%v)", connections, err)
	}
}

// A caller that waits no longer ends its own call and nothing else: its neighbours
// on the same connection get their own answers, and what comes late is dropped.
func TestOneCallersPatienceIsItsOwn(t *testing.T) {
	const many = 8
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release, late := make(chan struct{}), make(chan struct{})
			stalls := append(mcptest.Stalls(),
				mcptest.Execute().Then(mcptest.Until(late)).Named("a late reply"),
				mcptest.Headers(500, "text/plain").Then(mcptest.Drip("", time.Millisecond)).Named("an error's drip"))
			tools := []mcptest.Tool{{Name: "slow", Annotations: `{"readOnlyHint":true}`, Call: func(ctx context.Context, c mcptest.Call) mcptest.Result {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return mcptest.Text(string(c.Arguments))
			}}}
			for i := range stalls {
				tools = append(tools, tool(fmt.Sprint("stall", i), nil))
			}
			server := mcptest.NewServer(t, append(era, mcptest.Tools(tools...))...)
			for i, stall := range stalls {
				server.On(mcptest.CallOf(fmt.Sprint("stall", i)), stall)
			}
			runtime := start(t, psych.Options{MCP: &psych.MCP{}, RootCAs: mcptest.RootCAs(), Model: psych.UseModel(turns(func(input string) []string {
				return strings.Split(input, " ")
			}))})
			neighbours, err := runtime.Start(t.Context(), acme, agent(t, nil, at(server)), strings.TrimSpace(strings.Repeat("crm__slow ", many)))
			if err != nil {
				t.Fatal(err)
			}
			server.WaitFor(mcptest.CallOf("slow"), many)
			hasty := agent(t, func(s *spec.Spec) { s.Limits.Deadline = time.Second }, at(server))
			var waiting sync.WaitGroup
			for i, stall := range stalls {
				run, err := runtime.Start(t.Context(), acme, hasty, fmt.Sprint("crm__stall", i))
				if err != nil {
					t.Fatal(err)
				}
				waiting.Go(func() {
					got, sent := follow(t, run), len(server.Requests(mcptest.CallOf(fmt.Sprint("stall", i))))
					for _, one := range got.finished {
						if one.Outcome != journal.OutcomeUnknown && sent > 0 || sent > 1 {
							t.Errorf("%s: the call was sent %d times and ended %+v", stall, sent, one)
						}
					}
				})
			}
			waiting.Wait()
			close(late)
			close(release)
			answers := map[string]bool{}
			for _, one := range follow(t, neighbours).finished {
				if one.Outcome != journal.OutcomeOK {
					t.Errorf("a neighbour's call ended %+v", one)
				}
				answers[one.Result] = true
			}
			if len(answers) != many {
				t.Errorf("the neighbours were answered %v", answers)
			}
			oneConnection(t, runtime)
			if opened := len(server.Requests("initialize")); opened > 1 {
				t.Errorf("%d sessions were opened", opened)
			}
		})
	}
}
