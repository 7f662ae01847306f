package mcpwire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcpwire/bounded"
	"github.com/psych-systems/psych-go/messages"
)

// Why this package itself ends an exchange's context.
var (
	errClosed   = errors.New("the session was closed")
	errOvertime = errors.New("the request took too long")
)

// idleError is an answer that stopped coming.
type idleError struct{ after time.Duration }

func (e *idleError) Error() string { return fmt.Sprintf("nothing came for %s", e.after) }

// outage explains an error of the HTTP client or of an answer's body. Texts of
// errors are not shown: they hold URLs, and with them whatever a query holds.
func (o *Options) outage(ctx context.Context, err error, sent bool) *Fault {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	if large, ok := errors.AsType[*bounded.TooLargeError](err); ok {
		return o.tooLarge(large.Limit, err)
	}
	if large, ok := errors.AsType[*failure.McpResponseTooLarge](err); ok {
		return o.tooLarge(o.ceiling(), large)
	}
	if known, ok := errors.AsType[failure.Failure](err); ok {
		return &Fault{Class: ClassUnsent, failure: failure.New(known.Kind(), known.Error(), err), sent: sent}
	}
	if ctx.Err() != nil {
		return o.ended(context.Cause(ctx), sent)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return o.timeout(sent, "the connection timed out", err)
	}
	if sent {
		return o.broken(err)
	}
	return o.fault(ClassUnsent, failure.KindMcpServerUnreachable, "could not be reached: "+outageReason(err), false, err)
}

// ended explains an exchange whose context has ended.
func (o *Options) ended(cause error, sent bool) *Fault {
	idle, isIdle := errors.AsType[*idleError](cause)
	switch {
	case isIdle:
		return o.timeout(sent, fmt.Sprintf("the connection timed out, nothing came for %s", idle.after), cause)
	case errors.Is(cause, errOvertime):
		return o.timeout(sent, "the connection timed out", cause)
	case errors.Is(cause, context.DeadlineExceeded):
		return o.fault(ClassTimeout, failure.KindDeadlineExceeded, "did not answer before the deadline", sent, cause)
	case errors.Is(cause, errReplaced):
		return o.fault(ClassBroken, failure.KindMcpServerUnreachable, "lost the session that its stream of changes was opened in", sent, cause)
	case errors.Is(cause, errClosed):
		return o.fault(ClassCancelled, failure.KindCancelled, "was not waited for: the connection was closed", sent, cause)
	default:
		return o.fault(ClassCancelled, failure.KindCancelled, "was not waited for: the request was cancelled", sent, cause)
	}
}

func (o *Options) timeout(sent bool, reason string, cause error) *Fault {
	return o.fault(ClassTimeout, failure.KindMcpServerUnreachable, "could not be reached: "+reason, sent, cause)
}

func (o *Options) tooLarge(limit int64, cause error) *Fault {
	fault := o.fault(ClassTooLarge, failure.KindMcpResponseTooLarge,
		fmt.Sprintf("answered with more than the %d bytes allowed", limit), true, cause)
	fault.Limit = limit
	return fault
}

// unauthorized is a credential that could not be had; nothing was sent.
func (o *Options) unauthorized(cause error) *Fault {
	if known, ok := errors.AsType[failure.Failure](cause); ok {
		return &Fault{Class: ClassUnsent, failure: failure.New(known.Kind(), known.Error(), cause)}
	}
	if spent, ok := errors.AsType[*messages.TokenSpentError](cause); ok {
		return o.fault(ClassUnsent, failure.KindAuthorizationRequired, "was not asked: "+spent.Error(), false, spent)
	}
	return o.fault(ClassUnsent, failure.KindInternal, "was not asked: its credential could not be resolved", false, cause)
}

// outageReason names what failed, in words of ours.
func outageReason(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "its host name does not exist"
		}
		return "its host name could not be resolved"
	}
	if reason, ok := certificateReason(err); ok {
		return reason
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to its host"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "the connection was closed"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it speaks http, not https"
	}
	return "the connection failed"
}

func certificateReason(err error) (string, bool) {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is for another host", true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is of an unknown authority", true
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return "its certificate has expired", true
		}
		return "its certificate is not valid", true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate could not be verified", true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS", true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return "the TLS handshake failed", true
	}
	return "", false
}
