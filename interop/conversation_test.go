package interop_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/spec"
)

// patience is how long a story waits for what should happen soon.
const patience = 30 * time.Second

// stage is a model whose answers the stories give, Run by Run.
type stage struct {
	mu   sync.Mutex
	runs map[string]*conversation // by input
}

// Generate implements model.Port.
func (s *stage) Generate(ctx context.Context, request model.Request, _ func(string)) (model.Response, error) {
	s.mu.Lock()
	c := s.runs[request.Messages[0].Text]
	s.mu.Unlock()
	select {
	case c.asked <- request:
	case <-ctx.Done():
		return model.Response{}, ctx.Err()
	}
	select {
	case answer := <-c.answers:
		return answer, nil
	case <-ctx.Done():
		return model.Response{}, ctx.Err()
	}
}

// conversation is one Run whose model is the story itself. Its methods belong to
// the test's goroutine.
type conversation struct {
	t       testing.TB
	run     *psych.Run
	asked   chan model.Request
	answers chan model.Response
	calls   int
	// asking is what a story collects to ask for at once.
	asking []model.ToolCall
	// offered is what the turn that stands open was offered.
	offered []model.Tool
	// open are the calls that have no outcome yet.
	open []string

	mu       sync.Mutex
	finished map[string][]journal.ToolCallFinished
	end      *journal.RunFinished
	done     chan struct{}
}

// begin starts a Run and waits for its first turn.
func (h *house) begin(scope messages.Scope, version spec.Version) *conversation {
	h.t.Helper()
	c := &conversation{
		t: h.t, asked: make(chan model.Request), answers: make(chan model.Response),
		finished: map[string][]journal.ToolCallFinished{}, done: make(chan struct{}),
	}
	h.stage.mu.Lock()
	input := fmt.Sprint("conversation ", len(h.stage.runs))
	h.stage.runs[input] = c
	h.stage.mu.Unlock()
	run, err := h.Start(h.t.Context(), scope, version, input)
	if err != nil {
		h.t.Fatal(err)
	}
	c.run = run
	go c.follow()
	c.turn()
	return c
}

// follow keeps the outcomes of the Run's calls.
func (c *conversation) follow() {
	defer close(c.done)
	for record := range c.run.Records() {
		c.mu.Lock()
		switch entry := record.Entry.(type) {
		case journal.ToolCallFinished:
			c.finished[entry.CallID] = append(c.finished[entry.CallID], entry)
		case journal.RunFinished:
			c.end = &entry
		}
		c.mu.Unlock()
	}
}

// turn waits until the model is asked.
func (c *conversation) turn() {
	c.t.Helper()
	select {
	case request := <-c.asked:
		c.offered = request.Tools
	case <-c.done:
		c.t.Fatalf("the run ended %+v", c.end)
	case <-time.After(patience):
		c.t.Fatal("the model is not asked")
	}
}

// offers reports whether the open turn was offered a tool of the server.
func (c *conversation) offers(tool string) bool {
	for _, one := range c.offered {
		if one.Name == public(tool) {
			return true
		}
	}
	return false
}

// public is the name under which the model knows a tool.
func public(tool string) string { return "peer__" + tool }

// asks has the model ask for calls, and waits for none of them.
func (c *conversation) asks(calls ...model.ToolCall) {
	c.t.Helper()
	for i := range calls {
		c.calls++
		calls[i].ID = fmt.Sprint("call", c.calls)
		c.open = append(c.open, calls[i].ID)
	}
	c.answers <- model.Response{ToolCalls: calls}
}

// call is a call of one of the server's tools.
func call(tool, arguments string) model.ToolCall {
	return model.ToolCall{Name: public(tool), Arguments: arguments}
}

// outcomes waits for the next turn, and returns what the calls of the one before
// it came to: each has exactly one outcome.
func (c *conversation) outcomes() []journal.ToolCallFinished {
	c.t.Helper()
	c.turn()
	var outcomes []journal.ToolCallFinished
	for _, id := range c.open {
		eventually(c.t, "the outcome of "+id, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.finished[id]) > 0
		})
		c.mu.Lock()
		outcomes = append(outcomes, c.finished[id][0])
		c.mu.Unlock()
	}
	c.open = nil
	return outcomes
}

// does asks for one call and returns what it came to.
func (c *conversation) does(tool, arguments string) journal.ToolCallFinished {
	c.t.Helper()
	c.asks(call(tool, arguments))
	return c.outcomes()[0]
}

// says asks for one call that must succeed, and returns its result.
func (c *conversation) says(tool, arguments string) string {
	c.t.Helper()
	outcome := c.does(tool, arguments)
	if outcome.Outcome != journal.OutcomeOK {
		c.t.Errorf("%s %s ended %s: %s", tool, arguments, outcome.Outcome, outcome.Result)
	}
	return outcome.Result
}

// ends has the model say its last word, and checks the whole of what was recorded.
func (c *conversation) ends() {
	c.t.Helper()
	c.answers <- model.Response{Text: "done"}
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatal("the run does not end")
	}
	if c.end == nil || c.end.State != journal.StateCompleted {
		c.t.Errorf("the run ended %+v", c.end)
	}
	for id, outcomes := range c.finished {
		if len(outcomes) != 1 {
			c.t.Errorf("call %s has the outcomes %+v", id, outcomes)
		}
	}
	if len(c.finished) != c.calls {
		c.t.Errorf("%d calls have %d outcomes", c.calls, len(c.finished))
	}
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", what)
		}
	}
}
