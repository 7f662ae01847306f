package grant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/oauth"
)

// Obtain gets a token by the whole of an authorization: discovery, the client's
// identity, the grant. Scopes are wanted besides the Spec's; where neither they nor
// the challenge names any, those that the resource's metadata lists are asked for
// (MCP, "Scope Selection Strategy"). With person it may ask one, for which it
// returns [messages.ErrStaleKey] when the person has consented: the grant goes on
// under the key of that consent.
func (k *Keeper) Obtain(ctx context.Context, wanted []string, refusal Refusal, person bool) (Token, error) {
	if k.interactive() {
		if moved, err := k.moved(ctx); moved || err != nil {
			return Token{}, err
		}
		if !person {
			return Token{}, failure.New(failure.KindAuthorizationRequired,
				fmt.Sprintf("the server %q needs a person's authorization first", k.Server), nil)
		}
	}
	server, resource, err := k.discover(ctx, challengeOf(refusal))
	if err != nil {
		return Token{}, err
	}
	if len(wanted) == 0 {
		wanted = resource.Scopes
	}
	scopes := union(wanted, k.Config.GetScopes())
	if k.interactive() {
		return Token{}, k.askPerson(ctx, server, resource, scopes)
	}
	return k.obtainAsClient(ctx, server, resource, scopes)
}

func challengeOf(refusal Refusal) oauth.Challenge {
	challenge, _ := oauth.Bearer(refusal.Challenge)
	return challenge
}

// union is the scopes of both, sorted.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// discover finds the authorization server, and what the server says of itself as a
// resource.
func (k *Keeper) discover(ctx context.Context, challenge oauth.Challenge) (oauth.Server, oauth.ProtectedResource, error) {
	accept := k.Config.GetIssuer()
	resource, absent, err := k.steps.DiscoverResource(ctx, challenge)
	if err != nil {
		return oauth.Server{}, resource, err
	}
	if absent {
		server, err := k.steps.LegacyServer(ctx, accept)
		return server, oauth.ProtectedResource{Resource: k.Key.URL()}, err
	}
	issuer, err := oauth.PickServer(resource, accept)
	if err != nil {
		return oauth.Server{}, resource, err
	}
	server, err := k.steps.DiscoverServer(ctx, issuer, accept)
	return server, resource, err
}

// obtainAsClient gets a token by the client's own credentials (RFC 6749 section
// 4.4). A client that the authorization server has forgotten is registered again,
// once.
func (k *Keeper) obtainAsClient(ctx context.Context, server oauth.Server, resource oauth.ProtectedResource, scopes []string) (Token, error) {
	for again := false; ; again = true {
		client, registered, err := k.identity(ctx, server, nil)
		if err != nil {
			return Token{}, err
		}
		token, err := k.steps.ClientCredentials(ctx, server, client, scopes, resource.Resource)
		if _, forgotten := errors.AsType[*oauth.ClientForgotten](err); forgotten && registered && !again {
			if err := k.Registrations.forget(ctx, k.Key.Scope().Tenant, server, k.registration(nil), client.ID); err != nil {
				return Token{}, k.unstored(err)
			}
			continue
		}
		if err != nil {
			return Token{}, err
		}
		next := k.granted(server, client, registered, nil, resource.Resource, scopes, token)
		before, err := k.before(ctx, server)
		if err != nil {
			return Token{}, err
		}
		return k.save(ctx, next, before)
	}
}

// granted is the record of a grant that was just given.
func (k *Keeper) granted(server oauth.Server, client oauth.Identity, registered bool, redirectURIs []string, resource string, scopes []string, token oauth.Token) *record {
	given := &record{
		server: server, client: client, registered: registered, redirectURIs: redirectURIs, resource: resource, asked: scopes,
		secretName: k.Config.GetClientSecretCredential(), keyName: k.Config.GetPrivateKeyCredential(),
	}
	given.take(token, time.Now())
	return given
}

