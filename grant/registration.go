package grant

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/psych-systems/psych-go/oauth"
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/tokenstore"
)

// Registrations keeps the clients that were registered dynamically, so that each is
// registered once and not at each connect. It is safe for concurrent use.
type Registrations struct {
	store tokenstore.Store
	// flights has one registration at a time for one key in this process.
	flights singleflight.Group
}

// NewRegistrations returns the registrations of a store.
func NewRegistrations(store tokenstore.Store) *Registrations { return &Registrations{store: store} }

// registered is a client as it is stored.
type registered struct {
	ID      string    `json:"id"`
	Secret  string    `json:"secret,omitempty"`
	Method  string    `json:"method"`
	Expires time.Time `json:"expires,omitzero"`
}

// expiresEarly is how long before its secret's end a client is registered anew.
const expiresEarly = time.Minute

// client is the tenant's client at an authorization server, registered where there
// is none or its secret has run out.
func (r *Registrations) client(ctx context.Context, steps *oauth.Client, tenant string, server oauth.Server, asked oauth.Registration) (oauth.Identity, error) {
	key := registrationKey(tenant, server.Issuer, asked)
	known, err := r.load(ctx, key)
	if err != nil || known != nil {
		return identityOf(known), err
	}
	// The flight is everybody's: it does not end with the one who began it.
	flight := r.flights.DoChan(key.Owner.Tenant+"\n"+key.Name, func() (any, error) {
		return r.register(context.WithoutCancel(ctx), steps, key, server, asked)
	})
	select {
	case landed := <-flight:
		if landed.Err != nil {
			return oauth.Identity{}, landed.Err
		}
		return landed.Val.(oauth.Identity), nil
	case <-ctx.Done():
		return oauth.Identity{}, ctx.Err()
	}
}

// load is the stored client; nil where there is none that can be used.
func (r *Registrations) load(ctx context.Context, key tokenstore.Key) (*registered, error) {
	stored, err := r.store.Load(ctx, key)
	if err != nil || stored.Version == 0 {
		return nil, err
	}
	var known registered
	if err := json.Unmarshal(stored.Value, &known); err != nil || known.ID == "" {
		return nil, r.store.Delete(ctx, key, stored.Version)
	}
	if !known.Expires.IsZero() && time.Until(known.Expires) < expiresEarly {
		return nil, r.store.Delete(ctx, key, stored.Version)
	}
	return &known, nil
}

func identityOf(known *registered) oauth.Identity {
	if known == nil {
		return oauth.Identity{}
	}
	return oauth.Identity{ID: known.ID, Secret: secret.NewText(known.Secret), Method: known.Method, SecretExpires: known.Expires}
}

func (r *Registrations) register(ctx context.Context, steps *oauth.Client, key tokenstore.Key, server oauth.Server, asked oauth.Registration) (oauth.Identity, error) {
	if known, err := r.load(ctx, key); err != nil || known != nil {
		return identityOf(known), err
	}
	made, err := steps.Register(ctx, server, asked)
	if err != nil {
		return oauth.Identity{}, err
	}
	value, err := json.Marshal(registered{ID: made.ID, Secret: made.Secret.Reveal(), Method: made.Method, Expires: made.SecretExpires})
	if err != nil {
		return oauth.Identity{}, err
	}
	if _, err := r.store.Swap(ctx, key, 0, value); err != nil {
		if _, lost := errors.AsType[*tokenstore.Conflict](err); !lost {
			return oauth.Identity{}, err
		}
		// Another process was first: its client is everybody's.
		if known, err := r.load(ctx, key); err != nil || known != nil {
			return identityOf(known), err
		}
	}
	return made, nil
}

// forget has the client registered anew that an authorization server has forgotten,
// unless somebody has done so already.
func (r *Registrations) forget(ctx context.Context, tenant string, server oauth.Server, asked oauth.Registration, id string) error {
	key := registrationKey(tenant, server.Issuer, asked)
	stored, err := r.store.Load(ctx, key)
	if err != nil || stored.Version == 0 {
		return err
	}
	var known registered
	if json.Unmarshal(stored.Value, &known) == nil && known.ID != id {
		return nil
	}
	err = r.store.Delete(ctx, key, stored.Version)
	if _, lost := errors.AsType[*tokenstore.Conflict](err); lost {
		return nil
	}
	return err
}

func registrationKey(tenant, issuer string, asked oauth.Registration) tokenstore.Key {
	uris := make([]string, len(asked.RedirectURIs))
	for i, uri := range asked.RedirectURIs {
		uris[i] = withoutLoopbackPort(uri)
	}
	slices.Sort(uris)
	return tokenstore.Key{
		Owner: tokenstore.Owner{Tenant: tenant},
		Name: clientPrefix + digest(issuer, strings.Join(uris, "\n"), asked.ApplicationType,
			strings.Join(asked.GrantTypes, " "), asked.AuthMethod, asked.Name),
	}
}

// withoutLoopbackPort is a redirect URI without the port of a loopback address,
// which an authorization server lets differ from flow to flow (RFC 8252 section
// 7.3).
func withoutLoopbackPort(uri string) string {
	parsed, err := url.Parse(uri)
	if err != nil || parsed.Scheme != "http" {
		return uri
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	if err != nil || !address.IsLoopback() {
		return uri
	}
	parsed.Host = parsed.Hostname()
	if address.Is6() {
		parsed.Host = "[" + parsed.Host + "]"
	}
	return parsed.String()
}
