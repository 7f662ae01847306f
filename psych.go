package psych

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/catalog"
	"github.com/psych-systems/psych-go/actors/connection"
	"github.com/psych-systems/psych-go/actors/pool"
	"github.com/psych-systems/psych-go/actors/run"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/journal/memory"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/spec"
)

// Runtime runs agents for many tenants. Make one per process with [New]; it is
// safe for concurrent use, and [Runtime.Close] ends everything that it owns.
type Runtime struct {
	options Options
	system  *actor.ActorSystem
	egress  *egress.Egress
	planes  *planes
	targets *targets
	hosts   hosts
	store   journal.Store
	// pool is nil in a runtime without MCP.
	pool *actor.PID
	runs *actor.PID

	mu     sync.Mutex
	closed bool
	// active counts Runs that have not ended; Close waits for it.
	active sync.WaitGroup
}

// New makes a runtime. It fails when an option cannot be used, and has then
// started nothing.
func New(options Options) (*Runtime, error) {
	options = options.withDefaults()
	hosts, err := newHosts(options.Tools)
	if err != nil {
		return nil, err
	}
	if err := options.Approvals.Check(); err != nil {
		return nil, err
	}
	r := &Runtime{options: options, hosts: hosts, store: options.Store}
	if r.store == nil {
		r.store = memory.New(0)
	}
	mcp := MCP{}.withDefaults()
	if options.MCP != nil {
		mcp = *options.MCP
	}
	if r.planes, err = newPlanes(options.Tenants, mcp.Describe); err != nil {
		return nil, err
	}
	r.egress, err = egress.New(egress.Options{
		Policy: options.Egress, Tenants: tenantPolicies(options.Tenants),
		MaxResponseBytes: mcp.MaxResponseBytes, RootCAs: options.RootCAs, Logger: options.Logger,
	})
	if err != nil {
		return nil, err
	}
	port, err := connectModel(options.Model, r.egress, options.Logger)
	if err != nil {
		r.egress.Close()
		return nil, err
	}
	r.targets = &targets{secrets: mcp.Secrets, planes: r.planes, egress: r.egress, logger: options.Logger}
	if r.targets.grants, err = newGrants(mcp); err != nil {
		r.egress.Close()
		return nil, err
	}
	r.spawn(mcp, port)
	return r, nil
}

func connectModel(connect Model, out *egress.Egress, logger *zap.Logger) (model.Port, error) {
	if connect == nil {
		return noModel{}, nil
	}
	return connect(out, logger)
}

// spawn starts the two top actors.
func (r *Runtime) spawn(mcp MCP, port model.Port) {
	r.system = supervision.NewSystem(r.options.Logger)
	if r.options.MCP != nil {
		r.pool = r.system.Root.Spawn(pool.Props(pool.Deps{
			Connection:     func(key messages.PoolKey) *actor.Props { return r.connection(mcp, key) },
			MaxConnections: mcp.MaxConnections, Logger: r.options.Logger, Middleware: r.options.middleware.pool,
		}))
	}
	r.runs = r.system.Root.Spawn(run.SupervisorProps(run.Deps{
		Model: port, Store: r.store, Pool: r.pool, Targets: r.targets, Hosts: r.hosts, Planes: r.planes,
		Approvals: r.options.Approvals, BudgetChars: mcp.BudgetChars,
		TrustAnnotations: r.options.TrustAnnotations, CallTimeout: mcp.CallTimeout, Clock: time.Now, Logger: r.options.Logger,
		Middleware: r.options.middleware.run,
	}))
}

func (r *Runtime) connection(mcp MCP, key messages.PoolKey) *actor.Props {
	tokens := &keyed{targets: r.targets, key: key}
	return connection.Props(key, connection.Deps{
		Dialer: tokens, Grant: tokens.owner(r.options.middleware.tokenrefresh),
		Catalog: func(source connection.Source) *actor.Props {
			return catalog.Props(catalog.Deps{
				Source: source, TTL: mcp.CatalogueTTL, Logger: r.options.Logger,
				Middleware: r.options.middleware.catalog,
			})
		},
		ConnectTimeout: mcp.ConnectTimeout, IdleClose: mcp.IdleClose,
		Logger: r.options.Logger, Middleware: r.options.middleware.connection,
	})
}

// Register checks that this runtime can run a Spec's version. [Runtime.Start] does
// so too; a program that registers first learns of a mistake before the first
// input. It fails with [failure.SpecInvalid] when the Spec names servers and the
// runtime has no pool, or names a host tool that the program did not register, and
// with [failure.Cancelled] on a closed runtime.
func (r *Runtime) Register(version spec.Version) error {
	if r.isClosed() {
		return errClosed
	}
	definition := version.Spec()
	if len(definition.MCPServers) > 0 && r.pool == nil {
		return failure.New(failure.KindSpecInvalid, noPoolSentence(definition), nil)
	}
	for _, name := range definition.Tools {
		if _, known := r.hosts[name]; !known {
			return failure.New(failure.KindSpecInvalid, noHostToolSentence(definition.Name, name), nil)
		}
	}
	return nil
}

// SetTenants replaces all tenants' planes. Runs see it at their next turn and at
// their next call. It fails, and changes nothing, when a URL or pattern cannot
// be used.
func (r *Runtime) SetTenants(tenants map[string]Tenant) error {
	prepared, err := prepare(tenants)
	if err != nil {
		return err
	}
	if err := r.egress.SetTenants(tenantPolicies(tenants)); err != nil {
		return err
	}
	r.planes.current.Store(&prepared)
	return nil
}

// SetMaxResponseBytes changes how large one answer of a server may be, from the
// next answer on. It fails outside 1 KiB to 1 GiB.
func (r *Runtime) SetMaxResponseBytes(limit int64) error { return r.egress.SetMaxResponseBytes(limit) }

// Close cancels all Runs and waits for their ends to be recorded, then closes all
// connections and waits until their servers have been told; for both no longer than
// until ctx ends, which is its error. A closed runtime starts nothing more.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	already := r.closed
	r.closed = true
	r.mu.Unlock()
	if already {
		return nil
	}
	r.system.Root.Send(r.runs, run.CancelAll{})
	err := await(ctx, &r.active)
	for _, top := range []*actor.PID{r.runs, r.pool} {
		if top != nil {
			_ = r.system.Root.StopFuture(top).Wait()
		}
	}
	r.system.Shutdown()
	err = errors.Join(err, await(ctx, &r.targets.sessions))
	r.egress.Close()
	return err
}

// await waits until what is counted has ended, or for ctx.
func await(ctx context.Context, counted *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() {
		counted.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func tenantPolicies(tenants map[string]Tenant) map[string]egress.Policy {
	policies := make(map[string]egress.Policy, len(tenants))
	for name, tenant := range tenants {
		policies[name] = egress.Policy{DenyHosts: tenant.DenyHosts}
	}
	return policies
}
