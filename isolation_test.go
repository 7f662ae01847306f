package psych_test

import (
	"context"
	"errors"
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
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/spec"
)

// TestNoTokenIsSentOnAnotherTenantsCall runs many tenants at once on one URL.
// Each request carries its tenant's name in its arguments, and the server's own
// log tells whose token came with it.
func TestNoTokenIsSentOnAnotherTenantsCall(t *testing.T) {
	const tenants, principals, runs = 12, 2, 3
	whoami := tool("whoami", func(c mcptest.Call) mcptest.Result { return mcptest.Text(c.Token) })
	server := mcptest.NewServer(t, mcptest.Authenticate(func(token string) ([]mcptest.Tool, bool) {
		return []mcptest.Tool{whoami}, strings.HasPrefix(token, "token-of-")
	}))
	held := secrets{}
	for tenant := range tenants {
		name := fmt.Sprint("tenant", tenant)
		held[name] = map[string]string{"key": "token-of-" + name}
	}
	runtime := start(t, psych.Options{
		MCP: &psych.MCP{Secrets: held},
		Model: psych.UseModel(play(
			ask(call("a", "crm__whoami", `{}`), call("b", "crm__whoami", `{}`)), ask(call("c", "crm__whoami", `{}`)), say("done"))),
	})
	version := agent(t, nil, spec.Server{Name: "crm", URL: server.URL(), Credential: "key"})
	var running sync.WaitGroup
	for tenant := range tenants {
		for principal := range principals {
			for range runs {
				running.Go(func() {
					name := fmt.Sprint("tenant", tenant)
					scope := messages.Scope{Tenant: name, Principal: fmt.Sprint("p", principal)}
					run, err := runtime.Start(t.Context(), scope, version, "go")
					if err != nil {
						t.Error(err)
						return
					}
					got := follow(t, run)
					for id, outcome := range got.finished {
						if outcome.Outcome != journal.OutcomeOK || outcome.Result != "token-of-"+name {
							t.Errorf("%s: call %s ended %+v", name, id, outcome)
						}
					}
					if len(got.finished) != 3 {
						t.Errorf("%s made %d calls", name, len(got.finished))
					}
				})
			}
		}
	}
	running.Wait()
	connections, err := runtime.Connections(t.Context(), "")
	if err != nil || len(connections) != tenants*principals {
		t.Errorf("there are %d connections (%v), want one for each tenant and principal", len(connections), err)
	}
	own, err := runtime.Connections(t.Context(), "tenant3")
	if err != nil || len(own) != principals {
		t.Errorf("tenant3 has %d connections (%v)", len(own), err)
	}
	shown := fmt.Sprintf("%+v", connections)
	if strings.Contains(shown, "token-of-") {
		t.Errorf("a token shows: %s", shown)
	}
}

// rotating is one credential whose value changes.
type rotating struct {
	mu    sync.Mutex
	value string
}

func (r *rotating) set(value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value = value
}

func (r *rotating) Resolve(context.Context, messages.Scope, string) (secret.Credential, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return identities.Of(r.value), nil
}

func TestARotatedSecretIsANewConnection(t *testing.T) {
	whoami := tool("whoami", func(c mcptest.Call) mcptest.Result { return mcptest.Text(c.Token) })
	server := mcptest.NewServer(t, mcptest.Authenticate(func(string) ([]mcptest.Tool, bool) { return []mcptest.Tool{whoami}, true }))
	credential := &rotating{value: "first"}
	port := play(ask(call("a", "crm__whoami", `{}`)), ask(call("b", "crm__whoami", `{}`)), say("done"))
	runtime := start(t, psych.Options{MCP: &psych.MCP{Secrets: credential}, Model: psych.UseModel(port)})
	port.before = func(turn int) {
		if turn == 1 {
			credential.set("second")
		}
	}
	got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL(), Credential: "key"}))
	if got.finished["a"].Result != "first" || got.finished["b"].Result != "second" {
		t.Errorf("the calls ended %+v", got.finished)
	}
	if connections, err := runtime.Connections(t.Context(), "acme"); err != nil || len(connections) != 2 {
		t.Errorf("there are %d connections (%v)", len(connections), err)
	}
}

