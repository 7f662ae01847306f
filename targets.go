package psych

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/connection"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/spec"
)

// targets makes pool keys and opens the sessions behind them. It is the only
// place where a key meets a credential's value.
type targets struct {
	secrets secret.Resolver
	planes  *planes
	egress  *egress.Egress
	logger  *zap.Logger
	// revisions is what servers negotiated before, so that an old one is not asked
	// for the newest again at each connect.
	revisions revisions
	// lists is the tool lists that servers call public, once each.
	lists mcpwire.ToolLists
	// sessions counts those that are being opened or stand open, or whose end the
	// server is being told.
	sessions sync.WaitGroup
}

// Target implements [run.Targets].
func (t *targets) Target(ctx context.Context, scope messages.Scope, server spec.Server, runID string) (*messages.Target, error) {
	if server.OAuth != nil {
		return nil, failure.New(failure.KindMcpServerUnreachable, fmt.Sprintf(
			"the server %q is configured for OAuth, which this runtime does not authorize", server.Name), nil)
	}
	target, err := t.find(ctx, scope, server.Name, server.URL, server.Transport, server.Credential)
	if err != nil {
		return nil, err
	}
	if err := t.planes.admit(scope.Tenant, server.Name, target.GetKey().GetUrl()); err != nil {
		return nil, err
	}
	if server.Session == spec.SessionRun {
		target.Session = runID
	}
	return target, nil
}

// find makes the key of a server that no Spec needs to name.
func (t *targets) find(ctx context.Context, scope messages.Scope, alias, url string, transport messages.Transport, credential string) (*messages.Target, error) {
	if _, err := messages.CanonicalURL(url); err != nil {
		return nil, err
	}
	if err := t.egress.Judge(scope.Tenant, url); err != nil {
		return nil, err
	}
	identity := ""
	if credential != "" {
		resolved, err := t.secrets.Resolve(ctx, scope, credential)
		if err != nil {
			return nil, err
		}
		identity = resolved.Identity
	}
	key, err := messages.NewPoolKey(scope, url, transport, identity)
	if err != nil {
		return nil, err
	}
	return &messages.Target{Key: key.Message(), Server: alias, Credential: credential}, nil
}

// Dial implements [connection.Dialer].
func (t *targets) Dial(ctx context.Context, target *messages.Target) (connection.Session, error) {
	t.sessions.Add(1)
	session, err := t.dial(ctx, target)
	if err != nil {
		t.sessions.Done()
		return nil, err
	}
	return &countedSession{Session: session, closed: t.sessions.Done}, nil
}

// countedSession is a session that counts until it is closed, which happens once.
type countedSession struct {
	connection.Session
	closed func()
}

// Close implements [connection.Session].
func (s *countedSession) Close() {
	defer s.closed()
	s.Session.Close()
}

func (t *targets) dial(ctx context.Context, target *messages.Target) (*mcpwire.Session, error) {
	key, err := messages.PoolKeyOf(target.GetKey())
	if err != nil {
		return nil, err
	}
	session, err := mcpwire.Connect(ctx, mcpwire.Options{
		URL: key.URL(), Transport: key.Transport(), Server: target.GetServer(),
		Client: t.egress.Client(key.Scope().Tenant), Authorize: t.authorize(key),
		MaxResponseBytes: t.egress.MaxResponseBytes, Logger: t.logger,
		Lists: &t.lists, KnownVersion: t.revisions.of(key),
	}, target.GetCredential())
	if err != nil {
		return nil, err
	}
	t.revisions.note(key, session.ProtocolVersion())
	return session, nil
}

// authorize returns what reads a connection's credential at each request. The
// value is handed out only while it is still the one that the key was made
// from: a token can therefore not leave under another key.
func (t *targets) authorize(key messages.PoolKey) func(context.Context, string) (secret.Text, error) {
	return func(ctx context.Context, credential string) (secret.Text, error) {
		if credential == "" {
			if key.CredentialIdentity() != "" {
				return secret.Text{}, messages.ErrStaleKey
			}
			return secret.Text{}, nil
		}
		resolved, err := t.secrets.Resolve(ctx, key.Scope(), credential)
		if err != nil {
			return secret.Text{}, err
		}
		if resolved.Identity != key.CredentialIdentity() {
			return secret.Text{}, messages.ErrStaleKey
		}
		return resolved.Value, nil
	}
}

// noSecrets resolves nothing.
type noSecrets struct{}

func (noSecrets) Resolve(_ context.Context, scope messages.Scope, name string) (secret.Credential, error) {
	return secret.Credential{}, failure.New(failure.KindCredentialNotFound,
		fmt.Sprintf("no credential named %q is known for %s", name, scope), nil)
}
