package psych

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/connection"
	"github.com/psych-systems/psych-go/actors/tokenrefresh"
	"github.com/psych-systems/psych-go/grant"
	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/oauth"
	"github.com/psych-systems/psych-go/spec"
	"github.com/psych-systems/psych-go/tokenstore"
)

// AuthorizationRedirect is how a person is asked to authorize a server; see
// [MCP.Redirect].
type AuthorizationRedirect = grant.AuthorizationRedirect

// AuthorizationOverride is what an operator has decided for one server whose
// authorization does not keep to the specification.
type AuthorizationOverride = oauth.Override

// Grant is what an operator may see of an OAuth grant. It holds no secret.
type Grant struct {
	// State is none, acquiring, valid, refreshing, backing-off or
	// needs-authorization.
	State string
	// ValidUntil is the end of the present token; zero when it does not say, or there
	// is none.
	ValidUntil time.Time
	// Why is why there is no token, or why it could not be refreshed.
	Why    string
	Issuer string
	Scopes []string
}

func grantOf(status *messages.GrantStatus) *Grant {
	if status == nil {
		return nil
	}
	shown := &Grant{State: status.GetState(), Why: status.GetWhy(), Issuer: status.GetIssuer(), Scopes: status.GetScopes()}
	if until := status.GetValidUntilUnixMs(); until > 0 {
		shown.ValidUntil = time.UnixMilli(until)
	}
	return shown
}

// configurationOf is a Spec's OAuth settings as messages carry them, defaults
// written out.
func configurationOf(o *spec.OAuth) *messages.Grant {
	config := &messages.Grant{
		Type: orDefault(o.Grant, spec.GrantClientCredentials), ClientId: o.PreregisteredClientID,
		ClientSecretCredential: o.ClientSecretCredential, Issuer: o.Issuer, Scopes: o.Scopes,
		ClientIdMetadataUrl: o.CIMDURL, AllowRegistration: o.AllowDynamicRegistration == nil || *o.AllowDynamicRegistration,
		ApplicationType: orDefault(o.ApplicationType, "native"), ClientName: orDefault(o.ClientName, "psych"),
		RedirectUris: o.RedirectURIs,
	}
	if o.TokenEndpointAuthMethod != nil {
		config.TokenEndpointAuthMethod = *o.TokenEndpointAuthMethod
	}
	if o.PrivateKeyCredential != nil {
		config.PrivateKeyCredential = *o.PrivateKeyCredential
	}
	return config
}

// grants is what all grants of a process share.
type grants struct {
	store         tokenstore.Store
	registrations *grant.Registrations
	consents      *grant.Consents
	redirect      grant.AuthorizationRedirect
	// overrides is by canonical URL.
	overrides map[string]AuthorizationOverride
}

func newGrants(mcp MCP) (*grants, error) {
	made := &grants{
		store: mcp.TokenStore, registrations: grant.NewRegistrations(mcp.TokenStore), consents: grant.NewConsents(mcp.TokenStore),
		redirect: mcp.Redirect, overrides: map[string]AuthorizationOverride{},
	}
	for url, override := range mcp.AuthorizationOverrides {
		canonical, err := messages.CanonicalURL(url)
		if err != nil {
			return nil, err
		}
		made.overrides[canonical] = override
	}
	return made, nil
}

// keyed is what the sessions of one connection share with the owner of its grant:
// the tokens of that key, and of no other.
type keyed struct {
	*targets
	key messages.PoolKey

	once   sync.Once
	keeper *grant.Keeper
}

// keep returns the keeper of the key's grant. The configuration is the key's own,
// which the connection has checked.
func (k *keyed) keep(config *messages.Grant, server string) *grant.Keeper {
	k.once.Do(func() {
		override, overridden := k.grants.overrides[k.key.URL()]
		if overridden {
			k.logger.Warn("an operator's override is used for a server's authorization", zap.String("server", server),
				zap.Stringer("scope", k.key.Scope()), zap.Bool("assume_s256", override.AssumeS256),
				zap.Bool("resource", override.Resource != nil), zap.String("issuer", override.Issuer))
		}
		k.keeper = grant.NewKeeper(grant.Options{
			Key: k.key, Config: config, Server: server, HTTP: k.egress.Client(k.key.Scope().Tenant),
			Secrets: k.secrets, Store: k.grants.store, Registrations: k.grants.registrations, Consents: k.grants.consents,
			Redirect: k.grants.redirect, Override: override, Logger: k.logger,
		})
	})
	return k.keeper
}

// owner makes the actor that owns the key's grant.
func (k *keyed) owner(middleware []actor.ReceiverMiddleware) func(*messages.Grant, string) *actor.Props {
	return func(config *messages.Grant, server string) *actor.Props {
		return tokenrefresh.Props(tokenrefresh.Deps{
			Keeper:      keeping{k.keep(config, server)},
			Scopes:      scopesOf,
			Interactive: config.GetType() == spec.GrantAuthorizationCode, Reachable: k.grants.redirect != nil,
			Server: server, Logger: k.logger, Middleware: middleware,
		})
	}
}

func scopesOf(challenge []string) []string {
	bearer, _ := oauth.Bearer(challenge)
	return bearer.Scopes()
}

// Dial implements [connection.Dialer].
func (k *keyed) Dial(ctx context.Context, target *messages.Target) (connection.Session, error) {
	return k.open(ctx, target, k)
}

// token is the credential of one request.
func (k *keyed) token(target *messages.Target) func(context.Context, string) (mcpwire.Token, error) {
	if target.GetGrant() == nil {
		return k.authorize(k.key)
	}
	keeper := k.keep(target.GetGrant(), target.GetServer())
	return func(ctx context.Context, _ string) (mcpwire.Token, error) {
		value, version, err := keeper.Value(ctx)
		return mcpwire.Token{Value: value, Version: version}, err
	}
}

func (k *keyed) accepted(target *messages.Target) func(uint64) {
	if target.GetGrant() == nil {
		return nil
	}
	return k.keep(target.GetGrant(), target.GetServer()).Accept
}

// keeping is a keeper as the owner of a grant uses it.
type keeping struct{ *grant.Keeper }

var _ tokenrefresh.Keeper = keeping{}

// Restore implements [tokenrefresh.Keeper].
func (k keeping) Restore(ctx context.Context) (tokenrefresh.Token, error) {
	token, err := k.Keeper.Restore(ctx)
	return tokenrefresh.Token(token), err
}

// Renew implements [tokenrefresh.Keeper].
func (k keeping) Renew(ctx context.Context, have uint64, refusal tokenrefresh.Refusal) (tokenrefresh.Token, error) {
	token, err := k.Keeper.Renew(ctx, have, grant.Refusal(refusal))
	return tokenrefresh.Token(token), err
}

// Obtain implements [tokenrefresh.Keeper].
func (k keeping) Obtain(ctx context.Context, wanted []string, refusal tokenrefresh.Refusal, person bool) (tokenrefresh.Token, error) {
	token, err := k.Keeper.Obtain(ctx, wanted, grant.Refusal(refusal), person)
	return tokenrefresh.Token(token), err
}