// before is the stored grant that a new one takes the place of; nil for none.
func (k *Keeper) before(ctx context.Context, server oauth.Server) (*record, error) {
	stored, err := k.load(ctx, keyOf(k.Key, server.Issuer))
	if err != nil {
		return nil, k.unstored(err)
	}
	if stored == nil {
		return k.present.Load(), nil
	}
	return stored, nil
}

// identity is who the client is to an authorization server: its metadata document
// where that is taken, else what was registered beforehand, else what is registered
// now (MCP, "Client Registration Approaches").
func (k *Keeper) identity(ctx context.Context, server oauth.Server, redirectURIs []string) (client oauth.Identity, registered bool, err error) {
	clientSecret, key, err := credentials(ctx, k.Secrets, k.Key.Scope(), k.Config.GetClientSecretCredential(), k.Config.GetPrivateKeyCredential())
	if err != nil {
		return client, false, err
	}
	asked := k.Config.GetTokenEndpointAuthMethod()
	switch {
	case k.Config.GetClientIdMetadataUrl() != "" && server.ClientIDMetadataDocuments:
		method, err := oauth.AuthMethod(asked, false, !key.IsZero(), server)
		return oauth.Identity{ID: k.Config.GetClientIdMetadataUrl(), Key: key, Method: method}, false, err
	case k.Config.GetClientId() != "":
		if server.Issuer != k.Config.GetIssuer() {
			return client, false, failure.New(failure.KindAuthorizationRequired, fmt.Sprintf(
				"the client of the server %q is registered with %s, and the authorization server is %s", k.Server, k.Config.GetIssuer(), server.Issuer), nil)
		}
		method, err := oauth.AuthMethod(asked, !clientSecret.IsZero(), !key.IsZero(), server)
		return oauth.Identity{ID: k.Config.GetClientId(), Secret: clientSecret, Key: key, Method: method}, false, err
	case k.Config.GetAllowRegistration() && server.RegistrationEndpoint != "":
		client, err := k.Registrations.client(ctx, k.steps, k.Key.Scope().Tenant, server, k.registration(redirectURIs))
		return client, true, err
	default:
		return client, false, failure.New(failure.KindAuthorizationRequired, fmt.Sprintf(
			"the client of the server %q is unknown to %s, which offers no registration that the Spec allows", k.Server, server.Issuer), nil)
	}
}

// registration is what is asked for where a client has to be registered.
func (k *Keeper) registration(redirectURIs []string) oauth.Registration {
	asked := oauth.Registration{
		Name: k.Config.GetClientName(), ApplicationType: k.Config.GetApplicationType(),
		GrantTypes: []string{clientCredentials}, AuthMethod: k.Config.GetTokenEndpointAuthMethod(),
	}
	if k.interactive() {
		asked.RedirectURIs = redirectURIs
		asked.GrantTypes = []string{authorizationCode, "refresh_token"}
	}
	return asked
}

const (
	// offlineAccess is asked for where it is offered, for the sake of a refresh token.
	offlineAccess = "offline_access"
	// maxStrays bounds the callbacks of one flow that do not belong to it.
	maxStrays = 16
)

// askPerson runs one flow of the authorization code grant, with PKCE. Its end, when
// it ends well, is [messages.ErrStaleKey].
func (k *Keeper) askPerson(ctx context.Context, server oauth.Server, resource oauth.ProtectedResource, scopes []string) (outcome error) {
	if slices.Contains(server.ScopesSupported, offlineAccess) {
		scopes = union(scopes, []string{offlineAccess})
	}
	until, _ := ctx.Deadline()
	redirection, err := k.Redirect.Begin(ctx, Authorization{
		Scope: k.Key.Scope(), Server: k.Server, URL: k.Key.URL(), Issuer: server.Issuer,
		RedirectURIs: k.Config.GetRedirectUris(), Until: until,
	})
	if err != nil {
		return k.unasked(err)
	}
	defer func() {
		told := outcome
		if errors.Is(outcome, messages.ErrStaleKey) {
			told = nil
		}
		redirection.Finish(told)
	}()
	uris := []string{redirection.RedirectURI()}
	client, registered, err := k.identity(ctx, server, uris)
	if err != nil {
		return err
	}
	flow := flow{state: oauth.NewState(), verifier: oauth.NewVerifier(), redirectURI: uris[0]}
	code, err := k.consent(ctx, redirection, server, client, flow, resource.Resource, scopes)
	if err == nil {
		var token oauth.Token
		if token, err = k.steps.Exchange(ctx, server, client, code, flow.verifier, flow.redirectURI, resource.Resource); err == nil {
			return k.moveOn(ctx, k.granted(server, client, registered, uris, resource.Resource, scopes, token))
		}
	}
	// A page that never returned, or a client that is not known: it is registered anew
	// by the next flow.
	_, forgotten := errors.AsType[*oauth.ClientForgotten](err)
	if registered && (forgotten || ctx.Err() != nil) {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
		defer cancel()
		if err := k.Registrations.forget(clean, k.Key.Scope().Tenant, server, k.registration(uris), client.ID); err != nil {
			k.Logger.Info("a registration was not forgotten", zap.String("server", k.Server), zap.Error(err))
		}
	}
	return k.unasked(err)
}

