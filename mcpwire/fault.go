package mcpwire

import (
	"errors"
	"net/http"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// Class is what went wrong with one exchange, as far as it decides what to do next.
type Class string

// The classes.
const (
	// ClassUnsent is a request that was never written: no connection, no
	// credential, a closed address.
	ClassUnsent Class = "unsent"
	// ClassStatus is an HTTP status instead of an answer.
	ClassStatus Class = "status"
	// ClassRefused is a JSON-RPC error: the server's own answer.
	ClassRefused Class = "refused"
	// ClassMalformed is an answer that the protocol does not allow.
	ClassMalformed Class = "malformed"
	// ClassTooLarge is an answer beyond the ceiling.
	ClassTooLarge Class = "too large"
	// ClassBroken is a connection that broke before the answer was whole.
	ClassBroken Class = "broken"
	// ClassTimeout is an answer that did not come in time.
	ClassTimeout Class = "timeout"
	// ClassCancelled is a request that its caller called off.
	ClassCancelled Class = "cancelled"
)

// Fault is what went wrong with one exchange, and with that one only. Its text is
// one sentence fit to be shown; the failure type beneath is found with errors.As.
type Fault struct {
	// Class is never empty.
	Class Class
	// Status is the HTTP status that decided it; 0 for none.
	Status int
	// Challenge are the WWW-Authenticate fields of a 401 or 403.
	Challenge []string
	// Server is the JSON-RPC error that came, nil for none.
	Server *ServerError
	// Limit is the ceiling that was passed, in bytes; 0 for none.
	Limit int64

	failure failure.Failure
	sent    bool
	// version is the one of the grant's token that the request carried; 0 for none.
	version uint64
	// foreign says that the answer spoke of an error in words that are not the
	// protocol's, as some servers do whose session is gone.
	foreign bool
}

// Error is the sentence.
func (f *Fault) Error() string { return f.failure.Error() }

// Unwrap is the typed failure.
func (f *Fault) Unwrap() error { return f.failure }

// Sent says that the request was written and that nothing tells that it was not
// carried out: it may have run. It is false when nothing was written, and when
// the server's own answer is a refusal (a status of 4xx, a JSON-RPC error).
func (f *Fault) Sent() bool { return f.sent }

// Refusal says whether the request lacked a token, or a better one than it had, and
// may be sent again with another: the server refused it with 401, or with 403 and
// insufficient_scope (RFC 6750 section 3.1), or the token had run out, which is
// status 0. have is the version of the token that it carried, 0 for none.
func (f *Fault) Refusal() (have uint64, status int, challenge []string, refused bool) {
	if spent, ok := errors.AsType[*messages.TokenSpentError](f.failure); ok {
		return spent.Version, 0, nil, true
	}
	refused = f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden && f.kind() == failure.KindInsufficientScope
	return f.version, f.Status, f.Challenge, refused
}

// kind is the name of the failure beneath.
func (f *Fault) kind() failure.Kind { return f.failure.Kind() }

// fault makes a fault about the server; the sentence is completed by its subject.
func (o *Options) fault(class Class, kind failure.Kind, predicate string, sent bool, cause error) *Fault {
	return &Fault{
		Class:   class,
		failure: failure.New(kind, o.subject()+" "+predicate, cause),
		sent:    sent,
	}
}

// malformed is an answer that the protocol does not allow.
func (o *Options) malformed(predicate string, cause error) *Fault {
	return o.fault(ClassMalformed, failure.KindMcpProtocolError, predicate, true, cause)
}

// broken is an answer that ended too early.
func (o *Options) broken(cause error) *Fault {
	return o.fault(ClassBroken, failure.KindMcpServerUnreachable,
		"broke off its answer before it was whole", true, cause)
}

// unsupported is a revision that this client does not speak.
func (o *Options) unsupported(version string) *Fault {
	predicate := "shares no protocol revision with this client"
	if version = excerpt(version); version != "" {
		predicate += "; it speaks " + version
	}
	return o.fault(ClassMalformed, failure.KindMcpUnsupportedProtocolVersion, predicate, false, nil)
}