// A Run's own session is in another connection after a rotation. None of them may
// outlive the Run, and none of the connections either.
func TestARunGivesUpItsOwnSessionsOfEveryKeyThatItHad(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Legacy("2025-11-25"), mcptest.Tools(tool("find", nil)),
		mcptest.Authenticate(func(token string) ([]mcptest.Tool, bool) { return nil, token != "" }))
	credential := &rotating{value: "0"}
	port := play(ask(call("a", "crm__find", `{}`)), ask(call("b", "crm__find", `{}`)), ask(call("c", "crm__find", `{}`)), say("done"))
	port.before = func(turn int) { credential.set(fmt.Sprint(turn)) }
	runtime := start(t, psych.Options{MCP: &psych.MCP{Secrets: credential, IdleClose: time.Second}, Model: psych.UseModel(port)})
	got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL(), Credential: "key", Session: spec.SessionRun}))
	if got.end.State != journal.StateCompleted {
		t.Fatalf("the run ended %+v", got.end)
	}
	waitFor(t, func() bool {
		connections, err := runtime.Connections(t.Context(), "acme")
		return err == nil && len(connections) == 0
	})
	if opened := len(server.Requests("initialize")); opened < 3 {
		t.Errorf("%d sessions were opened", opened)
	}
}

func TestWhatAnOperatorSeesOfAConnection(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", nil), tool("list", nil)), mcptest.Cache(90*time.Second, "private"))
	runtime := start(t, psych.Options{MCP: &psych.MCP{}})
	report, err := runtime.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()})
	if err != nil || len(report.Tools) != 2 || report.ProtocolVersion != "2026-07-28" {
		t.Fatalf("the probe found %+v (%v)", report, err)
	}
	waitFor(t, func() bool {
		connections, err := runtime.Connections(t.Context(), "acme")
		if err != nil || len(connections) != 1 {
			return false
		}
		one := connections[0]
		return one.State == "ready" && one.Revision == "2026-07-28" && one.Tools == 2 && one.CatalogueTTL == 90*time.Second &&
			one.Etag != "" && one.Breaker == "closed" && one.LastError == "" && one.Scope == acme && one.CatalogueAge < time.Minute
	})
	if closed, err := runtime.Disconnect(t.Context(), acme, server.URL()); err != nil || closed != 1 {
		t.Errorf("disconnecting closed %d (%v)", closed, err)
	}
	if connections, err := runtime.Connections(t.Context(), "acme"); err != nil || len(connections) != 0 {
		t.Errorf("there are %+v (%v)", connections, err)
	}
	if report, err := runtime.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()}); err != nil || len(report.Tools) != 2 {
		t.Errorf("the next probe found %+v (%v)", report, err)
	}
}

func TestAProbeSaysWhyNot(t *testing.T) {
	locked := mcptest.NewServer(t, mcptest.Authenticate(func(string) ([]mcptest.Tool, bool) { return nil, false }))
	runtime := start(t, psych.Options{MCP: &psych.MCP{Secrets: secrets{"acme": {"key": "hush-hush"}}}})
	for name, test := range map[string]struct {
		target psych.ProbeTarget
		kind   failure.Kind
		says   string
	}{
		"401 without a credential":   {psych.ProbeTarget{URL: locked.URL()}, failure.KindMcpServerUnreachable, "OAuth"},
		"401 with one":               {psych.ProbeTarget{URL: locked.URL(), Credential: "key"}, failure.KindMcpServerUnreachable, "credential"},
		"no credential":              {psych.ProbeTarget{URL: locked.URL(), Credential: "none"}, failure.KindCredentialNotFound, "none"},
		"a closed port":              {psych.ProbeTarget{URL: "http://127.0.0.1:1/mcp"}, failure.KindMcpServerUnreachable, "refused"},
		"a private address":          {psych.ProbeTarget{URL: "http://10.0.0.1/mcp"}, failure.KindEgressDenied, "10.0.0.1"},
		"a closed port with a query": {psych.ProbeTarget{URL: "http://127.0.0.1:1/mcp?token=hush-hush"}, failure.KindMcpServerUnreachable, `the server "127.0.0.1:1"`},
		"a port out of range":        {psych.ProbeTarget{URL: "http://127.0.0.1:99999/mcp"}, failure.KindSpecInvalid, "port"},
		"a bad URL":                  {psych.ProbeTarget{URL: "ftp://x"}, failure.KindSpecInvalid, "http"},
	} {
		_, err := runtime.Probe(t.Context(), acme, test.target)
		if failure.KindOf(err) != test.kind || !strings.Contains(fmt.Sprint(err), test.says) || strings.Contains(fmt.Sprint(err), "hush") {
			t.Errorf("%s: got %s: %v", name, failure.KindOf(err), err)
		}
	}
}

