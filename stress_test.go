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
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/scripted"
	"github.com/psych-systems/psych-go/spec"
)

func TestClosingEndsEveryRunAndLeavesEachCallItsOutcome(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{
		Name: "hang", Annotations: `{"readOnlyHint":true}`,
		Call: func(ctx context.Context, _ mcptest.Call) mcptest.Result { <-ctx.Done(); return mcptest.Text("late") },
	}))
	runtime, err := psych.New(psych.Options{
		Egress: loopback, MCP: &psych.MCP{},
		Model: psych.UseModel(scripted.New(scripted.Turn{ToolCalls: []scripted.Call{{Name: "crm__hang"}}}, scripted.Turn{Text: "done"})),
	})
	if err != nil {
		t.Fatal(err)
	}
	version := agent(t, nil, spec.Server{Name: "crm", URL: server.URL()})
	var runs []*psych.Run
	for i := range 100 {
		run, err := runtime.Start(t.Context(), messages.Scope{Tenant: fmt.Sprint("t", i%10)}, version, "go")
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	server.WaitFor("tools/call", 20)
	if err := runtime.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		if got := follow(t, run); got.end.State != journal.StateAborted {
			t.Errorf("a run ended %+v", got.end)
		}
	}
	if _, err := runtime.Start(t.Context(), acme, version, "go"); failure.KindOf(err) != failure.KindCancelled {
		t.Errorf("a closed runtime starts a run: %v", err)
	}
	_, probing := runtime.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()})
	_, showing := runtime.Tools(t.Context(), acme, version)
	_, listing := runtime.Connections(t.Context(), "")
	_, disconnecting := runtime.Disconnect(t.Context(), acme, "")
	for _, err := range []error{probing, showing, listing, disconnecting} {
		if failure.KindOf(err) != failure.KindCancelled || err.Error() != "this runtime is closed" {
			t.Errorf("a closed runtime answers %v", err)
		}
	}
	if err := runtime.Close(t.Context()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestAModelThatPanicsFailsItsRunOnly(t *testing.T) {
	runtime := start(t, psych.Options{Model: psych.UseModel(scripted.Func(func(request model.Request, _ int) (scripted.Turn, error) {
		if request.Messages[0].Text == "panic" {
			panic("planted-in-the-panic")
		}
		return scripted.Turn{Text: "fine"}, nil
	}))})
	bad, err := runtime.Start(t.Context(), acme, agent(t, nil), "panic")
	if err != nil {
		t.Fatal(err)
	}
	good, err := runtime.Start(t.Context(), acme, agent(t, nil), "go")
	if err != nil {
		t.Fatal(err)
	}
	if got := follow(t, bad); got.end.State != journal.StateFailed || strings.Contains(got.end.Error.Message, "planted") {
		t.Errorf("the run ended %+v", got.end)
	}
	if got := follow(t, good); got.end.State != journal.StateCompleted {
		t.Errorf("its neighbour ended %+v", got.end)
	}
}

func TestAServerThatIsRestartedUnderRunsCostsAtMostItsCallsInFlight(t *testing.T) {
	for name, era := range map[string]mcptest.Option{"2026-07-28": mcptest.Modern(), "2025-11-25": mcptest.Legacy("2025-11-25")} {
		t.Run(name, func(t *testing.T) {
			server := mcptest.NewServer(t, era, mcptest.Tools(tool("find", func(mcptest.Call) mcptest.Result { return mcptest.Text("found") })))
			turns := []scripted.Turn{}
			for range 8 {
				turns = append(turns, scripted.Turn{ToolCalls: []scripted.Call{{Name: "crm__find"}}})
			}
			runtime := start(t, psych.Options{MCP: &psych.MCP{}, TrustAnnotations: true, Model: psych.UseModel(scripted.New(append(turns, scripted.Turn{Text: "done"})...))})
			version := agent(t, nil, spec.Server{Name: "crm", URL: server.URL()})
			var running sync.WaitGroup
			for range 10 {
				run, err := runtime.Start(t.Context(), acme, version, "go")
				if err != nil {
					t.Fatal(err)
				}
				running.Go(func() {
					got := follow(t, run)
					if got.end.State != journal.StateCompleted && got.end.Error.Kind != failure.KindMcpServerUnreachable {
						t.Errorf("a run ended %+v", got.end.Error)
					}
				})
			}
			server.WaitFor("tools/call", 5)
			server.Restart()
			running.Wait()
			waitFor(t, func() bool {
				run, err := runtime.Start(t.Context(), acme, version, "go")
				return err == nil && follow(t, run).end.State == journal.StateCompleted
			})
		})
	}
}

func TestAFullPoolServesManyKeysInTurn(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", nil)))
	runtime := start(t, psych.Options{MCP: &psych.MCP{MaxConnections: 2, IdleClose: time.Millisecond}})
	var asking sync.WaitGroup
	for i := range 12 {
		asking.Go(func() {
			for range 5 {
				_, err := runtime.Probe(t.Context(), messages.Scope{Tenant: fmt.Sprint("t", i)}, psych.ProbeTarget{URL: server.URL()})
				if kind := failure.KindOf(err); err != nil && kind != failure.KindBusy {
					t.Errorf("a probe ended %v", err)
				}
			}
		})
	}
	asking.Wait()
}

func TestARunThatIsCancelledAtOnceHasItsBeginningAndItsEnd(t *testing.T) {
	runtime := start(t, psych.Options{Model: psych.UseModel(scripted.New(scripted.Turn{Text: "done"}))})
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		run, err := runtime.Start(ctx, acme, agent(t, nil), "go")
		if err != nil {
			t.Fatal(err)
		}
		if got := follow(t, run); got.end.State != journal.StateAborted && got.end.State != journal.StateCompleted {
			t.Fatalf("the run ended %+v", got.end)
		}
	}
}

