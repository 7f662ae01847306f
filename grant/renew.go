package grant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/oauth"
	"github.com/psych-systems/psych-go/secret"
)

// Renew gets a token after the one of that version, without a person: what another
// owner has stored meanwhile, else by the refresh token, or once more by the
// client's own credentials. It fails with failure.AuthorizationRequired where the
// grant has ended, with messages.ErrStaleKey where it goes on under another key, and
// with failure.McpServerUnreachable where trying again may help.
func (k *Keeper) Renew(ctx context.Context, have uint64, refusal Refusal) (Token, error) {
	present := k.present.Load()
	if present == nil {
		return k.Obtain(ctx, nil, refusal, false)
	}
	stored, err := k.load(ctx, keyOf(k.Key, present.server.Issuer))
	switch {
	case err != nil:
		return Token{}, k.unstored(err)
	case stored == nil && k.interactive():
		k.drop()
		return Token{}, k.forgotten(ctx)
	case stored == nil:
		k.drop()
		return k.Obtain(ctx, present.asked, refusal, false)
	case stored.version != have && !stored.spent(time.Now()):
		return k.hold(stored), nil
	}
	if refusal.Status == http.StatusUnauthorized {
		if elsewhere, issuer := k.elsewhere(ctx, refusal, stored); elsewhere {
			if k.interactive() {
				return Token{}, k.end(ctx, stored, failure.New(failure.KindAuthorizationRequired, fmt.Sprintf(
					"the server %q is authorized by %s now, and a person has to authorize it there", k.Server, issuer), nil))
			}
			return k.Obtain(ctx, stored.asked, refusal, false)
		}
	}
	return k.refresh(ctx, stored)
}

// elsewhere says whether the server names another authorization server than the
// grant's. Where it cannot be asked, it is taken to be the same.
func (k *Keeper) elsewhere(ctx context.Context, refusal Refusal, r *record) (bool, string) {
	server, _, err := k.discover(ctx, challengeOf(refusal))
	if err != nil {
		return false, ""
	}
	return server.Issuer != r.server.Issuer, server.Issuer
}

// refresh asks the grant's own authorization server.
func (k *Keeper) refresh(ctx context.Context, before *record) (Token, error) {
	client, err := k.resolved(ctx, before)
	if err != nil {
		return Token{}, err
	}
	var token oauth.Token
	if k.interactive() {
		if before.refresh.IsZero() {
			return Token{}, k.end(ctx, before, failure.New(failure.KindAuthorizationRequired, fmt.Sprintf(
				"the token for the server %q has run out and came without a refresh token, so a person has to authorize it again", k.Server), nil))
		}
		token, err = k.steps.Refresh(ctx, before.server, client, before.refresh, nil, before.resource)
	} else {
		token, err = k.steps.ClientCredentials(ctx, before.server, client, before.asked, before.resource)
	}
	if err != nil {
		return k.unrefreshed(ctx, before, err)
	}
	next := *before
	next.take(token, time.Now())
	return k.save(ctx, &next, before)
}

// unrefreshed decides what becomes of a grant that was not refreshed.
func (k *Keeper) unrefreshed(ctx context.Context, before *record, why error) (Token, error) {
	ended, isEnded := errors.AsType[*oauth.GrantEnded](why)
	forgotten, isForgotten := errors.AsType[*oauth.ClientForgotten](why)
	if !isEnded && !isForgotten {
		return Token{}, why
	}
	// Another owner may have been first with the same refresh token.
	stored, err := k.load(ctx, keyOf(k.Key, before.server.Issuer))
	switch {
	case err != nil:
		return Token{}, k.unstored(err)
	case stored != nil && stored.version != before.version:
		return k.hold(stored), nil
	case isForgotten && before.registered:
		if err := k.Registrations.forget(ctx, k.Key.Scope().Tenant, before.server, k.registration(before.redirectURIs), before.client.ID); err != nil {
			return Token{}, k.unstored(err)
		}
		if !k.interactive() {
			return k.Obtain(ctx, before.asked, Refusal{}, false)
		}
		return Token{}, k.end(ctx, before, forgotten)
	case isForgotten:
		return Token{}, forgotten
	case !k.interactive():
		return Token{}, ended
	default:
		return Token{}, k.end(ctx, before, ended)
	}
}

// end gives a grant up that can only be had again by a person.
func (k *Keeper) end(ctx context.Context, r *record, why error) error {
	k.drop()
	if err := k.Store.Delete(ctx, keyOf(k.Key, r.server.Issuer), r.version); err != nil {
		return k.unstored(err)
	}
	return why
}

// take makes a record that of a token which came in answer to it.
func (r *record) take(token oauth.Token, now time.Time) {
	r.access, r.obtained, r.expires = token.Access, now, time.Time{}
	if token.ExpiresIn > 0 {
		r.expires = now.Add(token.ExpiresIn)
	}
	if !token.Refresh.IsZero() {
		r.refresh = token.Refresh
	}
	if token.Scopes != nil {
		r.scopes = token.Scopes
	} else if r.scopes == nil {
		r.scopes = r.asked
	}
}

// resolved is the grant's client with its secrets, which are resolved anew.
func (k *Keeper) resolved(ctx context.Context, r *record) (oauth.Identity, error) {
	return r.identified(ctx, k.Secrets, k.Key.Scope())
}

func (r *record) identified(ctx context.Context, secrets secret.Resolver, scope messages.Scope) (oauth.Identity, error) {
	client := r.client
	if r.registered || client.Method == methodNone {
		return client, nil
	}
	var err error
	client.Secret, client.Key, err = credentials(ctx, secrets, scope, r.secretName, r.keyName)
	return client, err
}

// methodNone is how a public client authenticates: not at all.
const methodNone = "none"

// credentials resolves a client's secret and key by their names; zero for no name.
func credentials(ctx context.Context, secrets secret.Resolver, scope messages.Scope, secretName, keyName string) (clientSecret, key secret.Text, err error) {
	for _, named := range []struct {
		name string
		to   *secret.Text
	}{{secretName, &clientSecret}, {keyName, &key}} {
		if named.name == "" {
			continue
		}
		resolved, err := secrets.Resolve(ctx, scope, named.name)
		if err != nil {
			return secret.Text{}, secret.Text{}, err
		}
		*named.to = resolved.Value
	}
	return clientSecret, key, nil
}

// revoke gives tokens back where the authorization server takes them (RFC 7009), as
// well as it goes.
func (k *Keeper) revoke(ctx context.Context, r *record) {
	client, err := k.resolved(ctx, r)
	if err == nil {
		err = revoke(ctx, k.steps, r, client)
	}
	if err != nil {
		k.Logger.Info("a grant was not revoked", zap.String("server", k.Server), zap.Error(err))
	}
}
