package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/narrow"
	"github.com/psych-systems/psych-go/offer"
	"github.com/psych-systems/psych-go/spec"
)

// Deps is what all Runs of a process share.
type Deps struct {
	Model model.Port
	Store journal.Store
	// Pool reaches the connections; nil in a process without one, which admits no
	// Spec that names servers.
	Pool    *actor.PID
	Targets Targets
	Hosts   Hosts
	Planes  Planes
	// Approvals decides which calls are held back.
	Approvals approval.Rules
	// BudgetChars is up to how many characters of tools a server is disclosed
	// whole.
	BudgetChars int
	// TrustAnnotations lets a call be issued once more when it was cut off and its
	// tool's annotations say that this is harmless.
	TrustAnnotations bool
	// CallTimeout bounds one call of a server's tool; 0 leaves it to the Run's
	// deadline.
	CallTimeout time.Duration
	Clock       func() time.Time
	Logger      *zap.Logger
	// Middleware is around the Receive of each Run's actor.
	Middleware []actor.ReceiverMiddleware
}

// Targets makes pool keys.
type Targets interface {
	// Target returns where a Spec's server is reached in a scope: its key, which
	// resolves the credential freshly. Session is the id of the Run for a server
	// that wants its own session.
	Target(ctx context.Context, scope messages.Scope, server spec.Server, runID string) (*messages.Target, error)
}

// Hosts runs the embedding program's tools.
type Hosts interface {
	// Offered returns the tools of these names, in their order.
	Offered(names []string) []offer.HostTool
	// Call runs a tool. Its arguments fit its schema.
	Call(ctx context.Context, scope messages.Scope, name string, arguments json.RawMessage) (HostResult, error)
}

// HostResult is what a host tool returned.
type HostResult struct {
	// Text is what the model reads.
	Text string
	// Structured is the value as JSON; nil when the tool returned text.
	Structured json.RawMessage
}

// Planes is the deployment's word on tenants, looked up in memory at each use.
type Planes interface {
	// Grant is what a tenant permits of a server.
	Grant(tenant, alias string) narrow.Grant
	// Describe is the deployment's line on what a server is for; "" for none.
	Describe(scope messages.Scope, alias string) string
}

// rules is what the machine looks up in memory while it decides.
type rules struct {
	tenant           func(alias string) narrow.Grant
	describe         func(alias string) string
	approvals        approval.Rules
	hosts            []offer.HostTool
	budget           int
	trustAnnotations bool
}

func (d Deps) rules(scope messages.Scope, definition spec.Spec) rules {
	return rules{
		tenant:    func(alias string) narrow.Grant { return d.Planes.Grant(scope.Tenant, alias) },
		describe:  func(alias string) string { return d.Planes.Describe(scope, alias) },
		approvals: d.Approvals, hosts: d.Hosts.Offered(definition.Tools),
		budget: d.BudgetChars, trustAnnotations: d.TrustAnnotations,
	}
}
