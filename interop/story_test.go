package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/model"
)

// Each peer runs once, and the stories are told with it one after the other.
func TestOneStoryWithEveryPeer(t *testing.T) {
	for name, p := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := p.start(t)
			for _, story := range []struct {
				name string
				told bool
				tell func(*testing.T, *house)
			}{
				{"connect", true, connects},
				{"call", true, calls},
				{"too large", true, costsItsOwnCall},
				{"tokens", true, carriesItsToken},
				{"shared session", p.remembers, sharesASession},
				{"own session", p.remembers, hasASessionOfItsOwn},
				{"change", p.tells, learnsOfAChange},
				{"broken stream", true, survivesABrokenStream},
				{"forgotten session", p.ends, survivesAForgottenSession},
				{"restart", true, survivesARestart},
			} {
				if !story.told {
					continue
				}
				t.Run(story.name, func(t *testing.T) { story.tell(t, enter(t, p, at)) })
			}
		})
	}
}

func connects(t *testing.T, h *house) {
	report, err := h.Probe(t.Context(), acme, psych.ProbeTarget{URL: h.url(), Transport: h.peer.transport})
	if err != nil {
		t.Fatal(err)
	}
	if report.ProtocolVersion != h.peer.revision {
		t.Errorf("%s was negotiated, not %s", report.ProtocolVersion, h.peer.revision)
	}
	var names []string
	for _, tool := range report.Tools {
		names = append(names, tool.GetName())
	}
	slices.Sort(names)
	if listed := strings.Join(names, " "); listed != h.peer.tools {
		t.Errorf("it lists %s", listed)
	}
	if h.peer.ours && report.Instructions != "Use it well." || report.Instructions == "" {
		t.Errorf("its instructions are %q", report.Instructions)
	}
}

func calls(t *testing.T, h *house) {
	c := h.begin(acme, h.agent(nil))
	if got, want := len(c.offered), len(strings.Fields(h.peer.tools)); got != want {
		t.Errorf("the model is offered %d tools, not %d", got, want)
	}
	arguments, result := h.peer.echo("größe \u2028 \"quoted\"")
	if got := c.says("echo", arguments); got != result {
		t.Errorf("echo says %q", got)
	}
	var many []model.ToolCall
	var results []string
	for i := range 8 {
		arguments, result := h.peer.echo(fmt.Sprint("text ", i))
		many, results = append(many, call("echo", arguments)), append(results, result)
	}
	c.asks(many...)
	for i, outcome := range c.outcomes() {
		if outcome.Outcome != journal.OutcomeOK || outcome.Result != results[i] {
			t.Errorf("of eight calls at once, one ended %s, %q", outcome.Outcome, outcome.Result)
		}
	}
	c.asks(call("nothing", `{}`), call("echo", `{"no":"text"}`))
	for _, outcome := range c.outcomes() {
		if outcome.Outcome != journal.OutcomeRefused {
			t.Errorf("a call that cannot be made ended %+v", outcome)
		}
	}
	if h.peer.ours {
		ownCalls(t, h, c)
	} else {
		referenceCalls(t, c)
	}
	c.ends()
}

// referenceCalls calls what only the reference server has. What a model cannot read
// is told in a line.
func referenceCalls(t *testing.T, c *conversation) {
	for _, one := range []struct{ tool, arguments, says string }{
		{"get-sum", `{"a":2,"b":3}`, "The sum of 2 and 3 is 5."},
		{"get-structured-content", `{"location":"Chicago"}`, `"conditions"`},
		{"get-tiny-image", `{}`, "image/png"},
		{"get-resource-links", `{"count":2}`, "demo://resource/"},
		{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`, "demo://resource/"},
		{"get-annotated-message", `{"messageType":"error","includeImage":true}`, "Error"},
		{"trigger-long-running-operation", `{"duration":0.05,"steps":2}`, "completed"},
	} {
		if got := c.says(one.tool, one.arguments); !strings.Contains(got, one.says) || strings.Contains(got, "iVBORw0KGgo") {
			t.Errorf("%s says %.500q", one.tool, got)
		}
	}
}

// An answer that is larger than is allowed costs its own call, and none beside it.
func costsItsOwnCall(t *testing.T, h *house) {
	c := h.begin(acme, h.agent(nil))
	const allowed = 64 << 10
	if err := h.SetMaxResponseBytes(allowed); err != nil {
		t.Fatal(err)
	}
	small, result := h.peer.echo("small")
	large, _ := h.peer.echo(strings.Repeat("large ", allowed/5))
	for range 2 {
		c.asks(call("echo", small), call("echo", large), call("echo", small))
		for i, outcome := range c.outcomes() {
			switch {
			case i == 1 && (outcome.Outcome != journal.OutcomeError || outcome.Error.Kind != failure.KindMcpResponseTooLarge):
				t.Errorf("the call with the large answer ended %s: %.200s", outcome.Outcome, outcome.Result)
			case i != 1 && outcome.Result != result:
				t.Errorf("a call beside it ended %s: %.200s", outcome.Outcome, outcome.Result)
			}
		}
	}
	if state := h.connection().State; state != "ready" {
		t.Errorf("the connection is %s", state)
	}
	c.ends()
}

// ownCalls calls what only our tools have.
func ownCalls(t *testing.T, h *house, c *conversation) {
	if got := c.says("add", `{"a":2,"b":3}`); got != `{"sum":5}` {
		t.Errorf("add says %q", got)
	}
	failed := c.does("fail", `{}`)
	if failed.Outcome != journal.OutcomeError || failed.Error.Kind != failure.KindMcpToolError || !strings.Contains(failed.Result, "it broke") {
		t.Errorf("a tool that fails ended %s, %+v, %q", failed.Outcome, failed.Error, failed.Result)
	}
	before := h.at.Ran("gone")
	h.at.Order("remove gone")
	unknown := c.does("gone", `{}`)
	if unknown.Outcome != journal.OutcomeError || unknown.Error.Kind != h.peer.unknown || !strings.Contains(unknown.Result, "gone") {
		t.Errorf("a tool that the server has not any more ended %s, %+v, %q", unknown.Outcome, unknown.Error, unknown.Result)
	}
	if h.at.Ran("gone") != before {
		t.Error("it ran all the same")
	}
	h.at.Order("add gone")
}
