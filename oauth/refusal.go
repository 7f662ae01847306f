package oauth

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/secret"
)

// denied is a refusal by its code. A scope that is not to be had is told as such.
func denied(code, format string, args ...any) *Denied {
	kind := failure.KindAuthorizationRequired
	if code == "invalid_scope" || code == "insufficient_scope" {
		kind = failure.KindInsufficientScope
	}
	return &Denied{detail{fmt.Sprintf(format, args...), kind, nil}, code}
}

// saying is a server's error as the end of a sentence.
func saying(code, description string, secrets []secret.Text) string {
	text := excerpt(concealed(description, secrets), maxServerText)
	switch {
	case code != "" && text != "":
		return " (" + code + ", " + text + ")"
	case code+text != "":
		return " (" + code + text + ")"
	}
	return ""
}

// verdict says what the codes of an endpoint mean.
type verdict int

const (
	// aboutGrant: a token request, whose client and grant may be of no use any more.
	aboutGrant verdict = iota
	// deniedOnly: a request without a grant and without a client of its own.
	deniedOnly
)

// refusal is an answer of the token, registration or revocation endpoint that is no
// success, or a success that says otherwise (RFC 6749 section 5.2). Only a JSON
// error is a verdict: any other answer may come from what stands before the server.
func (a answer) refusal(what, where string, about verdict, secrets []secret.Text) error {
	document, _ := decode(a.body)
	code := codeOf(document.text("error"), secrets)
	subject := fmt.Sprintf("%s at %s answered %d %s", what, shown(where), a.status, http.StatusText(a.status))
	if a.ok() {
		subject = fmt.Sprintf("%s at %s refused", what, shown(where))
	}
	sentence := strings.TrimSpace(subject) + saying(code, document.text("error_description"), secrets)
	switch {
	case a.busy(), code == "temporarily_unavailable", code == "server_error", code == "slow_down":
		err := temporary(nil, "%s", sentence)
		err.RetryAfter = a.retryAfter()
		return err
	case code == "" && (a.isPage() || a.gone()):
		return temporary(nil, "%s", sentence)
	case code == "" || about == deniedOnly:
		return denied(code, "%s", sentence)
	case code == "invalid_grant":
		return &GrantEnded{detail{sentence, failure.KindAuthorizationRequired, nil}}
	case code == "invalid_client", code == "unauthorized_client" && a.status == http.StatusUnauthorized:
		// Some servers say unauthorized_client, with 401, of a client whose secret is
		// wrong; with 400 it is the grant type that the client may not use.
		return &ClientForgotten{detail{sentence, failure.KindAuthorizationRequired, nil}}
	}
	return denied(code, "%s", sentence)
}
