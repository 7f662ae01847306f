package oauth

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/psych-systems/psych-go/secret"
)

// The ways in which a client authenticates at the token endpoint (RFC 7591 section
// 2, OpenID Connect Core 1.0 section 9).
const (
	methodNone       = "none"
	methodBasic      = "client_secret_basic"
	methodPost       = "client_secret_post"
	methodPrivateKey = "private_key_jwt"
)

// Identity is a client as one authorization server knows it. It is good at that
// server alone; what keeps one keeps the server's issuer with it.
type Identity struct {
	// ID is the client_id; never "".
	ID string
	// Secret is the client_secret; zero for a public client or one with a key.
	Secret secret.Text
	// Key is the private key of private_key_jwt: PEM (PKCS #8, SEC 1 or PKCS #1) or a
	// JSON Web Key; zero for any other method.
	Key secret.Text
	// Method is client_secret_basic, client_secret_post, private_key_jwt or none; ""
	// is decided by [AuthMethod].
	Method string
	// SecretExpires is when the secret ends; zero means never (RFC 7591 section 3.2.1).
	SecretExpires time.Time
}

// AuthMethod decides the one way in which a client authenticates. asked is what the
// Spec wants and precedes what the metadata says; "" leaves it to what there is and
// what the metadata supports, a key before a secret. A client with neither is public.
func AuthMethod(asked string, hasSecret, hasKey bool, server Server) (string, error) {
	switch asked {
	case methodNone:
		return asked, nil
	case methodBasic, methodPost:
		if !hasSecret {
			return "", unauthorized("the client is to authenticate with %s and has no secret", asked)
		}
		return asked, nil
	case methodPrivateKey:
		if !hasKey {
			return "", unauthorized("the client is to authenticate with %s and has no key", asked)
		}
		return asked, nil
	case "":
	default:
		return "", unauthorized("the client is to authenticate with %s, which is not supported", excerpt(asked, maxCode))
	}
	var possible []string
	if hasKey {
		possible = append(possible, methodPrivateKey)
	}
	if hasSecret {
		possible = append(possible, methodBasic, methodPost)
	}
	if len(possible) == 0 {
		return methodNone, nil
	}
	if len(server.TokenEndpointAuthMethods) == 0 {
		return possible[0], nil
	}
	for _, method := range possible {
		if slices.Contains(server.TokenEndpointAuthMethods, method) {
			return method, nil
		}
	}
	return "", unauthorized("the authorization server %s supports none of the ways in which the client can authenticate; "+
		"name one as the server's token_endpoint_auth_method", identifier(server.Issuer))
}

// authenticate adds the client to a request, in exactly one way (RFC 6749 section
// 2.3). It returns what a server must not be heard to repeat.
func (i Identity) authenticate(server Server, form url.Values, header http.Header) ([]secret.Text, error) {
	if i.ID == "" {
		return nil, unauthorized("there is no client for the authorization server %s", identifier(server.Issuer))
	}
	asked := i.Method
	method, err := AuthMethod(asked, !i.Secret.IsZero(), !i.Key.IsZero(), server)
	if err != nil {
		return nil, err
	}
	switch method {
	case methodBasic:
		credentials := base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(i.ID) + ":" + url.QueryEscape(i.Secret.Reveal())))
		header.Set("Authorization", "Basic "+credentials)
		return []secret.Text{i.Secret, secret.NewText(credentials)}, nil
	case methodPost:
		form.Set("client_id", i.ID)
		form.Set("client_secret", i.Secret.Reveal())
		return []secret.Text{i.Secret}, nil
	case methodPrivateKey:
		assertion, err := i.assertion(server)
		if err != nil {
			return nil, err
		}
		form.Set("client_id", i.ID)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion.Reveal())
		return []secret.Text{assertion}, nil
	}
	form.Set("client_id", i.ID)
	return nil, nil
}
