package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// LegacyServer finds the authorization server of an MCP server that has no
// resource metadata, as 2025-03-26 did ("Server Metadata Discovery"): the metadata
// at the MCP server's origin, else that revision's default endpoints there, which
// imply PKCE with S256.
//
// Only call it where [Client.DiscoverResource] found absence. accept is the issuer
// that the Spec names, "" for none; default endpoints belong to no other issuer
// than the origin itself.
func (c *Client) LegacyServer(ctx context.Context, accept string) (Server, error) {
	own, err := url.Parse(c.Resource)
	if err != nil || own.Host == "" {
		return Server{}, unusable("the MCP server's own URL cannot be read")
	}
	origin := own.Scheme + "://" + own.Host
	server, err := c.discoverServer(ctx, origin, accept, http.Header{"Mcp-Protocol-Version": {"2025-03-26"}})
	if _, missing := errors.AsType[*noMetadata](err); !missing {
		return server, err
	}
	if accept != "" && accept != origin && accept != origin+"/" {
		return Server{}, unusable("the MCP server says nothing of its authorization server, and the Spec names %s", identifier(accept))
	}
	return Server{
		Issuer:                origin,
		AuthorizationEndpoint: origin + "/authorize",
		TokenEndpoint:         origin + "/token",
		RegistrationEndpoint:  origin + "/register",
		CodeChallengeMethods:  []string{methodS256},
	}, nil
}
