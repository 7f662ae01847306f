package psych_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/spec"
)

// mine has an actor panic once, on the message of a kind that comes first after
// the mine was laid.
type mine struct {
	kind reflect.Type
	laid atomic.Bool
}

func mineOn(kind any) *mine { return &mine{kind: reflect.TypeOf(kind)} }

func (m *mine) middleware() []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			if reflect.TypeOf(envelope.Message) == m.kind && m.laid.CompareAndSwap(true, false) {
				panic("a mine")
			}
			next(ctx, envelope)
		}
	}}
}

// till counts what was paid, by the arguments of the calls.
type till struct {
	mu   sync.Mutex
	paid map[string]int
}

// tool is a tool that must not be called twice; it waits for release, which may be
// nil.
func (p *till) tool(release <-chan struct{}) mcptest.Tool {
	return mcptest.Tool{Name: "pay", Call: func(ctx context.Context, c mcptest.Call) mcptest.Result {
		p.mu.Lock()
		if p.paid == nil {
			p.paid = map[string]int{}
		}
		p.paid[string(c.Arguments)]++
		p.mu.Unlock()
		if release != nil {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return mcptest.Text("paid " + string(c.Arguments))
	}}
}

func (p *till) times(arguments string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paid[arguments]
}

func TestAConnectionThatPanicsUnder64CallsGivesEachItsOneOutcome(t *testing.T) {
	const calls = 64
	release, counted := make(chan struct{}), &till{}
	server := mcptest.NewServer(t, mcptest.Tools(counted.tool(release)))
	trap := mineOn(&messages.GetCatalogue{})
	many := ask()
	for i := range calls {
		many.ToolCalls = append(many.ToolCalls, call(fmt.Sprint(i), "crm__pay", fmt.Sprintf(`{"n":%d}`, i)))
	}
	runtime := start(t, psych.Middleware{Connection: trap.middleware()}.With(psych.Options{
		Model: psych.UseModel(play(many, say("done"))), MCP: &psych.MCP{}, Approvals: free,
	}))
	version := agent(t, nil, spec.Server{Name: "crm", URL: server.URL()})
	neighbour, err := runtime.Start(t.Context(), messages.Scope{Tenant: "globex"}, version, "go")
	if err != nil {
		t.Fatal(err)
	}
	server.WaitFor(mcptest.CallOf("pay"), calls)
	run, err := runtime.Start(t.Context(), acme, version, "go")
	if err != nil {
		t.Fatal(err)
	}
	server.WaitFor(mcptest.CallOf("pay"), 2*calls)
	trap.laid.Store(true)
	if _, err := runtime.Probe(t.Context(), acme, psych.ProbeTarget{URL: server.URL()}); failure.KindOf(err) != failure.KindMcpServerUnreachable {
		t.Errorf("the question that the connection panicked on ended %v", err)
	}
	got := follow(t, run)
	close(release)
	if len(got.finished) != calls || len(got.started) != calls || got.end.State != journal.StateCompleted {
		t.Errorf("%d calls have an outcome and the run ended %+v", len(got.finished), got.end)
	}
	for id, outcome := range got.finished {
		if outcome.Outcome != journal.OutcomeUnknown {
			t.Errorf("call %s ended %+v", id, outcome)
		}
	}
	for id, outcome := range follow(t, neighbour).finished {
		if outcome.Outcome != journal.OutcomeOK {
			t.Errorf("the neighbour's call %s ended %+v", id, outcome)
		}
	}
	for i := range calls {
		if times := counted.times(fmt.Sprintf(`{"n":%d}`, i)); times != 2 {
			t.Errorf("call %d was carried out %d times for two tenants", i, times)
		}
	}
}

// stumbling has one of a Run's messages panic its actor, before or after it is
// received; the end of an actor is no message.
type stumbling struct {
	mu        sync.Mutex
	countdown int
	after     bool
	fell      string
}

func (s *stumbling) over(message int, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countdown, s.after, s.fell = message, after, ""
}

func (s *stumbling) on() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fell
}

func (s *stumbling) meets(message any) (before, after bool) {
	switch message.(type) {
	case *actor.Restarting, *actor.Stopping, *actor.Stopped:
		return false, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.countdown--; s.countdown != 0 {
		return false, false
	}
	s.fell = fmt.Sprintf("%T", message)
	return !s.after, s.after
}

func (s *stumbling) middleware() []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			before, after := s.meets(envelope.Message)
			if before {
				panic("before")
			}
			next(ctx, envelope)
			if after {
				panic("after")
			}
		}
	}}
}