// storeTime bounds what is written to the store after a flow's own time is up.
const storeTime = 5 * time.Second

// flow is what belongs to one flow alone and is never used again.
type flow struct{ state, verifier, redirectURI string }

// consent shows the page and waits for the code.
func (k *Keeper) consent(ctx context.Context, redirection Redirection, server oauth.Server, client oauth.Identity, f flow, resource string, scopes []string) (string, error) {
	page, err := k.steps.AuthorizationURL(server, oauth.AuthorizationRequest{
		ClientID: client.ID, RedirectURI: f.redirectURI, State: f.state, Verifier: f.verifier, Resource: resource, Scopes: scopes,
	})
	if err != nil {
		return "", err
	}
	if err := redirection.Visit(ctx, page); err != nil {
		return "", err
	}
	for range maxStrays {
		callback, err := redirection.Callback(ctx)
		if err != nil {
			return "", err
		}
		if callback.Get("state") != f.state {
			k.Logger.Warn("a callback that does not belong to the flow was passed over", zap.String("server", k.Server))
			continue
		}
		return oauth.ReadCallback(server, f.state, callback)
	}
	return "", failure.New(failure.KindAuthorizationRequired,
		fmt.Sprintf("too many callbacks came that do not belong to the authorization of the server %q", k.Server), nil)
}

// unasked is why no person has consented, in a sentence.
func (k *Keeper) unasked(err error) error {
	if known, ok := errors.AsType[failure.Failure](err); ok && failure.KindOf(err) != failure.KindInternal {
		return known
	}
	reason := "could not be asked for"
	if errors.Is(err, context.DeadlineExceeded) {
		reason = "was not given in time; it can be begun again"
	}
	return failure.New(failure.KindAuthorizationRequired,
		fmt.Sprintf("the authorization for the server %q %s", k.Server, reason), err)
}

// moveOn stores the grant of a new consent under the key of that consent, and has
// that consent be the latest.
func (k *Keeper) moveOn(ctx context.Context, next *record) error {
	moved := proto.CloneOf(k.Config)
	moved.Consent = newConsent()
	key, err := messages.NewPoolKey(k.Key.Scope(), k.Key.URL(), k.Key.Transport(), moved.Identity())
	if err != nil {
		return err
	}
	value, err := next.encode()
	if err != nil {
		return k.unstored(err)
	}
	if _, err := k.persist(ctx, keyOf(key, next.server.Issuer), 0, value); err != nil {
		return k.unstored(err)
	}
	if err := k.Consents.renew(ctx, consentKey(k.Key.Scope(), k.Key.URL(), k.Key.Transport(), k.Config), moved.Consent); err != nil {
		return k.unstored(err)
	}
	if former := k.present.Swap(nil); former != nil {
		if err := k.Store.Delete(ctx, keyOf(k.Key, former.server.Issuer), 0); err != nil {
			k.Logger.Info("a former grant was not deleted", zap.String("server", k.Server), zap.Error(err))
		}
	}
	return messages.ErrStaleKey
}
