package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/psych-systems/psych-go/secret"
)

// Registration asks for a client (RFC 7591 section 2, OpenID Connect Dynamic Client
// Registration 1.0 section 2). A zero field is left out.
type Registration struct {
	// Name is what a person is shown at consent.
	Name string
	// ApplicationType is native or web.
	ApplicationType string
	RedirectURIs    []string
	GrantTypes      []string
	Scopes          []string
	// AuthMethod is the authentication that is asked for; "" leaves it to the server,
	// within what its metadata supports. The answer decides.
	AuthMethod string
}

// registrationBody is the request's form on the wire.
type registrationBody struct {
	Name            string   `json:"client_name,omitempty"`
	ApplicationType string   `json:"application_type,omitempty"`
	RedirectURIs    []string `json:"redirect_uris,omitempty"`
	GrantTypes      []string `json:"grant_types,omitempty"`
	ResponseTypes   []string `json:"response_types,omitempty"`
	Scope           string   `json:"scope,omitempty"`
	AuthMethod      string   `json:"token_endpoint_auth_method,omitempty"`
}

// Register asks an authorization server for a client. The server's answer is
// authoritative, whatever was asked for (RFC 7591 section 3.2.1): without a secret
// the client is public.
func (c *Client) Register(ctx context.Context, server Server, r Registration) (Identity, error) {
	const what = "the registration endpoint"
	if server.RegistrationEndpoint == "" {
		return Identity{}, unauthorized("the authorization server %s registers no clients; give a client id that it knows", identifier(server.Issuer))
	}
	if _, err := c.address(what, server.RegistrationEndpoint); err != nil {
		return Identity{}, err
	}
	asked := registrationBody{
		Name: r.Name, ApplicationType: r.ApplicationType, RedirectURIs: r.RedirectURIs, GrantTypes: r.GrantTypes,
		Scope: strings.Join(r.Scopes, " "), AuthMethod: r.AuthMethod,
	}
	if slices.Contains(r.GrantTypes, "authorization_code") {
		asked.ResponseTypes = []string{"code"}
	}
	if asked.AuthMethod == "" {
		asked.AuthMethod = methodToAsk(server.TokenEndpointAuthMethods)
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return Identity{}, unusable("the registration cannot be written as JSON")
	}
	got, err := c.post(ctx, what, server.RegistrationEndpoint, bytes.NewReader(body), http.Header{"Content-Type": {"application/json"}})
	if err != nil {
		return Identity{}, err
	}
	if document, ok := decode(got.body); !got.ok() || ok && document.text("error") != "" {
		return Identity{}, got.refusal(what, server.RegistrationEndpoint, deniedOnly, nil)
	}
	return readRegistration(got, server)
}

// methodToAsk is the method to ask for where the default of RFC 7591,
// client_secret_basic, is not among the supported ones; "" where it is.
func methodToAsk(supported []string) string {
	if len(supported) == 0 || slices.Contains(supported, methodBasic) {
		return ""
	}
	for _, method := range []string{methodPost, methodNone} {
		if slices.Contains(supported, method) {
			return method
		}
	}
	return ""
}

func readRegistration(got answer, server Server) (Identity, error) {
	const what = "the registration endpoint"
	document, err := got.document(what, server.RegistrationEndpoint)
	if err != nil {
		return Identity{}, err
	}
	identity := Identity{ID: document.text("client_id"), Method: methodNone}
	if !isVisible(identity.ID) {
		return Identity{}, unusable("%s at %s answered without a client_id that can be used", what, shown(server.RegistrationEndpoint))
	}
	value := document.text("client_secret")
	if value == "" {
		return identity, nil
	}
	method := document.text("token_endpoint_auth_method")
	switch method {
	case methodNone:
		return identity, nil
	case "":
		method = methodBasic
	case methodBasic, methodPost:
	default:
		return Identity{}, unusable("%s at %s wants the client to authenticate with %s, which a registered client cannot",
			what, shown(server.RegistrationEndpoint), excerpt(method, maxCode))
	}
	identity.Method, identity.Secret = method, secret.NewText(value)
	identity.SecretExpires = document.moment("client_secret_expires_at")
	return identity, nil
}

// isVisible reports whether a text is printable ASCII, spaces included, and not
// empty (RFC 6749 appendix A, VSCHAR).
func isVisible(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}
