package psych_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/scripted"
	"github.com/psych-systems/psych-go/spec"
)

// playing is a model that plays answers, and then none; it keeps what it was
// asked.
type playing struct {
	answers  []model.Response
	requests chan model.Request
	// before is called ahead of each answer, with its number from 0.
	before func(turn int)
}

func play(answers ...model.Response) *playing {
	return &playing{answers: answers, requests: make(chan model.Request, 1000)}
}

func (p *playing) Generate(ctx context.Context, request model.Request, onText func(string)) (model.Response, error) {
	turn := 0
	for _, message := range request.Messages {
		if message.Role == model.RoleAssistant {
			turn++
		}
	}
	p.requests <- request
	if p.before != nil {
		p.before(turn)
	}
	if turn >= len(p.answers) {
		<-ctx.Done()
	}
	if err := ctx.Err(); err != nil {
		return model.Response{}, err
	}
	if onText != nil && p.answers[turn].Text != "" {
		onText(p.answers[turn].Text)
	}
	return p.answers[turn], nil
}

func ask(calls ...model.ToolCall) model.Response { return model.Response{ToolCalls: calls} }

func call(id, name, arguments string) model.ToolCall {
	return model.ToolCall{ID: id, Name: name, Arguments: arguments}
}

func say(text string) model.Response { return model.Response{Text: text} }

// free holds no call back.
var free = approval.Rules{Selectors: []string{}}

// runAgent runs a Spec's version to its end.
func runAgent(t testing.TB, runtime *psych.Runtime, version spec.Version) told {
	t.Helper()
	run, err := runtime.Start(t.Context(), acme, version, "go")
	if err != nil {
		t.Fatal(err)
	}
	return follow(t, run)
}

func TestCallsThatCannotBeDispatchedAreToldAndTheirSiblingsRun(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(
		tool("find", func(mcptest.Call) mcptest.Result { return mcptest.Text("found") }),
		mcptest.Tool{Name: "drop", Annotations: `{"destructiveHint":true}`},
		mcptest.Tool{Name: "strict", Annotations: `{"readOnlyHint":true}`,
			InputSchema: `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`},
		tool("secret", func(mcptest.Call) mcptest.Result { return mcptest.Text("leaked") }),
	))
	port := play(ask(
		call("good", "crm__find", `{"q":"x"}`),
		call("empty", "crm__find", ``),
		call("cut", "crm__find", `{"q":`),
		call("null", "crm__find", `null`),
		call("list", "crm__find", `[]`),
		call("twice", "crm__find", `{"q":"a"}{"q":"b"}`),
		call("typo", "crm__fnd", `{}`),
		call("nothing", "zzzzzzzzzzz", `{}`),
		call("ungranted", "crm__secret", `{}`),
		call("unfit", "crm__strict", `{"n":"one"}`),
		call("held", "crm__drop", `{}`),
	), say("done"))
	runtime := start(t, psych.Options{Model: psych.UseModel(port), MCP: &psych.MCP{}})
	got := runAgent(t, runtime, agent(t, nil, spec.Server{
		Name: "crm", URL: server.URL(), Allow: []string{"find", "drop", "strict"},
	}))
	for id, want := range map[string]struct {
		outcome journal.Outcome
		kind    failure.Kind
		says    string
	}{
		"good":      {journal.OutcomeOK, "", "found"},
		"empty":     {journal.OutcomeOK, "", "found"},
		"cut":       {journal.OutcomeRefused, failure.KindInvalidArguments, "they are not JSON"},
		"null":      {journal.OutcomeRefused, failure.KindInvalidArguments, "they must be a JSON object"},
		"list":      {journal.OutcomeRefused, failure.KindInvalidArguments, "they must be a JSON object"},
		"twice":     {journal.OutcomeRefused, failure.KindInvalidArguments, "something follows the JSON object"},
		"typo":      {journal.OutcomeRefused, failure.KindUnknownTool, "close names are crm__find"},
		"nothing":   {journal.OutcomeRefused, failure.KindUnknownTool, `the tool "zzzzzzzzzzz" does not exist`},
		"ungranted": {journal.OutcomeRefused, failure.KindAccessDenied, "the Spec does not grant it"},
		"unfit":     {journal.OutcomeRefused, failure.KindInvalidArguments, "do not fit its input schema"},
		"held":      {journal.OutcomeRefused, failure.KindApprovalDenied, "approvals.selectors: []"},
	} {
		outcome := got.finished[id]
		kind := failure.Kind("")
		if outcome.Error != nil {
			kind = outcome.Error.Kind
		}
		if outcome.Outcome != want.outcome || kind != want.kind || !strings.Contains(outcome.Result, want.says) {
			t.Errorf("%s: got %s, %s, %q; want %s, %s, %q", id, outcome.Outcome, kind, outcome.Result, want.outcome, want.kind, want.says)
		}
	}
	if len(got.started) != 2 || got.end.State != journal.StateCompleted {
		t.Errorf("%d calls started and the run ended %s", len(got.started), got.end.State)
	}
	if sent := server.Requests("tools/call"); len(sent) != 2 {
		t.Errorf("the server was sent %d calls", len(sent))
	}
	<-port.requests
	history := (<-port.requests).Messages
	var order []string
	for _, message := range history[2:] {
		order = append(order, message.CallID)
	}
	if want := []string{"good", "empty", "cut", "null", "list", "twice", "typo", "nothing", "ungranted", "unfit", "held"}; !slices.Equal(order, want) {
		t.Errorf("the model reads the results in the order %q", order)
	}
}

