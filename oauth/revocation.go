package oauth

import (
	"context"
	"net/url"

	"github.com/psych-systems/psych-go/secret"
)

// Revoke takes a token back (RFC 7009). hint is access_token, refresh_token or "". A
// token that the server does not know is revoked already. A server without a
// revocation endpoint is [Unusable] for it.
func (c *Client) Revoke(ctx context.Context, server Server, client Identity, token secret.Text, hint string) error {
	const what = "the revocation endpoint"
	if server.RevocationEndpoint == "" {
		return unusable("the authorization server %s has no revocation_endpoint", identifier(server.Issuer))
	}
	form := url.Values{"token": {token.Reveal()}}
	if hint != "" {
		form.Set("token_type_hint", hint)
	}
	got, secrets, err := c.submit(ctx, what, server.RevocationEndpoint, server, client, form, []secret.Text{token})
	if err != nil || got.ok() {
		return err
	}
	return got.refusal(what, server.RevocationEndpoint, aboutGrant, secrets)
}
