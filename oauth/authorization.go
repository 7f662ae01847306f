package oauth

import (
	"crypto/rand"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
)

// methodS256 is the one code challenge method in use (RFC 7636 section 4.2).
const methodS256 = "S256"

// AuthorizationRequest is what a person is asked to consent to. State and Verifier
// are made for one request and used for no other.
type AuthorizationRequest struct {
	ClientID, RedirectURI, State, Verifier string
	// Resource is the metadata's resource identifier; "" sends none.
	Resource string
	// Scopes are those asked for; none leaves them to the server.
	Scopes []string
}

// NewVerifier returns a code verifier of 256 random bits (RFC 7636 section 4.1).
func NewVerifier() string { return oauth2.GenerateVerifier() }

// NewState returns a state of 256 random bits (RFC 6749 section 10.12).
func NewState() string {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails; the process ends where no randomness is
	return base64.RawURLEncoding.EncodeToString(random)
}

// AuthorizationURL is the page to send a person to (RFC 6749 section 4.1.1 with RFC
// 7636 and RFC 8707). It refuses a server that does not advertise PKCE with S256,
// unless [Override.AssumeS256] is set, and a page that is neither https nor on
// loopback.
func (c *Client) AuthorizationURL(server Server, r AuthorizationRequest) (string, error) {
	const what = "the authorization server's authorization_endpoint"
	if server.AuthorizationEndpoint == "" {
		return "", unauthorized("the authorization server %s has no authorization_endpoint, so nobody can consent there", identifier(server.Issuer))
	}
	page, err := c.address(what, server.AuthorizationEndpoint)
	if err != nil {
		return "", err
	}
	if page.Scheme == "http" && !isLoopback(page.Hostname()) {
		return "", unusable("%s is %s; a person is sent to https, or to this machine", what, bare(page))
	}
	if !server.offersS256() && !c.Override.AssumeS256 {
		named := "is missing in its metadata"
		if len(server.CodeChallengeMethods) > 0 {
			named = "names " + excerpt(strings.Join(server.CodeChallengeMethods, ", "), maxServerText)
		}
		return "", unusable("the authorization server %s does not say that it supports PKCE with S256: code_challenge_methods_supported %s",
			identifier(server.Issuer), named)
	}
	if r.ClientID == "" || r.State == "" || r.Verifier == "" || r.RedirectURI == "" {
		return "", unauthorized("an authorization request needs a client id, a redirect URI, a state and a code verifier")
	}
	// What the endpoint's own query holds stays (RFC 6749 section 3.1).
	query, err := url.ParseQuery(page.RawQuery)
	if err != nil {
		return "", unusable("%s has a query that cannot be read", what)
	}
	for _, name := range []string{"scope", "resource", "response_mode", "request", "request_uri"} {
		query.Del(name)
	}
	query.Set("response_type", "code")
	query.Set("client_id", r.ClientID)
	query.Set("redirect_uri", r.RedirectURI)
	query.Set("state", r.State)
	query.Set("code_challenge", oauth2.S256ChallengeFromVerifier(r.Verifier))
	query.Set("code_challenge_method", methodS256)
	if len(r.Scopes) > 0 {
		query.Set("scope", strings.Join(r.Scopes, " "))
	}
	if slices.Contains(r.Scopes, "offline_access") {
		// Without it the scope is ignored, and no refresh token comes (OpenID Connect Core
		// 1.0 section 11).
		query.Set("prompt", "consent")
	}
	if resource := c.resource(r.Resource); resource != "" {
		query.Set("resource", resource)
	}
	page.RawQuery = query.Encode()
	return page.String(), nil
}