func TestARequiredServerThatCannotBeReachedFailsTheRunAndAnOptionalOneIsTold(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", func(mcptest.Call) mcptest.Result { return mcptest.Text("found") })))
	closed := mcptest.NewHost(t, http.NotFoundHandler())
	good := spec.Server{Name: "crm", URL: server.URL()}
	gone := spec.Server{Name: "gone", URL: closed.URL() + "/mcp"}
	port := play(say("done"))
	runtime := start(t, psych.Options{Model: psych.UseModel(port), MCP: &psych.MCP{}})

	required := runAgent(t, runtime, agent(t, nil, good, gone))
	if required.end.State != journal.StateFailed || required.end.Error.Kind != failure.KindMcpServerUnreachable ||
		!strings.Contains(required.end.Error.Message, "gone") || strings.HasSuffix(required.end.Error.Message, ":") {
		t.Errorf("the run ended %+v", required.end)
	}
	gone.Optional = true
	optional := runAgent(t, runtime, agent(t, nil, good, gone))
	if optional.end.State != journal.StateCompleted || optional.turns[0].Servers[1].Reachable || optional.turns[0].Servers[1].Reason == "" {
		t.Errorf("the run ended %+v over %+v", optional.end, optional.turns)
	}
	if system := (<-port.requests).System; !strings.Contains(system, "- gone: unavailable") {
		t.Errorf("the model is told %q", system)
	}
}

func TestOptionalHidesNothingButUnreachability(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{Name: "big", Description: strings.Repeat("x", 8000)}))
	runtime := start(t, psych.Options{Model: psych.UseModel(play(say("done"))), MCP: &psych.MCP{MaxResponseBytes: 4096}})
	got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL(), Optional: true}))
	if got.end.State != journal.StateFailed || got.end.Error.Kind != failure.KindMcpResponseTooLarge {
		t.Errorf("the run ended %+v", got.end)
	}
	if err := runtime.SetMaxResponseBytes(1 << 20); err != nil {
		t.Fatal(err)
	}
	if got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL()})); got.end.State != journal.StateCompleted {
		t.Errorf("under a higher ceiling the run ended %+v", got.end)
	}
	missing := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL(), Credential: "none", Optional: true}))
	if missing.end.State != journal.StateFailed || missing.end.Error.Kind != failure.KindCredentialNotFound {
		t.Errorf("without its credential the run ended %+v", missing.end)
	}
}

