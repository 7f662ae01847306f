package mcptest

import (
	"crypto"
	"slices"
	"time"
)

// Authority is what an [AuthorizationServer] is like. Its zero value is an ordinary
// one: PKCE with S256, iss in its answers, resources bound to tokens, registration,
// refresh tokens that are rotated.
type Authority struct {
	// Path is that of the issuer, such as "/tenant", "/tenant/" or "/"; "" for none. The
	// endpoints are at the origin all the same.
	Path string
	// TLS makes it speak https, with the certificate of [TLS].
	TLS bool
	// Metadata changes the metadata document before it is served.
	Metadata func(document map[string]any)
	// Clients are those that are known from the beginning.
	Clients []Client
	// Registration changes the answer to a registration; the client is kept as the
	// answer says.
	Registration func(asked, answer map[string]any)
	// DocumentClients has a client's id be the URL of its metadata document, which is
	// fetched.
	DocumentClients bool
	// Callback changes the query with which a person is sent back: see [Deny] for one
	// that does.
	Callback func(query map[string]string)
	// WithoutIss leaves iss out of what a person is sent back with, and out of the
	// metadata.
	WithoutIss bool
	// Lifetime is that of an access token, in whole seconds; 0 is an hour, and negative
	// is one that does not end and is not told of.
	Lifetime time.Duration
	// Grant is which of the scopes that are asked for are granted; nil is all.
	Grant func(asked []string) []string
	// Resource judges the resource of a request for a token or for consent; "" is none.
	// nil wants one.
	Resource func(resource string, scopes []string) bool
	// WithoutRotation keeps a refresh token good after its use, and has none follow.
	WithoutRotation bool
	// WithoutRefreshTokens gives out none.
	WithoutRefreshTokens bool
}

// Client is a client of an [AuthorizationServer].
type Client struct {
	ID, Secret string
	// Method is the one way in which it authenticates; "" is private_key_jwt with a
	// Key, client_secret_basic with a Secret, and none else.
	Method string
	// Key is its public key, for private_key_jwt.
	Key crypto.PublicKey
	// RedirectURIs are where persons may be sent back to. The port of a loopback
	// address is free (RFC 8252 section 7.3).
	RedirectURIs []string
}

func (c Client) method() string {
	switch {
	case c.Method != "":
		return c.Method
	case c.Key != nil:
		return "private_key_jwt"
	case c.Secret != "":
		return "client_secret_basic"
	default:
		return "none"
	}
}

// Deny is an [Authority.Callback] that refuses (RFC 6749 section 4.1.2.1).
func Deny(code, description string) func(query map[string]string) {
	return func(query map[string]string) {
		delete(query, "code")
		query["error"], query["error_description"] = code, description
	}
}

// Only is an [Authority.Grant] of the scopes named.
func Only(scopes ...string) func(asked []string) []string {
	return func(asked []string) []string {
		return slices.DeleteFunc(slices.Clone(asked), func(scope string) bool { return !slices.Contains(scopes, scope) })
	}
}

// lifetime is how long an access token lives; 0 is for ever.
func (a Authority) lifetime() time.Duration {
	switch {
	case a.Lifetime == 0:
		return time.Hour
	case a.Lifetime < 0:
		return 0
	default:
		return a.Lifetime
	}
}

func (a Authority) granted(asked []string) []string {
	if a.Grant == nil {
		return asked
	}
	return a.Grant(asked)
}

func (a Authority) takes(resource string, scopes []string) bool {
	if a.Resource == nil {
		return resource != ""
	}
	return a.Resource(resource, scopes)
}
