package oauth

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/psych-systems/psych-go/secret"
)

// Token is what a token endpoint granted (RFC 6749 section 5.1).
type Token struct {
	// Access is fit for an Authorization field; never zero.
	Access secret.Text
	// Refresh is the refresh token; zero where none came, and one that was used for
	// this request then stays good (RFC 6749 section 6).
	Refresh secret.Text
	// ExpiresIn is how long Access lives from now; 0 where the server does not say.
	ExpiresIn time.Duration
	// Scopes are those granted; nil means those that were asked for.
	Scopes []string
}

// Exchange turns a code into a token (RFC 6749 section 4.1.3, RFC 7636 section 4.5).
// A code is good for one request: whatever the error is, it is not sent again.
func (c *Client) Exchange(
	ctx context.Context, server Server, client Identity, code, verifier, redirectURI, resource string,
) (Token, error) {
	form := url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {code},
		"code_verifier": {verifier},
		"redirect_uri":  {redirectURI},
	}
	return c.token(ctx, server, client, form, resource, secret.NewText(code), secret.NewText(verifier))
}

// Refresh turns a refresh token into a new token (RFC 6749 section 6). resource is
// the one of the grant, repeated; scopes may only narrow it, and none keeps it.
func (c *Client) Refresh(
	ctx context.Context, server Server, client Identity, refresh secret.Text, scopes []string, resource string,
) (Token, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh.Reveal()}}
	setScopes(form, scopes)
	return c.token(ctx, server, client, form, resource, refresh)
}

// ClientCredentials asks for a token of the client's own (RFC 6749 section 4.4).
func (c *Client) ClientCredentials(
	ctx context.Context, server Server, client Identity, scopes []string, resource string,
) (Token, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	setScopes(form, scopes)
	return c.token(ctx, server, client, form, resource)
}

func setScopes(form url.Values, scopes []string) {
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
}

// token sends a token request. secrets are those of the form.
func (c *Client) token(
	ctx context.Context, server Server, client Identity, form url.Values, resource string, secrets ...secret.Text,
) (Token, error) {
	const what = "the token endpoint"
	if resource = c.resource(resource); resource != "" {
		form.Set("resource", resource)
	}
	got, secrets, err := c.submit(ctx, what, server.TokenEndpoint, server, client, form, secrets)
	if err != nil {
		return Token{}, err
	}
	if document, ok := decode(got.body); !got.ok() || ok && document.text("error") != "" {
		return Token{}, got.refusal(what, server.TokenEndpoint, aboutGrant, secrets)
	}
	return readToken(got, server.TokenEndpoint)
}

// submit posts a form as a client. It returns every secret that went out.
func (c *Client) submit(
	ctx context.Context, what, where string, server Server, client Identity, form url.Values, secrets []secret.Text,
) (answer, []secret.Text, error) {
	if _, err := c.address(what, where); err != nil {
		return answer{}, nil, err
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	own, err := client.authenticate(server, form, header)
	if err != nil {
		return answer{}, nil, err
	}
	got, err := c.post(ctx, what, where, strings.NewReader(form.Encode()), header)
	return got, append(secrets, own...), err
}

// readToken checks a token response.
func readToken(got answer, where string) (Token, error) {
	const what = "the token endpoint"
	document, ok := decode(got.body)
	if !ok {
		return Token{}, temporary(nil, "%s at %s answered what is no JSON object", what, shown(where))
	}
	access, kind := document.text("access_token"), document.text("token_type")
	switch {
	case document.has("token_type") && !strings.EqualFold(kind, "bearer"):
		return Token{}, unusable("%s at %s granted a token of the type %q; only Bearer is used", what, shown(where), codeOf(kind, nil))
	case access == "":
		return Token{}, unusable("%s at %s answered without an access_token", what, shown(where))
	case !isVisible(access) || strings.Contains(access, " "):
		return Token{}, unusable("%s at %s granted a token that fits no header field", what, shown(where))
	}
	token := Token{Access: secret.NewText(access), ExpiresIn: document.lifetime("expires_in"), Scopes: scopeTokens(document.list("scope"))}
	if refresh := document.text("refresh_token"); refresh != "" {
		token.Refresh = secret.NewText(refresh)
	}
	return token, nil
}