func TestAServerThatChangesDuringARunIsSeenAtItsNextTurn(t *testing.T) {
	find := tool("find", func(mcptest.Call) mcptest.Result { return mcptest.Text("found") })
	added := tool("added", func(mcptest.Call) mcptest.Result { return mcptest.Text("new") })
	for name, era := range map[string]mcptest.Option{"2026-07-28": mcptest.Modern(), "2025-06-18": mcptest.Legacy("2025-06-18")} {
		t.Run(name, func(t *testing.T) {
			server := mcptest.NewServer(t, era, mcptest.Tools(find))
			port := play(ask(call("a", "crm__find", `{}`)), ask(call("b", "crm__added", `{}`)), say("done"))
			runtime := start(t, psych.Options{Model: psych.UseModel(port), MCP: &psych.MCP{}})
			port.before = func(turn int) {
				if turn == 0 {
					server.WaitStreams(1)
					server.SetTools(find, added)
					lists := len(server.Requests("tools/list"))
					server.NotifyToolsChanged()
					server.WaitFor("tools/list", lists+1)
					waitFor(t, func() bool {
						connections, err := runtime.Connections(t.Context(), "acme")
						return err == nil && len(connections) == 1 && connections[0].Tools == 2
					})
				}
			}
			got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL()}))
			if len(got.turns[0].Tools) != 1 || len(got.turns[1].Tools) != 2 || got.finished["b"].Result != "new" {
				t.Errorf("turns are %+v, the call ended %+v", got.turns, got.finished["b"])
			}
		})
	}
}

// waitFor waits until something holds, or fails.
func waitFor(t testing.TB, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Error("what was waited for does not come")
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestATenantsPlaneIsAskedAgainAtTheCall(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(tool("find", nil)))
	port := play(ask(call("a", "crm__find", `{}`)), say("done"))
	runtime := start(t, psych.Options{Model: psych.UseModel(port), MCP: &psych.MCP{}})
	port.before = func(turn int) {
		if turn == 0 {
			if err := runtime.SetTenants(map[string]psych.Tenant{"acme": {Allow: map[string][]string{"crm": {"other"}}}}); err != nil {
				t.Error(err)
			}
		}
	}
	got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL()}))
	if outcome := got.finished["a"]; outcome.Outcome != journal.OutcomeRefused || outcome.Error.Kind != failure.KindAccessDenied ||
		!strings.Contains(outcome.Result, "the tenant does not permit it") {
		t.Errorf("the call ended %+v", outcome)
	}
	if len(got.turns[0].Tools) != 1 || len(got.turns[1].Tools) != 0 {
		t.Errorf("turns offered %+v", got.turns)
	}
}

