package grant

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/oauth"
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/tokenstore"
)

// revokeTime bounds the revocation of one grant.
const revokeTime = 10 * time.Second

// Forgotten is a grant that was forgotten and can still be revoked.
type Forgotten struct {
	owner  tokenstore.Owner
	record *record
}

// Forget deletes what is stored of an owner's grants and consents, and returns the
// grants. An empty principal is all of the tenant's, an empty URL all servers.
// Clients that were registered stay: they are the tenant's, and no grant.
func Forget(ctx context.Context, store tokenstore.Store, consents *Consents, owner tokenstore.Owner) ([]Forgotten, error) {
	keys, err := store.List(ctx, owner)
	if err != nil {
		return nil, err
	}
	var all []Forgotten
	var wrong error
	for _, key := range keys {
		switch {
		case isGrant(key):
			stored, err := store.Load(ctx, key)
			if err == nil && stored.Version != 0 {
				if held, err := decode(stored); err == nil {
					all = append(all, Forgotten{key.Owner, held})
				}
			}
		case strings.HasPrefix(key.Name, consentPrefix):
			consents.forget(key)
		default:
			continue
		}
		wrong = errors.Join(wrong, store.Delete(ctx, key, 0))
	}
	return all, wrong
}

// Tenant is whose grant it was.
func (f Forgotten) Tenant() string { return f.owner.Tenant }

// Revoke gives a forgotten grant's tokens back where its authorization server takes
// them (RFC 7009 section 2). What cannot be revoked ends by itself.
func (f Forgotten) Revoke(ctx context.Context, out *http.Client, secrets secret.Resolver, logger *zap.Logger) {
	ctx, cancel := context.WithTimeout(ctx, revokeTime)
	defer cancel()
	scope := messages.Scope{Tenant: f.owner.Tenant, Principal: f.owner.Principal}
	client, err := f.record.identified(ctx, secrets, scope)
	if err == nil {
		err = revoke(ctx, &oauth.Client{HTTP: out, Resource: f.owner.URL, Logger: logger}, f.record, client)
	}
	if err != nil {
		logger.Info("a grant was not revoked", zap.Stringer("scope", scope), zap.Error(err))
	}
}

// revoke gives both tokens back, the refresh token first: it is worth more.
func revoke(ctx context.Context, steps *oauth.Client, r *record, client oauth.Identity) error {
	if r.server.RevocationEndpoint == "" {
		return nil
	}
	var wrong error
	if !r.refresh.IsZero() {
		wrong = steps.Revoke(ctx, r.server, client, r.refresh, "refresh_token")
	}
	return errors.Join(wrong, steps.Revoke(ctx, r.server, client, r.access, "access_token"))
}
