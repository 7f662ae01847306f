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
	// grants is what all OAuth grants share.
	grants *grants
	// lists is the tool lists that servers call public, once each.
	lists mcpwire.ToolLists
	// sessions counts those that are being opened or stand open, or whose end the
	// server is being told.
	sessions sync.WaitGroup
}

// Target implements [run.Targets].
func (t *targets) Target(ctx context.Context, scope messages.Scope, server spec.Server, runID string) (*messages.Target, error) {
	target, err := t.find(ctx, scope, server)
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

// find makes the key of a server, whatever the tenant says of it.
func (t *targets) find(ctx context.Context, scope messages.Scope, server spec.Server) (*messages.Target, error) {
	canonical, err := messages.CanonicalURL(server.URL)
	if err != nil {
		return nil, err
	}
	if err := t.egress.Judge(scope.Tenant, server.URL); err != nil {
		return nil, err
	}
	target := &messages.Target{Server: server.Name, Credential: server.Credential}
	identity := ""
	switch {
	case server.OAuth != nil:
		if target.Grant, err = t.grant(ctx, scope, canonical, server); err != nil {
			return nil, err
		}
		identity = target.GetGrant().Identity()
	case server.Credential != "":
		resolved, err := t.secrets.Resolve(ctx, scope, server.Credential)
		if err != nil {
			return nil, err
		}
		identity = resolved.Identity
	}
	key, err := messages.NewPoolKey(scope, server.URL, server.Transport, identity)
	if err != nil {
		return nil, err
	}
	target.Key = key.Message()
	return target, nil
}

// grant is the configuration of a server's grant and the consent that it stands on.
func (t *targets) grant(ctx context.Context, scope messages.Scope, canonical string, server spec.Server) (*messages.Grant, error) {
	config := configurationOf(server.OAuth)
	if config.GetType() != spec.GrantAuthorizationCode {
		return config, nil
	}
	consent, err := t.grants.consents.Latest(ctx, scope, canonical, server.Transport, config)
	if err != nil {
		return nil, failure.New(failure.KindMcpServerUnreachable, fmt.Sprintf(
			"the grant for the server %q cannot be read in the token store", server.Name), err)
	}
	config.Consent = consent
	return config, nil
}

// open opens a session behind a key, with the tokens of that key.
func (t *targets) open(ctx context.Context, target *messages.Target, tokens *keyed) (connection.Session, error) {
	t.sessions.Add(1)
	session, err := t.dial(ctx, target, tokens)
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

func (t *targets) dial(ctx context.Context, target *messages.Target, tokens *keyed) (*mcpwire.Session, error) {
	key, err := messages.PoolKeyOf(target.GetKey())
	if err != nil {
		return nil, err
	}
	session, err := mcpwire.Connect(ctx, mcpwire.Options{
		URL: key.URL(), Transport: key.Transport(), Server: target.GetServer(),
		Client: t.egress.Client(key.Scope().Tenant), Authorize: tokens.token(target), Accepted: tokens.accepted(target),
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
func (t *targets) authorize(key messages.PoolKey) func(context.Context, string) (mcpwire.Token, error) {
	return func(ctx context.Context, credential string) (mcpwire.Token, error) {
		if credential == "" {
			if key.CredentialIdentity() != "" {
				return mcpwire.Token{}, messages.ErrStaleKey
			}
			return mcpwire.Token{}, nil
		}
		resolved, err := t.secrets.Resolve(ctx, key.Scope(), credential)
		if err != nil {
			return mcpwire.Token{}, err
		}
		if resolved.Identity != key.CredentialIdentity() {
			return mcpwire.Token{}, messages.ErrStaleKey
		}
		return mcpwire.Token{Value: resolved.Value}, nil
	}
}

// noSecrets resolves nothing.
type noSecrets struct{}

func (noSecrets) Resolve(_ context.Context, scope messages.Scope, name string) (secret.Credential, error) {
	return secret.Credential{}, failure.New(failure.KindCredentialNotFound,
		fmt.Sprintf("no credential named %q is known for %s", name, scope), nil)
}
