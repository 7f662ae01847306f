package mcptest

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
)

// register answers as the registration endpoint (RFC 7591 section 3).
func (a *AuthorizationServer) register(x *Exchange) reply {
	var asked map[string]any
	if json.Unmarshal(x.Request.Body, &asked) != nil {
		return refused(http.StatusBadRequest, "invalid_client_metadata", "the body is no JSON object")
	}
	grants := texts(asked["grant_types"])
	if (len(grants) == 0 || slices.Contains(grants, "authorization_code")) && len(texts(asked["redirect_uris"])) == 0 {
		return refused(http.StatusBadRequest, "invalid_redirect_uri", "there is no redirect URI")
	}
	answer := map[string]any{"client_id": "client-" + rand.Text(), "client_id_issued_at": 1}
	for name, value := range asked {
		answer[name] = value
	}
	method, _ := asked["token_endpoint_auth_method"].(string)
	if method == "" {
		method = "client_secret_basic"
	}
	answer["token_endpoint_auth_method"] = method
	if method == "client_secret_basic" || method == "client_secret_post" {
		answer["client_secret"], answer["client_secret_expires_at"] = "secret-"+rand.Text(), 0
	}
	if change := a.present().Registration; change != nil {
		change(asked, answer)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	client := Client{RedirectURIs: texts(answer["redirect_uris"])}
	client.ID, _ = answer["client_id"].(string)
	client.Secret, _ = answer["client_secret"].(string)
	client.Method, _ = answer["token_endpoint_auth_method"].(string)
	if client.RedirectURIs == nil {
		client.RedirectURIs = texts(asked["redirect_uris"])
	}
	a.know(client)
	return reply{status: http.StatusCreated, header: map[string]string{"Cache-Control": "no-store"}, message: jsonOf(answer)}
}

// texts is a JSON array's texts.
func texts(value any) (list []string) {
	values, _ := value.([]any)
	for _, one := range values {
		if text, ok := one.(string); ok {
			list = append(list, text)
		}
	}
	return list
}

// revoke answers as the revocation endpoint (RFC 7009 section 2): a token that is not
// known is revoked already.
func (a *AuthorizationServer) revoke(x *Exchange) reply {
	form := x.Request.Form()
	client, refusal := a.authenticated(x, form)
	if refusal != nil {
		return *refusal
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if token, found := a.refresh[form.Get("token")]; found && token.family.owner.Client == client.ID {
		a.revokeFamily(token.family)
	}
	if token, found := a.access[form.Get("token")]; found && token.family.owner.Client == client.ID {
		token.revoked = true
	}
	return reply{}
}