func TestToolsExplainsWhichPlaneTookEachToolAway(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", nil), tool("list", nil), tool("drop", nil)))
	runtime := start(t, psych.Options{MCP: &psych.MCP{}, Tenants: map[string]psych.Tenant{
		"acme": {Allow: map[string][]string{"crm": {"find", "list"}, "gone": {"*"}}, Servers: map[string]string{"taken": "https://mcp.example.com/"}},
	}})
	shown, err := runtime.Tools(t.Context(), acme, agent(t, nil,
		spec.Server{Name: "crm", URL: server.URL(), Allow: []string{"find", "drop"}},
		spec.Server{Name: "gone", URL: "http://127.0.0.1:1/", Allow: []string{"one", "t*"}, Optional: true}))
	if err != nil {
		t.Fatal(err)
	}
	planes := map[string]string{}
	for _, row := range shown.Tools {
		if row.Callable != (row.ExcludedBy == "") {
			t.Errorf("row %+v", row)
		}
		planes[row.Name] = string(row.ExcludedBy)
	}
	want := map[string]string{"crm__find": "", "crm__list": "spec", "crm__drop": "tenant", "gone__one": "unreachable"}
	if fmt.Sprint(planes) != fmt.Sprint(want) || len(shown.Servers) != 2 || shown.Servers[1].Reachable {
		t.Errorf("got %v over %+v", planes, shown.Servers)
	}
	_, err = runtime.Tools(t.Context(), acme, agent(t, nil, spec.Server{Name: "taken", URL: server.URL()}))
	if failure.KindOf(err) != failure.KindAccessDenied {
		t.Errorf("an alias that is reserved for another URL: %v", err)
	}
}

func TestOneNameForTwoToolsFailsTheRunAndNamesBoth(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", nil), tool("find", nil)))
	runtime := start(t, psych.Options{MCP: &psych.MCP{}, Model: psych.UseModel(play(say("done")))})
	got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL()}))
	if got.end.State != journal.StateFailed || got.end.Error.Kind != failure.KindNameConflict ||
		!strings.Contains(got.end.Error.Message, `"crm__find" stands for two tools: "find" of server "crm" and "find" of server "crm"`) {
		t.Errorf("the run ended %+v", got.end)
	}
}

func TestABadServerCostsOnlyItsOwnCall(t *testing.T) {
	good := mcptest.NewServer(t, mcptest.Tools(tool("find", func(mcptest.Call) mcptest.Result { return mcptest.Text("found") })))
	bad := mcptest.NewServer(t, mcptest.Tools(tool("find", nil), tool("write", nil)))
	bad.On(mcptest.CallOf("find"), mcptest.Execute().Then(mcptest.Reset()).Once())
	runtime := start(t, psych.Options{MCP: &psych.MCP{}, Model: psych.UseModel(play(
		ask(call("a", "good__find", `{}`), call("b", "bad__find", `{}`), call("c", "bad__write", `{}`)), say("done")))})
	got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "good", URL: good.URL()}, spec.Server{Name: "bad", URL: bad.URL()}))
	if got.finished["a"].Outcome != journal.OutcomeOK || got.finished["b"].Outcome != journal.OutcomeUnknown ||
		got.finished["b"].Error.Kind != failure.KindOutcomeUnknown || got.finished["c"].Outcome != journal.OutcomeOK {
		t.Errorf("the calls ended %+v", got.finished)
	}
	if sent := len(bad.Requests(mcptest.CallOf("find"))); sent != 1 {
		t.Errorf("the call whose answer was lost was sent %d times", sent)
	}
}

