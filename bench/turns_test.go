package bench_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/spec"
)

// ticking is a model that asks for the host tool in each turn but the last.
type ticking int

// Generate implements [model.Port].
func (turns ticking) Generate(_ context.Context, request model.Request, _ func(string)) (model.Response, error) {
	if len(request.Messages) >= 2*int(turns)-1 {
		return model.Response{Text: "done"}, nil
	}
	return model.Response{ToolCalls: []model.ToolCall{{ID: fmt.Sprint(len(request.Messages)), Name: "tick", Arguments: "{}"}}}, nil
}

// runs is a runtime that starts the same Run again and again.
type runs struct {
	runtime *psych.Runtime
	version spec.Version
}

// newRuns makes a runtime whose Runs have a number of turns and know the servers at
// the URLs.
func newRuns(t testing.TB, turns int, urls ...string) runs {
	t.Helper()
	tick := psych.NewTool("tick", "", func(context.Context, messages.Scope, struct{}) (string, error) { return "", nil })
	runtime, err := psych.New(psych.Options{
		Model: psych.UseModel(ticking(turns)), MCP: &psych.MCP{}, Tools: []psych.HostTool{tick},
		Egress: loopback, Approvals: approval.Rules{Never: []string{"*"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runtime.Close(context.WithoutCancel(t.Context())) })
	definition := spec.Spec{
		Name: "bench", Model: spec.Model{Model: "none"}, Tools: []string{"tick"}, Limits: spec.Limits{MaxTurns: 1000},
	}
	for i, url := range urls {
		definition.MCPServers = append(definition.MCPServers, spec.Server{Name: fmt.Sprintf("s%d", i), URL: url})
	}
	version, err := spec.New(definition)
	if err != nil {
		t.Fatal(err)
	}
	return runs{runtime, version}
}

// run has one Run go to its end.
func (r runs) run(t testing.TB) {
	t.Helper()
	started, err := r.runtime.Start(context.Background(), messages.Scope{Tenant: "acme"}, r.version, "go")
	if err != nil {
		t.Fatal(err)
	}
	if result, err := started.Wait(context.Background()); err != nil || result.State != journal.StateCompleted {
		t.Fatalf("%s: %v", result.State, err)
	}
}

// measureTurns finds what the resolution of five servers adds to a turn in which
// nothing changed. The first turns of a Run, which do resolve, are in both terms of
// a difference and fall out of it; so does everything that a turn without servers
// costs.
func measureTurns(t testing.TB, e effort) []row {
	p := newPeer(t, kindStub)
	urls := func(last string) []string {
		all := make([]string, 5)
		for i := range all {
			all[i] = fmt.Sprintf("%s/small?%d", p.origin, i)
		}
		all[4] = p.origin + last
		return all
	}
	const few = 2
	turn := func(urls ...string) (elapsed, bytes func() float64) {
		long, brief := newRuns(t, few+e.turns, urls...), newRuns(t, few, urls...)
		long.run(t)
		brief.run(t)
		took := func(r runs) float64 { began := time.Now(); r.run(t); return time.Since(began).Seconds() }
		return func() float64 { return (took(long) - took(brief)) / float64(e.turns) * 1e6 },
			func() float64 {
				runtime.GC()
				return (allocated(func() { long.run(t) }) - allocated(func() { brief.run(t) })) / float64(e.turns)
			}
	}
	large, largeBytes := turn(urls("/private")...)
	_, smallBytes := turn(urls("/small?5")...)
	none, _ := turn()
	with, without := e.alternate(large, none)
	bigger, smaller := e.alternate(largeBytes, smallBytes)
	return []row{
		atMost("turn resolution, 5 servers, one of 351 tools (2 MB), nothing changed", with-without, 50, "µs").
			with("a turn takes %.0f µs, without servers %.0f µs", with, without),
		atMost("bytes that a turn allocates more because that server has 351 tools and not 1", (bigger-smaller)/1024, 1, "KB").
			with("%.1f KB and %.1f KB", bigger/1024, smaller/1024),
	}
}

// measureRequest reads what the first turn sends to the model endpoint.
func measureRequest(t testing.TB, _ effort) (rows []row) {
	p := newPeer(t, kindStub)
	for _, preload := range []bool{false, true} {
		bytes := float64(firstRequest(t, p.origin+"/public", preload))
		if preload {
			rows = append(rows, atLeast("the same, preloaded", bytes, 2_000_000, "bytes"))
			continue
		}
		rows = append(rows, atMost("first request to the model, 351 tools deferred, whole", bytes, 1_899, "bytes"))
	}
	return rows
}

// firstRequest is how many bytes the first turn's request to the model has, with
// empty instructions and an input of 10 characters.
func firstRequest(t testing.TB, url string, preload bool) int64 {
	t.Helper()
	endpoint := mcptest.NewModel(t, mcptest.Say("done"))
	runtime, err := psych.New(psych.Options{Model: psych.OpenAI(endpoint.URL(), nil), MCP: &psych.MCP{}, Egress: loopback})
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.Close(context.WithoutCancel(t.Context()))
	version, err := spec.New(spec.Spec{
		Name: "bench", Model: spec.Model{Model: "gpt-5"},
		MCPServers: []spec.Server{{Name: "large", URL: url, Preload: &preload}},
	})
	if err != nil {
		t.Fatal(err)
	}
	run, err := runtime.Start(t.Context(), messages.Scope{Tenant: "acme"}, version, strings.Repeat("x", 10))
	if err != nil {
		t.Fatal(err)
	}
	for record := range run.Records() {
		if answered, ok := record.Entry.(journal.ModelCallFinished); ok {
			return answered.RequestBytes
		}
	}
	_, err = run.Wait(t.Context())
	t.Fatal(err)
	return 0
}
