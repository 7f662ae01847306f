package oauth

import (
	"crypto/subtle"
	"net/url"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/secret"
)

// maxAuthorizationCode bounds, in bytes, a code: no server's is near it.
const maxAuthorizationCode = 16 << 10

// ReadCallback reads an authorization response (RFC 6749 section 4.1.2), as the
// parameters of the request to the redirect URI. state is the one that was sent, and
// is compared first; then iss, by RFC 9207 section 2.4 and MCP 2026-07-28,
// "Authorization Response Validation". Before both hold, nothing of the response is
// acted on or shown, its error least of all.
func ReadCallback(server Server, state string, callback url.Values) (code string, err error) {
	given, once := single(callback, "state")
	if !once || state == "" || subtle.ConstantTimeCompare([]byte(given), []byte(state)) != 1 {
		return "", unauthorized("what came back from the authorization does not belong to this request; begin again")
	}
	iss, once := single(callback, "iss")
	switch told := callback.Has("iss"); {
	case !told && server.IssInResponse:
		return "", unauthorized("what came back from the authorization does not say that it is from %s, as that server promises; begin again",
			identifier(server.Issuer))
	case told && (!once || server.Issuer == "" || iss != server.Issuer):
		return "", unauthorized("what came back from the authorization is not from the authorization server %s; begin again",
			identifier(server.Issuer))
	}
	if callback.Has("error") {
		return "", refusedCallback(server, state, callback)
	}
	code, once = single(callback, "code")
	if !once || !isVisible(code) || len(code) > maxAuthorizationCode {
		return "", unauthorized("the authorization server %s sent back no code that can be used", identifier(server.Issuer))
	}
	return code, nil
}

// refusedCallback is an error response (RFC 6749 section 4.1.2.1).
func refusedCallback(server Server, state string, callback url.Values) error {
	secrets := []secret.Text{secret.NewText(state)}
	code := codeOf(callback.Get("error"), secrets)
	words := saying(code, callback.Get("error_description"), secrets)
	switch code {
	case "temporarily_unavailable", "server_error":
		return temporary(nil, "the authorization server %s cannot answer now%s", identifier(server.Issuer), words)
	case "invalid_client":
		return &ClientForgotten{detail{"the authorization server " + identifier(server.Issuer) + " does not know the client" + words,
			failure.KindAuthorizationRequired, nil}}
	case "access_denied":
		return denied(code, "consent was refused at %s%s", identifier(server.Issuer), words)
	}
	return denied(code, "the authorization server %s refused%s", identifier(server.Issuer), words)
}

// single is a parameter that is there exactly once.
func single(values url.Values, name string) (string, bool) {
	if len(values[name]) != 1 {
		return "", false
	}
	return values[name][0], true
}
