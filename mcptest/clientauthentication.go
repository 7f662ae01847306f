package mcptest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// authenticated is the client that a request is from. It must authenticate in its own
// way, and in that alone (RFC 6749 section 2.3).
func (a *AuthorizationServer) authenticated(x *Exchange, form url.Values) (Client, *reply) {
	shown := shownMethods(x.Request, form)
	if len(shown) > 1 {
		answer := refused(http.StatusBadRequest, "invalid_request", "the client authenticates as "+strings.Join(shown, " and as "))
		return Client{}, &answer
	}
	id, proof := claimed(x.Request, form)
	client, known := a.client(x, id)
	if !known || client.method() != shown[0] || !a.proves(client, proof) {
		answer := refused(http.StatusUnauthorized, "invalid_client", "the client is not known, or not by "+shown[0])
		if x.Request.Header.Get("Authorization") != "" {
			answer.header = map[string]string{"WWW-Authenticate": "Basic"}
		}
		return Client{}, &answer
	}
	return client, nil
}

// AuthenticationMethod is how a client authenticated with a request; several ways are
// joined by a plus.
func (r Request) AuthenticationMethod() string { return strings.Join(shownMethods(r, r.Form()), "+") }

func shownMethods(r Request, form url.Values) (shown []string) {
	if len(r.Header.Values("Authorization")) > 0 {
		shown = append(shown, "client_secret_basic")
	}
	if form.Has("client_secret") {
		shown = append(shown, "client_secret_post")
	}
	if form.Has("client_assertion") || form.Has("client_assertion_type") {
		shown = append(shown, "private_key_jwt")
	}
	if shown == nil {
		shown = []string{"none"}
	}
	return shown
}

// claimed is the client that a request names, and what it shows for that.
func claimed(r Request, form url.Values) (id, proof string) {
	scheme, encoded, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "basic") {
		return form.Get("client_id"), form.Get("client_secret") + form.Get("client_assertion")
	}
	decoded, _ := base64.StdEncoding.DecodeString(encoded)
	name, password, _ := strings.Cut(string(decoded), ":")
	id, _ = url.QueryUnescape(name)
	proof, _ = url.QueryUnescape(password)
	if form.Has("client_id") && form.Get("client_id") != id {
		return "", ""
	}
	return id, proof
}

func (a *AuthorizationServer) proves(client Client, proof string) bool {
	if client.method() == "private_key_jwt" {
		return a.asserts(client, proof)
	}
	return client.Secret == proof
}

// asserts checks an assertion (RFC 7523 section 3), which is good once.
func (a *AuthorizationServer) asserts(client Client, text string) bool {
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256, jose.RS256})
	if err != nil {
		return false
	}
	var claims jwt.Claims
	issuer := a.Issuer()
	if parsed.Claims(client.Key, &claims) != nil || claims.Expiry == nil || claims.ID == "" ||
		claims.Validate(jwt.Expected{Issuer: client.ID, Subject: client.ID, AnyAudience: jwt.Audience{issuer}, Time: time.Now()}) != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	used := a.assertions[claims.ID]
	a.assertions[claims.ID] = true
	return !used
}

// client finds a client: one that is known, or one whose id is the URL of its
// document.
func (a *AuthorizationServer) client(x *Exchange, id string) (Client, bool) {
	a.mu.Lock()
	client, known := a.clients[id]
	documents := a.authority.DocumentClients
	a.mu.Unlock()
	if known || !documents || !strings.Contains(id, "://") {
		return client, known
	}
	return documented(x, id)
}

// documented reads a client's metadata document
// (draft-ietf-oauth-client-id-metadata-document).
func documented(x *Exchange, id string) (Client, bool) {
	request, err := http.NewRequestWithContext(x.Context(), http.MethodGet, id, nil)
	if err != nil {
		return Client{}, false
	}
	response, err := browser().RoundTrip(request)
	if err != nil {
		return Client{}, false
	}
	defer func() { _ = response.Body.Close() }()
	var document struct {
		ClientID     string             `json:"client_id"`
		RedirectURIs []string           `json:"redirect_uris"`
		Method       string             `json:"token_endpoint_auth_method"`
		Keys         jose.JSONWebKeySet `json:"jwks"`
	}
	if json.NewDecoder(response.Body).Decode(&document) != nil || document.ClientID != id {
		return Client{}, false
	}
	client := Client{ID: id, Method: document.Method, RedirectURIs: document.RedirectURIs}
	if len(document.Keys.Keys) > 0 {
		client.Key = document.Keys.Keys[0].Key
	}
	return client, true
}