func TestACallThatWasCutOffIsIssuedOnceMoreWhereThatIsTrusted(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", func(mcptest.Call) mcptest.Result { return mcptest.Text("found") }),
		mcptest.Tool{Name: "write", Annotations: `{"destructiveHint":false}`}))
	server.On(mcptest.CallOf("find"), mcptest.Execute().Then(mcptest.Reset()).Once())
	server.On(mcptest.CallOf("write"), mcptest.Execute().Then(mcptest.Reset()).Once())
	runtime := start(t, psych.Options{MCP: &psych.MCP{}, TrustAnnotations: true, Approvals: free, Model: psych.UseModel(play(
		ask(call("a", "crm__find", `{}`), call("b", "crm__write", `{}`)), say("done")))})
	got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL()}))
	if got.finished["a"].Outcome != journal.OutcomeOK || got.finished["b"].Outcome != journal.OutcomeUnknown {
		t.Errorf("the calls ended %+v", got.finished)
	}
	if reads, writes := len(server.Requests(mcptest.CallOf("find"))), len(server.Requests(mcptest.CallOf("write"))); reads != 2 || writes != 1 {
		t.Errorf("%d reads and %d writes were sent", reads, writes)
	}
}

func TestARunsOwnSessionIsItsOwn(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Legacy("2025-06-18"), mcptest.Tools(tool("session", func(c mcptest.Call) mcptest.Result {
		return mcptest.Text(c.Header.Get("Mcp-Session-Id"))
	})))
	runtime := start(t, psych.Options{MCP: &psych.MCP{}, Model: psych.UseModel(play(
		ask(call("a", "crm__session", `{}`)), ask(call("b", "crm__session", `{}`)), say("done")))})
	sessions := map[spec.Session]map[string]bool{spec.SessionShared: {}, spec.SessionRun: {}}
	for session, seen := range sessions {
		for range 2 {
			got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL(), Session: session}))
			if got.finished["a"].Result == "" || got.finished["a"].Result != got.finished["b"].Result {
				t.Errorf("%s: one run used the sessions %q and %q", session, got.finished["a"].Result, got.finished["b"].Result)
			}
			seen[got.finished["a"].Result] = true
		}
	}
	if len(sessions[spec.SessionShared]) != 1 || len(sessions[spec.SessionRun]) != 2 {
		t.Errorf("the sessions are %v", sessions)
	}
	server.WaitFor("DELETE", 2)
}

func TestAnOldServerIsProbedOnce(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Legacy("2025-11-25"), mcptest.Tools(tool("find", nil)))
	runtime := start(t, psych.Options{MCP: &psych.MCP{}})
	for range 3 {
		report, err := runtime.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()})
		if err != nil || report.ProtocolVersion != "2025-11-25" {
			t.Fatalf("the probe found %+v (%v)", report, err)
		}
		if _, err := runtime.Disconnect(t.Context(), acme, ""); err != nil {
			t.Fatal(err)
		}
	}
	if probes := len(server.Requests("server/discover")); probes != 1 || len(server.Requests("initialize")) != 3 {
		t.Errorf("the server was asked %d times whether it is a new one", probes)
	}
}

func TestAnAskerThatGivesUpLeavesNothingBehind(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", nil)))
	server.On("tools/list", mcptest.Hang())
	runtime := start(t, psych.Options{MCP: &psych.MCP{}})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := runtime.Probe(ctx, acme, psych.ProbeTarget{URL: server.URL()}); failure.KindOf(err) != failure.KindCancelled {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatConnectsAndNeverListsIsUnreachableInTime(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", nil)))
	server.On("tools/list", mcptest.Hang())
	runtime := start(t, psych.Options{MCP: &psych.MCP{ConnectTimeout: 200 * time.Millisecond}})
	_, err := runtime.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()})
	if failure.KindOf(err) != failure.KindMcpServerUnreachable {
		t.Errorf("got %s: %v", failure.KindOf(err), err)
	}
}

