package psych

import (
	"context"
	"errors"
	"sync"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/offer"
	"github.com/psych-systems/psych-go/spec"
)

// Tools is what a Run of a Spec would be offered now.
type Tools struct {
	Servers []journal.OfferedServer `json:"servers"`
	// Tools is every tool that is known, the callable ones first; one that is not
	// callable names the plane that took it away.
	Tools []offer.Explained `json:"tools"`
}

// Tools resolves a Spec's version for a scope as the next turn of a Run would.
// An unreachable server is told in the result, optional or not. It fails as
// [Runtime.Register] does, with what resolving a credential or an address fails
// with, and with [failure.NameConflict].
func (r *Runtime) Tools(ctx context.Context, scope messages.Scope, version spec.Version) (Tools, error) {
	if err := r.Register(version); err != nil {
		return Tools{}, err
	}
	definition := version.Spec()
	servers := make([]offer.Server, len(definition.MCPServers))
	var asking sync.WaitGroup
	for i, server := range definition.MCPServers {
		asking.Go(func() {
			snapshot, err := r.snapshot(ctx, scope, server)
			servers[i] = offer.Server{
				Alias: server.Name, Snapshot: snapshot, Unreachable: err,
				Tenant: r.planes.Grant(scope.Tenant, server.Name), Spec: server.Grant(),
				Preload: server.Preload, Description: r.planes.Describe(scope, server.Name),
			}
		})
	}
	asking.Wait()
	for _, server := range servers {
		if server.Unreachable != nil && failure.KindOf(server.Unreachable) != failure.KindMcpServerUnreachable {
			return Tools{}, server.Unreachable
		}
	}
	resolved, err := offer.Resolve(nil, servers, r.hosts.Offered(definition.Tools), r.budget())
	if err != nil {
		return Tools{}, err
	}
	return Tools{Servers: resolved.Servers, Tools: resolved.Explain()}, nil
}

func (r *Runtime) budget() int {
	if r.options.MCP == nil {
		return 0
	}
	return r.options.MCP.BudgetChars
}

func (r *Runtime) snapshot(ctx context.Context, scope messages.Scope, server spec.Server) (*messages.Snapshot, error) {
	return r.catalogueAt(ctx, func() (*messages.Target, error) {
		return r.targets.Target(ctx, scope, server, "")
	})
}

// catalogueAt asks the connection of a key for its tools, and makes the key anew once
// where that is stale: its credential was rotated, or its grant consented to.
func (r *Runtime) catalogueAt(ctx context.Context, find func() (*messages.Target, error)) (*messages.Snapshot, error) {
	for rekeyed := false; ; rekeyed = true {
		target, err := find()
		if err != nil {
			return nil, err
		}
		snapshot, err := r.catalogue(ctx, target)
		if !errors.Is(err, messages.ErrStaleKey) || rekeyed {
			return snapshot, err
		}
	}
}

// catalogue asks a connection for its tools.
func (r *Runtime) catalogue(ctx context.Context, target *messages.Target) (*messages.Snapshot, error) {
	question := &messages.GetCatalogue{RequestId: newRunID(), Target: target}
	if deadline, ok := ctx.Deadline(); ok {
		question.DeadlineUnixMs = deadline.UnixMilli()
	}
	answer, err := ask[*messages.Catalogue](ctx, r, question)
	if err != nil {
		return nil, err
	}
	return answer.GetSnapshot(), answer.GetFailure().Err()
}
