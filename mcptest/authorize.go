package mcptest

import (
	"crypto/rand"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// authorizationCode is what a person's consent has led to.
type authorizationCode struct {
	owner                  Owner
	redirectURI, challenge string
	used                   bool
	// family is what the code was exchanged for.
	family *family
}

// authorize answers as the authorization endpoint, for a person who consents at once
// (RFC 6749 section 4.1.1). Before the client and its redirect URI are known nobody is
// sent anywhere.
func (a *AuthorizationServer) authorize(x *Exchange) reply {
	asked := x.Request.Form()
	client, known := a.client(x, asked.Get("client_id"))
	switch {
	case repeated(asked) != "":
		return refused(http.StatusBadRequest, "invalid_request", repeated(asked)+" is there twice")
	case !known:
		return refused(http.StatusBadRequest, "invalid_client", "the client is not known")
	case !redirectsTo(client, asked.Get("redirect_uri")):
		return refused(http.StatusBadRequest, "invalid_request", "the redirect URI is not the client's")
	}
	back := map[string]string{}
	if state := asked.Get("state"); state != "" {
		back["state"] = state
	}
	authority := a.present()
	if !authority.WithoutIss {
		back["iss"] = a.Issuer()
	}
	scopes := strings.Fields(asked.Get("scope"))
	switch {
	case asked.Get("response_type") != "code":
		back["error"] = "unsupported_response_type"
	case asked.Get("code_challenge") == "" || asked.Get("code_challenge_method") != "S256":
		back["error"], back["error_description"] = "invalid_request", "PKCE with S256 is required"
	case !authority.takes(asked.Get("resource"), scopes):
		back["error"] = "invalid_target"
	default:
		owner := Owner{
			Client: client.ID, Subject: x.personName(), Grant: "authorization_code",
			Resource: asked.Get("resource"), Scopes: authority.granted(scopes),
		}
		back["code"] = a.newCode(&authorizationCode{
			owner: owner, redirectURI: asked.Get("redirect_uri"), challenge: asked.Get("code_challenge"),
		})
	}
	if authority.Callback != nil {
		authority.Callback(back)
	}
	return reply{status: http.StatusFound, header: map[string]string{"Location": withQuery(asked.Get("redirect_uri"), back)}}
}

func (a *AuthorizationServer) newCode(code *authorizationCode) string {
	text := "code-" + rand.Text()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.codes[text] = code
	a.secrets = append(a.secrets, text)
	return text
}

func withQuery(raw string, added map[string]string) string {
	parsed, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	query := parsed.Query()
	for name, value := range added {
		query.Set(name, value)
	}
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

// repeated is a parameter that is there more than once, which none may be but
// resource (RFC 6749 section 3.1, RFC 8707 section 2).
func repeated(form url.Values) string {
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return name
		}
	}
	return ""
}

func redirectsTo(client Client, uri string) bool {
	return slices.ContainsFunc(client.RedirectURIs, func(one string) bool {
		return one == uri || withoutPort(one) != "" && withoutPort(one) == withoutPort(uri)
	})
}

// withoutPort is a redirect URI on loopback without its port; "" for any other.
func withoutPort(uri string) string {
	parsed, err := url.Parse(uri)
	if err != nil || parsed.Scheme != "http" {
		return ""
	}
	if address, err := netip.ParseAddr(parsed.Hostname()); err != nil || !address.IsLoopback() {
		return ""
	}
	parsed.Host = parsed.Hostname()
	return parsed.String()
}
