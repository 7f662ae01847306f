package mcptest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Owner is for whom a token was issued.
type Owner struct {
	Client string
	// Subject is the person's name, or the client's id where it acts for itself.
	Subject string
	// Grant is the grant type that the token began with.
	Grant    string
	Resource string
	Scopes   []string
}

// family is all tokens that come of one grant.
type family struct {
	owner Owner
	// dead says that its refresh tokens are.
	dead bool
}

type accessToken struct {
	family *family
	// scopes may be fewer than the grant's.
	scopes  []string
	ends    time.Time // zero for never
	revoked bool
}

type refreshToken struct {
	family *family
	used   bool
}

// Owner is for whom an access token was issued, good or not any more; false for one
// that this server never issued.
func (a *AuthorizationServer) Owner(token string) (Owner, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	issued, found := a.access[token]
	if !found {
		return Owner{}, false
	}
	owner := issued.family.owner
	owner.Scopes = issued.scopes
	return owner, true
}

// good is the owner of a token that a resource server may take.
func (a *AuthorizationServer) good(token string) (Owner, bool) {
	owner, found := a.Owner(token)
	a.mu.Lock()
	defer a.mu.Unlock()
	issued := a.access[token]
	return owner, found && !issued.revoked && (issued.ends.IsZero() || time.Now().Before(issued.ends))
}

// RevokeTokens revokes every access token, whatever their lifetimes say.
func (a *AuthorizationServer) RevokeTokens() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, issued := range a.access {
		issued.revoked = true
	}
}

// RevokeGrants ends every refresh token; access tokens live on until their end.
func (a *AuthorizationServer) RevokeGrants() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, issued := range a.refresh {
		issued.family.dead = true
	}
}

// token answers as the token endpoint (RFC 6749 section 3.2).
func (a *AuthorizationServer) token(x *Exchange) reply {
	form := x.Request.Form()
	// A code is used by whoever shows it, whatever becomes of the request.
	code := a.useCode(form.Get("code"))
	if name := repeated(form); name != "" {
		return refused(http.StatusBadRequest, "invalid_request", name+" is there twice")
	}
	client, refusal := a.authenticated(x, form)
	if refusal != nil {
		return *refusal
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		return a.exchangeCode(client, code, form)
	case "refresh_token":
		return a.refreshGrant(client, form)
	case "client_credentials":
		return a.ownGrant(client, form)
	default:
		return refused(http.StatusBadRequest, "unsupported_grant_type", "")
	}
}

// useCode marks a code as used. A second use revokes what came of the first (RFC 6749
// section 4.1.2).
func (a *AuthorizationServer) useCode(text string) *authorizationCode {
	a.mu.Lock()
	defer a.mu.Unlock()
	code, found := a.codes[text]
	if !found {
		return nil
	}
	if code.used {
		if code.family != nil {
			a.revokeFamily(code.family)
		}
		return nil
	}
	code.used = true
	return code
}

// revokeFamily ends all tokens of a grant. Caller holds mu.
func (a *AuthorizationServer) revokeFamily(f *family) {
	f.dead = true
	for _, issued := range a.access {
		if issued.family == f {
			issued.revoked = true
		}
	}
}

func (a *AuthorizationServer) exchangeCode(client Client, code *authorizationCode, form url.Values) reply {
	challenge := sha256.Sum256([]byte(form.Get("code_verifier")))
	switch {
	case code == nil:
		return refused(http.StatusBadRequest, "invalid_grant", "the code is not known or was used")
	case code.owner.Client != client.ID:
		return refused(http.StatusBadRequest, "invalid_grant", "the code is another client's")
	case code.redirectURI != form.Get("redirect_uri"):
		return refused(http.StatusBadRequest, "invalid_grant", "the redirect URI is another one")
	case base64.RawURLEncoding.EncodeToString(challenge[:]) != code.challenge:
		return refused(http.StatusBadRequest, "invalid_grant", "the code verifier does not fit")
	case !slices.Equal(form["resource"], some(code.owner.Resource)):
		return refused(http.StatusBadRequest, "invalid_target", "the resource is not that of the authorization")
	}
	made := &family{owner: code.owner}
	a.mu.Lock()
	defer a.mu.Unlock()
	code.family = made
	return a.issue(made, code.owner.Scopes, !a.authority.WithoutRefreshTokens)
}

func (a *AuthorizationServer) refreshGrant(client Client, form url.Values) reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	token, found := a.refresh[form.Get("refresh_token")]
	switch {
	case !found || token.family.owner.Client != client.ID:
		return refused(http.StatusBadRequest, "invalid_grant", "the refresh token is not known")
	case token.used:
		a.revokeFamily(token.family) // RFC 9700 section 4.14.2
		return refused(http.StatusBadRequest, "invalid_grant", "the refresh token was used before")
	case token.family.dead:
		return refused(http.StatusBadRequest, "invalid_grant", "the grant was revoked")
	case !slices.Equal(form["resource"], some(token.family.owner.Resource)):
		return refused(http.StatusBadRequest, "invalid_target", "the resource is not that of the grant")
	}
	scopes := token.family.owner.Scopes
	if asked := strings.Fields(form.Get("scope")); len(asked) > 0 {
		for _, one := range asked {
			if !slices.Contains(scopes, one) {
				return refused(http.StatusBadRequest, "invalid_scope", "a refresh adds no scope")
			}
		}
		scopes = asked
	}
	token.used = !a.authority.WithoutRotation
	return a.issue(token.family, scopes, token.used)
}

// some is a list of what is there.
func some(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

func (a *AuthorizationServer) ownGrant(client Client, form url.Values) reply {
	authority, scopes := a.present(), strings.Fields(form.Get("scope"))
	switch {
	case client.method() == "none":
		return refused(http.StatusBadRequest, "unauthorized_client", "the client authenticates with nothing")
	case len(form["resource"]) > 1 || !authority.takes(form.Get("resource"), scopes):
		return refused(http.StatusBadRequest, "invalid_target", "the resource is missing or not served")
	}
	scopes = authority.granted(scopes)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.issue(&family{owner: Owner{
		Client: client.ID, Subject: client.ID, Grant: "client_credentials", Resource: form.Get("resource"), Scopes: scopes,
	}}, scopes, false)
}

// issue gives out a token. Caller holds mu.
func (a *AuthorizationServer) issue(f *family, scopes []string, refreshable bool) reply {
	text, issued := "access-"+rand.Text(), &accessToken{family: f, scopes: scopes}
	answer := map[string]any{"access_token": text, "token_type": "Bearer", "scope": strings.Join(scopes, " ")}
	if lifetime := a.authority.lifetime(); lifetime > 0 {
		issued.ends = time.Now().Add(lifetime)
		answer["expires_in"] = int(lifetime.Seconds())
	}
	a.access[text] = issued
	a.secrets = append(a.secrets, text)
	if refreshable {
		next := "refresh-" + rand.Text()
		a.refresh[next] = &refreshToken{family: f}
		a.secrets = append(a.secrets, next)
		answer["refresh_token"] = next
	}
	return reply{header: map[string]string{"Cache-Control": "no-store"}, message: jsonOf(answer)}
}