func TestADeferredServerIsReachedThroughItsDoorAndOnlyThroughIt(t *testing.T) {
	var tools []mcptest.Tool
	for i := range 120 {
		tools = append(tools, tool(fmt.Sprintf("tool_%03d", i), func(c mcptest.Call) mcptest.Result { return mcptest.Text("ran " + c.Tool) }))
	}
	tools = append(tools, mcptest.Tool{Name: "wipe", Description: "Wipes all."})
	server := mcptest.NewServer(t, mcptest.Tools(tools...), mcptest.Instructions("Many   tools\nfor many things."))
	port := play(ask(
		call("list", "list_tools", `{}`),
		call("search", "list_tools", `{"search":"tool_07 does"}`),
		call("info", "get_tool_info", `{"server":"big","tool":"tool_007"}`),
		call("denied info", "get_tool_info", `{"server":"big","tool":"wipe"}`),
		call("call", "call_tool", `{"server":"big","tool":"tool_007","arguments":{"q":"x"}}`),
		call("unfit", "call_tool", `{"server":"big","tool":"tool_007","arguments":{"q":7}}`),
		call("denied", "call_tool", `{"server":"big","tool":"wipe"}`),
		call("no server", "call_tool", `{"server":"small","tool":"x"}`),
		call("no tool", "call_tool", `{"server":"big","tool":"tool_999"}`),
		call("direct", "big__tool_007", `{}`),
	), say("done"))
	runtime := start(t, psych.Options{Model: psych.UseModel(port), MCP: &psych.MCP{BudgetChars: 1000}})
	got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "big", URL: server.URL(), Allow: []string{"tool_*"}}))
	for id, says := range map[string]string{
		"list":        "Tools 1 to 50 of 120; search, or go on with offset 50.",
		"search":      "big tool_070: Does tool_070.",
		"info":        `Input schema: {"type":"object","properties":{"q":{"type":"string"}}}`,
		"denied info": "big__wipe may not be called: the Spec does not grant it",
		"call":        "ran tool_007",
		"unfit":       "the arguments of big__tool_007 do not fit its input schema",
		"denied":      "big__wipe may not be called: the Spec does not grant it",
		"no server":   `the server "small" does not exist; the servers are big`,
		"no tool":     `the tool "big__tool_999" does not exist`,
		"direct":      "use call_tool with server \"big\" and tool \"tool_007\"",
	} {
		if result := got.finished[id].Result; !strings.Contains(result, says) {
			t.Errorf("%s: got %q, want %q", id, result, says)
		}
	}
	for id, name := range map[string]string{
		"list": "list_tools", "call": "big__tool_007", "unfit": "big__tool_007", "denied": "big__wipe",
		"no tool": "big__tool_999", "no server": "call_tool",
	} {
		if got.finished[id].Name != name {
			t.Errorf("%s is recorded as %s", id, got.finished[id].Name)
		}
	}
	if strings.Contains(got.finished["list"].Result, "wipe") {
		t.Error("list_tools shows what may not be called")
	}
	if started := got.started[len(got.started)-1]; got.finished["call"].Name != "big__tool_007" || started.Server != "big" || started.Tool != "tool_007" || string(started.Arguments) != `{"q":"x"}` {
		t.Errorf("the call is recorded as %+v", started)
	}
	request := <-port.requests
	var names []string
	for _, shown := range request.Tools {
		names = append(names, shown.Name)
	}
	if !slices.Equal(names, []string{"list_tools", "get_tool_info", "call_tool"}) ||
		!strings.Contains(request.System, "- big (120 tools, by list_tools, get_tool_info and call_tool): Many tools for many things.") {
		t.Errorf("the model is shown %q and told %q", names, request.System)
	}
}

func TestAGatedTargetIsHeldBehindTheDoorToo(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{Name: "drop", Annotations: `{"destructiveHint":true}`}))
	port := play(ask(call("a", "call_tool", `{"server":"crm","tool":"drop"}`)), say("done"))
	runtime := start(t, psych.Options{Model: psych.UseModel(port), MCP: &psych.MCP{}, Approvals: approval.Rules{Selectors: []string{"@destructive"}}})
	got := runAgent(t, runtime, agent(t, nil, spec.Server{Name: "crm", URL: server.URL(), Preload: new(false)}))
	if outcome := got.finished["a"]; outcome.Outcome != journal.OutcomeRefused || outcome.Error.Kind != failure.KindApprovalDenied || outcome.Name != "crm__drop" {
		t.Errorf("the call ended %+v", outcome)
	}
}

