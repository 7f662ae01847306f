package oauth

import (
	"fmt"
	"time"

	"github.com/psych-systems/psych-go/failure"
)

// detail is what every error here carries: a sentence fit to be shown, the kind
// that it is recorded under, and the cause beneath it.
type detail struct {
	message string
	kind    failure.Kind
	cause   error
}

func (d detail) Error() string { return d.message }

// Kind is the kind that the error is recorded under.
func (d detail) Kind() failure.Kind { return d.kind }

func (d detail) Unwrap() error { return d.cause }

var (
	_ failure.Failure = (*Temporary)(nil)
	_ failure.Failure = (*GrantEnded)(nil)
	_ failure.Failure = (*ClientForgotten)(nil)
	_ failure.Failure = (*Denied)(nil)
	_ failure.Failure = (*Unusable)(nil)
)

// Temporary is a server that did not answer, or that answered what is no verdict:
// a status of 500 and above, 429, a page of HTML. Trying again later may help;
// what was granted still stands.
type Temporary struct {
	detail
	// RetryAfter is how long the server asks to be left alone (RFC 9110 section
	// 10.2.3), an hour at most; 0 where it does not say.
	RetryAfter time.Duration
}

// GrantEnded is a refresh token or a code that is of no use any more
// (invalid_grant, RFC 6749 section 5.2). Only a new consent helps.
type GrantEnded struct{ detail }

// ClientForgotten is a client that the authorization server does not know, or
// whose secret it does not accept (RFC 6749 section 5.2). Registering again helps
// where the client was registered dynamically.
type ClientForgotten struct{ detail }

// Denied is a person or a server that said no. Asking the same again does not help.
type Denied struct {
	detail
	// Code is the error code, printable ASCII of 64 characters at most; "" where
	// only a status was told.
	Code string
}

// Unusable is a document or an answer that cannot be used, or that is refused for
// safety. Trying again does not help before a server or a configuration changes.
type Unusable struct{ detail }

func temporary(cause error, format string, args ...any) *Temporary {
	return &Temporary{detail: detail{fmt.Sprintf(format, args...), failure.KindMcpServerUnreachable, cause}}
}

func unusable(format string, args ...any) *Unusable {
	return &Unusable{detail{fmt.Sprintf(format, args...), failure.KindMcpProtocolError, nil}}
}

// unauthorized is what keeps a person's consent, or a client, from being had.
func unauthorized(format string, args ...any) *Unusable {
	return &Unusable{detail{fmt.Sprintf(format, args...), failure.KindAuthorizationRequired, nil}}
}