func TestHostToolsThatIgnoreTheirContextDoNotHoldTheDeadlineUp(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	stuck := psych.NewTool("stuck", "", func(context.Context, messages.Scope, struct{}) (string, error) { <-release; return "", nil }).ReadOnly()
	var calls []scripted.Call
	for range 80 {
		calls = append(calls, scripted.Call{Name: "stuck"})
	}
	runtime := start(t, psych.Options{Tools: []psych.HostTool{stuck}, Model: psych.UseModel(scripted.New(scripted.Turn{ToolCalls: calls}))})
	got := runAgent(t, runtime, agent(t, func(s *spec.Spec) { s.Tools = []string{"stuck"}; s.Limits.Deadline = 300 * time.Millisecond }))
	if got.end.State != journal.StateFailed || got.end.Error.Kind != failure.KindDeadlineExceeded {
		t.Errorf("the run ended %+v", got.end)
	}
}

func TestAConnectionIsNotIdleWhileARunNeedsIt(t *testing.T) {
	for _, session := range []spec.Session{spec.SessionShared, spec.SessionRun} {
		server := mcptest.NewServer(t, mcptest.Legacy("2025-11-25"), mcptest.Tools(tool("session", func(c mcptest.Call) mcptest.Result {
			return mcptest.Text(c.Header.Get("Mcp-Session-Id"))
		})))
		server.On("tools/list", mcptest.Delay(1500*time.Millisecond).Once())
		port := play(ask(call("a", "crm__session", `{}`)), ask(call("b", "crm__session", `{}`)), say("done"))
		port.before = func(turn int) {
			if turn == 1 {
				time.Sleep(1500 * time.Millisecond)
			}
		}
		runtime := start(t, psych.Options{Model: psych.UseModel(port), MCP: &psych.MCP{IdleClose: time.Second}})
		got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL(), Session: session}))
		if got.end.State != journal.StateCompleted {
			t.Errorf("%s: the run ended %+v", session, got.end)
		}
		if session == spec.SessionRun && got.finished["a"].Result != got.finished["b"].Result {
			t.Errorf("the run lost its own session: %q, then %q", got.finished["a"].Result, got.finished["b"].Result)
		}
	}
}