func TestACallThatTakesTooLongIsUnknownAndTheRunGoesOn(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", nil)))
	server.On(mcptest.CallOf("find"), mcptest.Hang())
	runtime := start(t, psych.Options{
		MCP:   &psych.MCP{CallTimeout: 200 * time.Millisecond},
		Model: psych.UseModel(play(ask(call("a", "crm__find", `{}`)), say("done"))),
	})
	got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL()}))
	if got.end.State != journal.StateCompleted || got.finished["a"].Outcome != journal.OutcomeUnknown {
		t.Errorf("the run ended %+v, its call %+v", got.end, got.finished["a"])
	}
}

func TestANewServerThatIsSlowToBeginIsWaitedFor(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Modern(), mcptest.Tools(tool("find", nil)))
	server.On(mcptest.Any, mcptest.Delay(900*time.Millisecond).Once())
	patient := start(t, psych.Options{MCP: &psych.MCP{ConnectTimeout: 3 * time.Second}})
	if report, err := patient.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()}); err != nil || report.ProtocolVersion != "2026-07-28" {
		t.Errorf("the probe found %+v (%v)", report, err)
	}
	server.On("server/discover", mcptest.Hang())
	hasty := start(t, psych.Options{MCP: &psych.MCP{ConnectTimeout: 400 * time.Millisecond}})
	if _, err := hasty.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()}); failure.KindOf(err) != failure.KindMcpServerUnreachable {
		t.Errorf("a server that never answers: %s: %v", failure.KindOf(err), err)
	}
}

func TestASecureServerIsReachedUnderTheAuthoritiesThatAreBelieved(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.TLS(), mcptest.Tools(tool("find", nil)))
	strict := start(t, psych.Options{MCP: &psych.MCP{}})
	if _, err := strict.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()}); failure.KindOf(err) != failure.KindMcpServerUnreachable ||
		!strings.Contains(err.Error(), "its certificate is of an unknown authority") {
		t.Errorf("under the system's authorities: %v", err)
	}
	runtime := start(t, psych.Options{MCP: &psych.MCP{}, RootCAs: mcptest.RootCAs()})
	report, err := runtime.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()})
	if err != nil || len(report.Tools) != 1 {
		t.Fatalf("the probe found %+v (%v)", report, err)
	}
	for _, one := range server.Requests(mcptest.Any) {
		if one.Proto != "HTTP/2.0" {
			t.Errorf("%s came over %s", one.Method, one.Proto)
		}
	}
}

// A runtime that is closed has told each server that its sessions are over, so that
// a program which ends next leaves none behind.
func TestAClosedRuntimeHasEndedItsSessions(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Legacy("2025-11-25"), mcptest.Tools(tool("find", nil)))
	server.On(mcptest.Delete, mcptest.Delay(200*time.Millisecond))
	port := play(ask(call("a", "crm__find", `{}`)))
	runtime := start(t, psych.Options{MCP: &psych.MCP{}, Model: psych.UseModel(port)})
	if _, err := runtime.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()}); err != nil {
		t.Fatal(err)
	}
	own := agent(t, nil, spec.Server{Name: "crm", URL: server.URL(), Session: spec.SessionRun})
	if _, err := runtime.Start(t.Context(), acme, own, "go"); err != nil {
		t.Fatal(err)
	}
	server.WaitFor(mcptest.CallOf("find"), 1)
	if err := runtime.Close(t.Context()); err != nil {
		t.Error(err)
	}
	opened, ended := server.Requests("initialize"), server.Requests(mcptest.Delete)
	if len(opened) != 2 || len(ended) != 2 || ended[0].Session() == ended[1].Session() {
		t.Errorf("of %d sessions, %d were ended", len(opened), len(ended))
	}
}

func TestClosingWaitsForAServerNoLongerThanItIsAskedTo(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Legacy("2025-11-25"), mcptest.Tools(tool("find", nil)))
	server.On(mcptest.Delete, mcptest.Hang())
	runtime, err := psych.New(psych.Options{MCP: &psych.MCP{}, Egress: loopback})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := runtime.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
