package psych

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/psych-systems/psych-go/actors/run"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/spec"
)

// StartOption changes how a Run is started.
type StartOption func(*startOptions)

type startOptions struct{ onText func(string) }

// OnText has each piece of the model's text told as it arrives. The function
// must not block.
func OnText(tell func(piece string)) StartOption {
	return func(o *startOptions) { o.onText = tell }
}

// Start begins a Run of a Spec's version with an input, on a scope's behalf, and
// returns at once. The Run ends by itself, at the latest at the Spec's deadline;
// when ctx ends before, the Run is cancelled. Start fails as [Runtime.Register]
// does, and on a closed runtime.
func (r *Runtime) Start(ctx context.Context, scope messages.Scope, version spec.Version, input string, options ...StartOption) (*Run, error) {
	if _, err := messages.NewScope(scope.Tenant, scope.Principal); err != nil {
		return nil, err
	}
	if r.options.Model == nil {
		return nil, errNoModel
	}
	if err := r.Register(version); err != nil {
		return nil, err
	}
	var chosen startOptions
	for _, choose := range options {
		choose(&chosen)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	id := newRunID()
	started := newRun(id, chosen.onText, func() { r.system.Root.Send(r.runs, run.Cancel{RunID: id}) })
	r.active.Add(1)
	unfollow := context.AfterFunc(ctx, started.Cancel)
	r.system.Root.Send(r.runs, run.Admit{
		RunID: id, Version: version, Scope: scope, Input: input,
		Follower: &follower{Run: started, ended: func() { unfollow(); r.active.Done() }},
	})
	return started, nil
}

// follower is a Run's own follower, and settles the runtime's accounts once.
type follower struct {
	*Run
	ended func()
}

// Ended implements [run.Follower].
func (f *follower) Ended(err error) {
	f.Run.Ended(err)
	f.ended()
}

func newRunID() string { return "run_" + strings.ToLower(rand.Text()) }

var (
	errNoModel = failure.New(failure.KindModelError, "this runtime was made without a model", nil)
	errClosed  = failure.New(failure.KindCancelled, "this runtime is closed", nil)
)

func noPoolSentence(definition spec.Spec) string {
	return fmt.Sprintf("the Spec %q names MCP servers, but this runtime was made without MCP, so it could never reach them", definition.Name)
}

func noHostToolSentence(name, tool string) string {
	return fmt.Sprintf("the Spec %q names the host tool %q, which this program has not registered", name, tool)
}
