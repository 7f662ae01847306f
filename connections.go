package psych

import (
	"context"
	"errors"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/grant"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/tokenstore"
)

// Connection is what an operator may see of a connection. It holds no secret.
type Connection struct {
	// ID is the digest of the pool key.
	ID        string
	Scope     messages.Scope
	Server    string
	URL       string
	Transport messages.Transport
	// State is idle, connecting, ready, backing-off or closed.
	State string
	// Revision is the negotiated protocol revision; "" before the first.
	Revision string
	Tools    int
	// CatalogueAge is how old the tool list is and CatalogueTTL how long it is
	// fresh; both 0 without one.
	CatalogueAge, CatalogueTTL time.Duration
	Etag                       string
	// Breaker is closed, half-open or open.
	Breaker                     string
	LastError                   string
	CallsInFlight, CallsWaiting int
	Restarts                    int
	// Grant is the OAuth grant that it uses; nil for a server without OAuth.
	Grant *Grant
}

// Connections lists a tenant's connections, or all of them for "".
func (r *Runtime) Connections(ctx context.Context, tenant string) ([]Connection, error) {
	answer, err := ask[*messages.Connections](ctx, r, &messages.ListConnections{RequestId: newRunID(), Tenant: tenant})
	if err != nil {
		return nil, err
	}
	if err := answer.GetFailure().Err(); err != nil {
		return nil, err
	}
	connections := make([]Connection, len(answer.GetConnections()))
	for i, status := range answer.GetConnections() {
		connections[i] = connectionOf(status, time.Now())
	}
	return connections, nil
}

func connectionOf(status *messages.ConnectionStatus, now time.Time) Connection {
	key := status.GetKey()
	shown := Connection{
		ID: status.GetId(), Scope: messages.Scope{Tenant: key.GetTenant(), Principal: key.GetPrincipal()},
		Server: status.GetServer(), URL: key.GetUrl(), Transport: messages.Transport(key.GetTransport()),
		State: status.GetState(), Revision: status.GetProtocolVersion(), Tools: int(status.GetToolCount()),
		CatalogueTTL: time.Duration(status.GetCatalogueTtlMs()) * time.Millisecond,
		Etag:         status.GetEtag(), Breaker: status.GetBreaker(), LastError: status.GetLastError(),
		CallsInFlight: int(status.GetCallsInFlight()), CallsWaiting: int(status.GetCallsWaiting()),
		Restarts: int(status.GetRestarts()), Grant: grantOf(status.GetGrant()),
	}
	if fetched := status.GetCatalogueFetchedUnixMs(); fetched > 0 {
		shown.CatalogueAge = now.Sub(time.UnixMilli(fetched))
	}
	return shown
}

// Disconnect closes a scope's connections to a server and reports how many there
// were. An empty URL means all servers, an empty principal all principals of the
// tenant. Calls in flight are settled. OAuth grants are forgotten, consents with
// them, and revoked where their authorization server takes that (RFC 7009). The next
// use connects anew.
func (r *Runtime) Disconnect(ctx context.Context, scope messages.Scope, serverURL string) (int, error) {
	question := &messages.Disconnect{RequestId: newRunID(), Tenant: scope.Tenant, Principal: scope.Principal}
	if serverURL != "" {
		canonical, err := messages.CanonicalURL(serverURL)
		if err != nil {
			return 0, err
		}
		question.Url = canonical
	}
	// Before, so that no connection which is made meanwhile takes them up; and after,
	// for what the connections stored while they ended.
	before, err := r.forget(ctx, question)
	if err != nil {
		return 0, err
	}
	answer, err := ask[*messages.Disconnected](ctx, r, question)
	if err != nil {
		return 0, err
	}
	after, err := r.forget(ctx, question)
	for _, forgotten := range append(before, after...) {
		forgotten.Revoke(ctx, r.egress.Client(forgotten.Tenant()), r.targets.secrets, r.options.Logger)
	}
	return int(answer.GetClosed()), errors.Join(err, answer.GetFailure().Err())
}

// forget deletes what is stored of the grants that a question names.
func (r *Runtime) forget(ctx context.Context, question *messages.Disconnect) ([]grant.Forgotten, error) {
	forgotten, err := grant.Forget(ctx, r.targets.grants.store, r.targets.grants.consents, tokenstore.Owner{
		Tenant: question.GetTenant(), Principal: question.GetPrincipal(), URL: question.GetUrl(),
	})
	if err != nil {
		return nil, failure.New(failure.KindInternal, "the grants could not be forgotten in the token store", err)
	}
	return forgotten, nil
}
