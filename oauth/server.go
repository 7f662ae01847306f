package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/psych-systems/psych-go/failure"
)

const (
	serverWellKnown = "/.well-known/oauth-authorization-server"
	openIDWellKnown = "/.well-known/openid-configuration"
)

// Server is the metadata of an authorization server (RFC 8414, OpenID Connect
// Discovery 1.0), checked. A field that the document leaves out is zero.
type Server struct {
	// Issuer is the document's own: the key of whatever is kept for this server, and
	// what an authorization response is compared with (RFC 9207).
	Issuer string
	// AuthorizationEndpoint is where a person consents; "" where there is no such grant.
	AuthorizationEndpoint string
	// TokenEndpoint is never "".
	TokenEndpoint string
	// RegistrationEndpoint is that of RFC 7591; "" where clients cannot register.
	RegistrationEndpoint string
	// RevocationEndpoint is that of RFC 7009; "" where tokens cannot be revoked.
	RevocationEndpoint string

	ScopesSupported, GrantTypesSupported []string
	// TokenEndpointAuthMethods are the ways in which a client may authenticate; nil
	// means client_secret_basic (RFC 8414 section 2).
	TokenEndpointAuthMethods []string
	// TokenEndpointSigningAlgs are the algorithms of private_key_jwt; nil means any.
	TokenEndpointSigningAlgs []string
	// CodeChallengeMethods are those of PKCE; nil means that PKCE is not advertised.
	CodeChallengeMethods []string
	// ClientIDMetadataDocuments says that a client's id may be the URL of its metadata.
	ClientIDMetadataDocuments bool
	// IssInResponse says that every authorization response holds iss (RFC 9207).
	IssInResponse bool
}

// DiscoverServer finds the metadata of an authorization server by its issuer, at
// each location of MCP 2026-07-28, "Authorization Server Metadata Discovery", in
// that order. A location whose answer cannot be used does not keep the next one
// from being asked; what is told in the end is the weightiest of what went wrong.
//
// The document's issuer must be identical to the one asked for (RFC 8414 section
// 3.3). accept is the one that the Spec names, which is accepted as well; "" for none.
func (c *Client) DiscoverServer(ctx context.Context, issuer, accept string) (Server, error) {
	return c.discoverServer(ctx, issuer, accept, nil)
}

func (c *Client) discoverServer(ctx context.Context, issuer, accept string, header http.Header) (Server, error) {
	const what = "the issuer of the authorization server"
	target, err := c.address(what, issuer)
	if err != nil {
		return Server{}, err
	}
	if target.RawQuery != "" || target.ForceQuery {
		return Server{}, unusable("%s has a query, which is refused", what)
	}
	var worst error
	for _, candidate := range serverCandidates(target) {
		server, err := c.serverAt(ctx, candidate, issuer, accept, header)
		if err == nil {
			return server, nil
		}
		if worst == nil || weight(err) > weight(worst) {
			worst = err
		}
		if ctx.Err() != nil || failure.KindOf(err) == failure.KindEgressDenied {
			break
		}
	}
	if _, missing := errors.AsType[*noMetadata](worst); missing {
		return Server{}, &Unusable{detail{"the authorization server " + identifier(issuer) + " publishes no metadata",
			failure.KindMcpProtocolError, worst}}
	}
	return Server{}, worst
}

// serverCandidates are the locations of an issuer's metadata. One terminating slash
// is left out before a well-known part is inserted or appended (RFC 8414 section 3.1).
func serverCandidates(issuer *url.URL) []string {
	origin := issuer.Scheme + "://" + issuer.Host
	path := strings.TrimSuffix(issuer.EscapedPath(), "/")
	if path == "" {
		return []string{origin + serverWellKnown, origin + openIDWellKnown}
	}
	return []string{origin + serverWellKnown + path, origin + openIDWellKnown + path, origin + path + openIDWellKnown}
}

// noMetadata is a location that holds nothing.
type noMetadata struct{ status int }

func (e *noMetadata) Error() string { return http.StatusText(e.status) }

// refusedDocument is a document that was read and may not be used: it tells more
// than whatever the other locations answered.
type refusedDocument struct{ *Unusable }

func (e refusedDocument) Unwrap() error { return e.Unusable }

// weight orders what went wrong at several locations.
func weight(err error) int {
	if _, refused := errors.AsType[refusedDocument](err); refused {
		return 3
	}
	if _, again := errors.AsType[*Temporary](err); again {
		return 2
	}
	if _, missing := errors.AsType[*noMetadata](err); missing {
		return 0
	}
	return 1
}

func (c *Client) serverAt(ctx context.Context, where, issuer, accept string, header http.Header) (Server, error) {
	const what = "the authorization server's metadata"
	got, err := c.get(ctx, what, where, header)
	switch {
	case err != nil:
		return Server{}, err
	case got.gone():
		return Server{}, &noMetadata{got.status}
	case !got.ok():
		return Server{}, got.noDocument(what, where)
	}
	document, err := got.document(what, where)
	if err != nil {
		return Server{}, err
	}
	server, err := c.readServer(document, where, issuer, accept)
	if refused, ok := errors.AsType[*Unusable](err); ok {
		return Server{}, refusedDocument{refused}
	}
	return server, err
}

// readServer checks a document.
func (c *Client) readServer(document members, where, issuer, accept string) (Server, error) {
	told := document.text("issuer")
	switch {
	case c.Override.Issuer != "":
		told = c.Override.Issuer
	case told == "":
		return Server{}, unusable("the authorization server's metadata at %s names no issuer", shown(where))
	case told != issuer && (accept == "" || told != accept):
		return Server{}, unusable("the authorization server's metadata at %s is that of the issuer %s and not of %s",
			shown(where), identifier(told), identifier(issuer))
	}
	server := Server{
		Issuer:                    told,
		AuthorizationEndpoint:     document.text("authorization_endpoint"),
		TokenEndpoint:             document.text("token_endpoint"),
		RegistrationEndpoint:      document.text("registration_endpoint"),
		RevocationEndpoint:        document.text("revocation_endpoint"),
		ScopesSupported:           scopeTokens(document.list("scopes_supported")),
		GrantTypesSupported:       document.list("grant_types_supported"),
		TokenEndpointAuthMethods:  document.list("token_endpoint_auth_methods_supported"),
		TokenEndpointSigningAlgs:  document.list("token_endpoint_auth_signing_alg_values_supported"),
		CodeChallengeMethods:      document.list("code_challenge_methods_supported"),
		ClientIDMetadataDocuments: document.flag("client_id_metadata_document_supported"),
		IssInResponse:             document.flag("authorization_response_iss_parameter_supported"),
	}
	if server.TokenEndpoint == "" {
		return Server{}, unusable("the authorization server's metadata at %s names no token_endpoint", shown(where))
	}
	for _, endpoint := range []struct{ name, url string }{
		{"authorization_endpoint", server.AuthorizationEndpoint},
		{"token_endpoint", server.TokenEndpoint},
		{"registration_endpoint", server.RegistrationEndpoint},
		{"revocation_endpoint", server.RevocationEndpoint},
	} {
		if endpoint.url == "" {
			continue
		}
		if _, err := c.address("the authorization server's "+endpoint.name, endpoint.url); err != nil {
			return Server{}, err
		}
	}
	return server, nil
}

// offersS256 reports whether PKCE with S256 is advertised.
func (s Server) offersS256() bool { return slices.Contains(s.CodeChallengeMethods, methodS256) }