// TestARunThatPanicsOnAnyMessageEndsAndRepeatsNothing has a Run's actor panic on its
// first message, then in another Run on its second, and so on to the last one.
func TestARunThatPanicsOnAnyMessageEndsAndRepeatsNothing(t *testing.T) {
	counted := &till{}
	server := mcptest.NewServer(t, mcptest.Tools(counted.tool(nil)), mcptest.Cache(0, "private"))
	trap := &stumbling{}
	input := func(run int, call string) string { return fmt.Sprintf(`{"run":%d,"call":%q}`, run, call) }
	for when, after := range map[string]bool{"before": false, "after": true} {
		fell := map[string]int{}
		for n := 1; ; n++ {
			runtime := start(t, psych.Middleware{Run: trap.middleware()}.With(psych.Options{
				MCP: &psych.MCP{}, Approvals: free,
				Model: psych.UseModel(play(
					ask(call("a", "crm__pay", input(n, when+"a")), call("b", "call_tool", `{"server":"vault","tool":"pay","arguments":`+input(n, when+"b")+`}`)),
					ask(call("c", "crm__pay", input(n, when+"c")), call("d", "crm__none", `{}`)), say("done"))),
			}))
			trap.over(n, after)
			got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL()},
				spec.Server{Name: "vault", URL: server.URL(), Preload: new(false)}))
			where := fmt.Sprintf("%s message %d, a %s", when, n, trap.on())
			if got.end.State != journal.StateCompleted || len(got.finished) != 4 || len(got.turns) != 3 {
				t.Errorf("%s: the run ended %+v after %d turns, its calls %+v", where, got.end, len(got.turns), got.finished)
			}
			for id, outcome := range got.finished {
				times, ended := counted.times(input(n, when+id)), outcome.Outcome
				if id == "d" && ended == journal.OutcomeRefused {
					continue
				}
				if ended != journal.OutcomeOK && ended != journal.OutcomeUnknown || times > 1 || ended == journal.OutcomeOK && times != 1 {
					t.Errorf("%s: call %s ended %s and was carried out %d times", where, id, ended, times)
				}
			}
			if trap.on() == "" {
				break
			}
			fell[trap.on()]++
		}
		for _, kind := range []string{"*actor.Started", "*messages.Catalogue", "*messages.CallDone", "*async.Done"} {
			if fell[kind] == 0 {
				t.Errorf("%s: no run fell over a %s: %v", when, kind, fell)
			}
		}
	}
}

func TestAPoolThatPanicsWhile50KeysResolveLeavesNoRunWithoutItsEnd(t *testing.T) {
	const keys = 50
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", nil)))
	release := make(chan struct{})
	server.On("tools/list", mcptest.Until(release))
	trap := mineOn(&messages.ListConnections{})
	runtime := start(t, psych.Middleware{Pool: trap.middleware()}.With(psych.Options{
		Model: psych.UseModel(play(ask(call("a", "crm__find", `{}`)), say("done"))), MCP: &psych.MCP{},
	}))
	version := agent(t, nil, spec.Server{Name: "crm", URL: server.URL()})
	all := func() []*psych.Run {
		var runs []*psych.Run
		for i := range keys {
			run, err := runtime.Start(t.Context(), messages.Scope{Tenant: fmt.Sprint("t", i)}, version, "go")
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		return runs
	}
	resolving := all()
	server.WaitFor("tools/list", keys)
	trap.laid.Store(true)
	if _, err := runtime.Connections(t.Context(), ""); failure.KindOf(err) != failure.KindMcpServerUnreachable {
		t.Errorf("the question that the pool panicked on ended %v", err)
	}
	for _, run := range resolving {
		got := follow(t, run)
		if got.end.State != journal.StateFailed || got.end.Error.Kind != failure.KindMcpServerUnreachable || strings.HasSuffix(got.end.Error.Message, ":") {
			t.Errorf("a run ended %+v", got.end)
		}
	}
	close(release)
	for _, run := range all() {
		if got := follow(t, run); got.end.State != journal.StateCompleted || got.finished["a"].Outcome != journal.OutcomeOK {
			t.Errorf("a later run ended %+v", got.end)
		}
	}
}

func TestAServerThatIsRestartedWhileItsToolsAreListed(t *testing.T) {
	for name, era := range map[string]mcptest.Option{"2026-07-28": mcptest.Modern(), "2025-11-25": mcptest.Legacy("2025-11-25")} {
		t.Run(name, func(t *testing.T) {
			server := mcptest.NewServer(t, era, mcptest.PageSize(1), mcptest.Tools(tool("find", nil), tool("more", nil)))
			made, never := make(chan struct{}), make(chan struct{})
			server.On("tools/list", mcptest.Ordinary().Once(), mcptest.Execute().Then(mcptest.Tell(made), mcptest.Until(never)).Once())
			runtime := start(t, psych.Options{MCP: &psych.MCP{}, Model: psych.UseModel(play(ask(call("a", "crm__more", `{}`)), say("done")))})
			version := agent(t, nil, spec.Server{Name: "crm", URL: server.URL()})
			run, err := runtime.Start(t.Context(), acme, version, "go")
			if err != nil {
				t.Fatal(err)
			}
			<-made
			server.Restart()
			got := follow(t, run)
			if got.end.State != journal.StateCompleted && got.end.Error.Kind != failure.KindMcpServerUnreachable {
				t.Errorf("the run whose list was cut off ended %+v", got.end)
			}
			for _, turn := range got.turns {
				if len(turn.Tools) != 2 {
					t.Errorf("half a list was offered: %+v", turn.Tools)
				}
			}
			waitFor(t, func() bool {
				got := runAgent(t, runtime, version)
				return got.end.State == journal.StateCompleted && got.finished["a"].Outcome == journal.OutcomeOK
			})
		})
	}
}
