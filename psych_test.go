package psych_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback opens the loopback addresses, where the peers of the tests are.
var loopback = egress.Policy{
	AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	AllowHTTP:  true,
}

var acme = messages.Scope{Tenant: "acme", Principal: "ann"}

// secrets is credentials by tenant and name.
type secrets map[string]map[string]string

var identities = secret.NewIdentities(secret.Text{})

func (s secrets) Resolve(_ context.Context, scope messages.Scope, name string) (secret.Credential, error) {
	if value, found := s[scope.Tenant][name]; found {
		return identities.Of(value), nil
	}
	return secret.Credential{}, failure.New(failure.KindCredentialNotFound, "no credential named "+name, nil)
}

// start makes a runtime that ends with the test.
func start(t testing.TB, options psych.Options) *psych.Runtime {
	t.Helper()
	options.Egress = loopback
	runtime, err := psych.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := runtime.Close(ctx); err != nil {
			t.Errorf("the runtime does not close: %v", err)
		}
	})
	return runtime
}

// agent is a Spec over servers, with whatever else a story wants.
func agent(t testing.TB, change func(*spec.Spec), servers ...spec.Server) spec.Version {
	t.Helper()
	definition := spec.Spec{Name: "agent", Model: spec.Model{Model: "m"}, MCPServers: servers}
	if change != nil {
		change(&definition)
	}
	version, err := spec.New(definition)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// told is a Run's records, by type.
type told struct {
	turns    []journal.TurnStarted
	answers  []journal.ModelCallFinished
	started  []journal.ToolCallStarted
	finished map[string]journal.ToolCallFinished
	end      journal.RunFinished
}

// follow runs to the end and checks what holds for every Run.
func follow(t testing.TB, run *psych.Run) told {
	t.Helper()
	got := told{finished: map[string]journal.ToolCallFinished{}}
	asked, seq := map[string]bool{}, int64(0)
	for record := range run.Records() {
		if seq++; record.Seq != seq || record.RunID != run.ID() {
			t.Errorf("record %d follows record %d", record.Seq, seq-1)
		}
		switch entry := record.Entry.(type) {
		case journal.TurnStarted:
			got.turns = append(got.turns, entry)
		case journal.ModelCallFinished:
			got.answers = append(got.answers, entry)
			for _, call := range entry.ToolCalls {
				asked[call.CallID] = true
			}
		case journal.ToolCallStarted:
			got.started = append(got.started, entry)
		case journal.ToolCallFinished:
			if _, twice := got.finished[entry.CallID]; twice || !asked[entry.CallID] {
				t.Errorf("call %s is finished twice, or was not asked for", entry.CallID)
			}
			got.finished[entry.CallID] = entry
		case journal.RunFinished:
			got.end = entry
		}
	}
	for id := range asked {
		if _, ended := got.finished[id]; !ended {
			t.Errorf("call %s has no outcome", id)
		}
	}
	return got
}

// tool is a tool that changes nothing; nil answers "ok".
func tool(name string, call func(mcptest.Call) mcptest.Result) mcptest.Tool {
	made := mcptest.Tool{
		Name: name, Description: "Does " + name + ".", Annotations: `{"readOnlyHint":true}`,
		InputSchema: `{"type":"object","properties":{"q":{"type":"string"}}}`,
	}
	if call != nil {
		made.Call = func(_ context.Context, c mcptest.Call) mcptest.Result { return call(c) }
	}
	return made
}

func TestARunAsksItsModelCallsItsToolsAndAnswers(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", func(c mcptest.Call) mcptest.Result {
		return mcptest.Text("found " + string(c.Arguments))
	})))
	endpoint := mcptest.NewModel(t,
		mcptest.Ask(mcptest.ModelCall{ID: "c1", Name: "crm__find", Arguments: `{"q":"x"}`}), mcptest.Say("It is x."))
	runtime := start(t, psych.Options{Model: psych.OpenAI(endpoint.URL(), nil), MCP: &psych.MCP{}})
	run, err := runtime.Start(t.Context(), acme, agent(t, nil, spec.Server{Name: "crm", URL: server.URL()}), "Who is x?")
	if err != nil {
		t.Fatal(err)
	}
	got := follow(t, run)
	result, err := run.Wait(t.Context())
	if err != nil || result.State != journal.StateCompleted || result.Text != "It is x." {
		t.Errorf("the run ended %+v, %v", result, err)
	}
	if outcome := got.finished["c1"]; outcome.Outcome != journal.OutcomeOK || outcome.Result != `found {"q":"x"}` {
		t.Errorf("the call ended %+v", outcome)
	}
}