func TestHostToolsRunWithTypedArguments(t *testing.T) {
	type order struct {
		ID string `json:"id" jsonschema:"the order's number"`
	}
	type status struct {
		State string `json:"state"`
	}
	lookup := psych.NewTool("lookup_order", "Finds an order.", func(_ context.Context, scope messages.Scope, in order) (status, error) {
		switch in.ID {
		case "panic":
			panic("boom")
		case "mute":
			return status{}, errors.New("")
		case "bad":
			return status{}, errors.New("no such order")
		}
		return status{State: scope.Tenant + " shipped " + in.ID}, nil
	}).ReadOnly()
	port := play(ask(
		call("a", "lookup_order", `{"id":"7"}`), call("b", "lookup_order", `{}`),
		call("c", "lookup_order", `{"id":"panic"}`), call("d", "lookup_order", `{"id":"bad"}`),
		call("e", "lookup_order", `{"id":"mute"}`),
	), say("done"))
	runtime := start(t, psych.Options{Model: psych.UseModel(port), Tools: []psych.HostTool{lookup}})
	got := runAgent(t, runtime, agent(t, func(s *spec.Spec) { s.Tools = []string{"lookup_order"} }))
	if a := got.finished["a"]; a.Outcome != journal.OutcomeOK || a.Result != `{"state":"acme shipped 7"}` || string(a.Structured) != a.Result {
		t.Errorf("a ended %+v", a)
	}
	if b := got.finished["b"]; b.Outcome != journal.OutcomeRefused || b.Error.Kind != failure.KindInvalidArguments {
		t.Errorf("b ended %+v", b)
	}
	if c := got.finished["c"]; c.Outcome != journal.OutcomeError || c.Error.Kind != failure.KindInternal || strings.Contains(c.Result, "boom") {
		t.Errorf("c ended %+v", c)
	}
	if d := got.finished["d"]; d.Outcome != journal.OutcomeError || d.Result != "no such order" {
		t.Errorf("d ended %+v", d)
	}
	if e := got.finished["e"]; e.Outcome != journal.OutcomeError || e.Result != "the tool lookup_order failed without saying why" {
		t.Errorf("e ended %+v", e)
	}
	var schema map[string]any
	if err := json.Unmarshal((<-port.requests).Tools[0].InputSchema, &schema); err != nil || schema["type"] != "object" {
		t.Errorf("the schema is %v (%v)", schema, err)
	}
}

func TestWhatCannotWorkIsRefusedWhenItIsRegistered(t *testing.T) {
	server := spec.Server{Name: "crm", URL: "https://mcp.example.com/"}
	bare := start(t, psych.Options{Model: psych.UseModel(play())})
	if err := bare.Register(agent(t, nil, server)); failure.KindOf(err) != failure.KindSpecInvalid {
		t.Errorf("without a pool: %v", err)
	}
	if err := bare.Register(agent(t, func(s *spec.Spec) { s.Tools = []string{"unknown"} })); failure.KindOf(err) != failure.KindSpecInvalid {
		t.Errorf("without the host tool: %v", err)
	}
	if _, err := bare.Start(t.Context(), messages.Scope{}, agent(t, nil), "x"); failure.KindOf(err) != failure.KindSpecInvalid {
		t.Errorf("without a scope: %v", err)
	}
	same := psych.NewTool("same", "", func(context.Context, messages.Scope, struct{}) (string, error) { return "", nil })
	if _, err := psych.New(psych.Options{Tools: []psych.HostTool{same, same}}); failure.KindOf(err) != failure.KindNameConflict {
		t.Errorf("with one name twice: %v", err)
	}
	if _, err := psych.New(psych.Options{Approvals: approval.Rules{Selectors: []string{"@all"}}}); failure.KindOf(err) != failure.KindSpecInvalid {
		t.Errorf("with a bad selector: %v", err)
	}
}

func TestALimitOrTheDeadlineFailsARunAndCancellingAbortsIt(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	server := mcptest.NewServer(t, mcptest.Tools(
		tool("find", func(mcptest.Call) mcptest.Result { return mcptest.Text("found") }),
		mcptest.Tool{Name: "hang", Annotations: `{"readOnlyHint":true}`, Call: func(ctx context.Context, _ mcptest.Call) mcptest.Result {
			select {
			case <-ctx.Done():
			case <-hang:
			}
			return mcptest.Text("late")
		}},
	))
	crm := spec.Server{Name: "crm", URL: server.URL()}
	again := ask(call("", "crm__find", `{}`))
	limited := start(t, psych.Options{Model: psych.UseModel(play(again, again, again)), MCP: &psych.MCP{}})
	got := runAgent(t, limited, agent(t, func(s *spec.Spec) { s.Limits.MaxTurns = 2 }, crm))
	if got.end.State != journal.StateFailed || got.end.Error.Kind != failure.KindTurnLimit || len(got.turns) != 2 {
		t.Errorf("the limited run ended %+v after %d turns", got.end, len(got.turns))
	}
	lost := ask(call("", "nothing", `{}`))
	hopeless := start(t, psych.Options{Model: psych.UseModel(play(lost, lost, lost, lost, lost, lost, lost)), MCP: &psych.MCP{}})
	if got := runAgent(t, hopeless, agent(t, nil, crm)); got.end.State != journal.StateFailed || got.end.Error.Kind != failure.KindModelError || len(got.turns) != 5 {
		t.Errorf("the hopeless run ended %+v after %d turns", got.end, len(got.turns))
	}
	hanging := ask(call("a", "crm__hang", `{}`), call("b", "crm__find", `{}`))
	slow := start(t, psych.Options{Model: psych.UseModel(play(hanging)), MCP: &psych.MCP{}})
	got = runAgent(t, slow, agent(t, func(s *spec.Spec) { s.Limits.Deadline = 300 * time.Millisecond }, crm))
	if got.end.State != journal.StateFailed || got.end.Error.Kind != failure.KindDeadlineExceeded ||
		got.finished["a"].Outcome != journal.OutcomeUnknown || got.finished["b"].Outcome != journal.OutcomeOK {
		t.Errorf("the late run ended %+v, its calls %+v", got.end, got.finished)
	}
	run, err := slow.Start(t.Context(), acme, agent(t, nil, crm), "go")
	if err != nil {
		t.Fatal(err)
	}
	calls := len(server.Requests(mcptest.CallOf("hang")))
	server.WaitFor(mcptest.CallOf("hang"), calls+1)
	run.Cancel()
	if got := follow(t, run); got.end.State != journal.StateAborted || got.end.Error.Kind != failure.KindCancelled || got.finished["a"].Outcome != journal.OutcomeUnknown {
		t.Errorf("the cancelled run ended %+v, its calls %+v", got.end, got.finished)
	}
	if _, err := run.Wait(t.Context()); failure.KindOf(err) != failure.KindCancelled {
		t.Errorf("waiting returned %v", err)
	}
}

func TestAnAnswerThatIsNotWholeIsNotPassedOffAsOne(t *testing.T) {
	endpoint := mcptest.NewModel(t, mcptest.Say("The answer is").Finishes("length"))
	runtime := start(t, psych.Options{Model: psych.OpenAI(endpoint.URL(), nil)})
	got := runAgent(t, runtime, agent(t, nil))
	if got.end.State != journal.StateFailed || got.end.Error.Kind != failure.KindModelError || got.end.Text != "" ||
		got.answers[0].Text != "The answer is" || got.answers[0].Cut == "" {
		t.Errorf("the run ended %+v after %+v", got.end, got.answers)
	}
}

// turns is a model that asks, in one turn, for the calls that a Run's input stands
// for, each with a number of its own, and then says "done".
func turns(calls func(input string) []string) *scripted.Model {
	return scripted.Func(func(request model.Request, turn int) (scripted.Turn, error) {
		if turn > 1 {
			return scripted.Turn{Text: "done"}, nil
		}
		var asked scripted.Turn
		for i, name := range calls(request.Messages[0].Text) {
			asked.ToolCalls = append(asked.ToolCalls, scripted.Call{Name: name, Arguments: fmt.Sprintf(`{"q":"%d"}`, i)})
		}
		return asked, nil
	})
}
