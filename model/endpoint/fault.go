package endpoint

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/psych-systems/psych-go/failure"
)

// saidLimit bounds an endpoint's own words in a sentence, in characters.
const saidLimit = 300

// BrokeOff is the predicate of an answer that ended before its end.
const BrokeOff = "broke off its answer"

// Fault is what went wrong in one attempt.
type Fault struct {
	// Predicate says what the endpoint did; it holds nothing that came from outside.
	Predicate string
	// Said is the endpoint's own message; "" when it gave none.
	Said string
	// Cause is the error beneath; nil where the endpoint's answer is the fault.
	Cause error
	// Passing says that the same request may succeed later.
	Passing bool
	// After is how long the endpoint asked to be left alone.
	After time.Duration
	// known is a failure that goes to the caller as it is.
	known failure.Failure
}

// Error makes a fault travel through an API's library as an error.
func (f *Fault) Error() string { return f.Predicate }

// Failure is the fault as a caller is told of it, with the endpoint's host before
// it and an ending behind it.
func (f *Fault) Failure(host, ending string) error {
	if f.known != nil {
		return f.known
	}
	sentence := "the model endpoint " + host + " " + f.Predicate + ending
	if f.Said != "" {
		sentence += ": " + f.Said
	}
	return failure.New(failure.KindModelError, sentence, f.Cause)
}

// tries tells of repeated attempts.
func tries(attempt int) string {
	if attempt == 1 {
		return ""
	}
	return fmt.Sprintf(" at each of %d attempts", attempt)
}

// ended is the failure of a caller's context that is over.
func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failure.New(failure.KindDeadlineExceeded, "the model did not answer before the deadline", context.Cause(ctx))
	}
	return failure.New(failure.KindCancelled, "the request to the model was cancelled", context.Cause(ctx))
}

// unanswered is the fault of a request that got no answer or a refusal.
func (e *Endpoint) unanswered(ctx context.Context, err error) *Fault {
	if refusal, ok := errors.AsType[*Fault](err); ok {
		if errors.Is(context.Cause(ctx), errIdle) {
			return e.silent()
		}
		return refusal
	}
	if failed := e.known(ctx, err); failed != nil {
		return failed
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &Fault{Predicate: "showed a certificate that is not trusted", Cause: err}
	}
	reason := "could not be reached"
	if lookup, ok := errors.AsType[*net.DNSError](err); ok && lookup.IsNotFound {
		reason = "could not be found by its name"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		reason = "refused the connection"
	}
	return &Fault{Predicate: reason, Cause: err, Passing: true}
}

// brokenOff is the fault of an answer that could not be read on.
func (e *Endpoint) brokenOff(ctx context.Context, failed *Fault) *Fault {
	if errors.Is(failed.Cause, bufio.ErrTooLong) {
		return &Fault{Predicate: "sent an event that is too large", Cause: failed.Cause}
	}
	if known := e.known(ctx, failed.Cause); known != nil {
		return known
	}
	return failed
}

// known finds the faults that have a name of their own on either way.
func (e *Endpoint) known(ctx context.Context, err error) *Fault {
	if errors.Is(context.Cause(ctx), errIdle) {
		return e.silent()
	}
	if _, ok := errors.AsType[*failure.McpResponseTooLarge](err); ok {
		return &Fault{Predicate: "answered with more bytes than the response ceiling allows", Cause: err}
	}
	found, ok := errors.AsType[failure.Failure](err)
	if !ok {
		return nil
	}
	switch found.Kind() {
	case failure.KindEgressDenied, failure.KindCancelled:
		return &Fault{Predicate: "may not be reached", known: found}
	default:
		return &Fault{Predicate: "gave an answer that cannot be used", Said: found.Error(), Cause: err}
	}
}

func (e *Endpoint) silent() *Fault {
	return &Fault{Predicate: fmt.Sprintf("sent nothing for %s", e.idle), Cause: errIdle, Passing: true}
}

// refusalOf reads and closes a response whose status is no success.
func refusalOf(response *http.Response) *Fault {
	// What cannot be read of a refusal only makes its sentence shorter.
	body, _ := io.ReadAll(io.LimitReader(response.Body, refusalLimit))
	_ = response.Body.Close()
	status := response.StatusCode
	shown := strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	failed := &Fault{Predicate: "answered " + shown, Said: MessageOf(body), Passing: Passes(status)}
	switch status {
	case http.StatusUnauthorized:
		// Endpoints like to repeat a part of the key here.
		failed.Predicate, failed.Said = "refused its credential ("+shown+")", ""
	case http.StatusForbidden:
		failed.Predicate = "refused its credential (" + shown + ")"
	}
	if failed.Passing {
		failed.After = retryAfter(response.Header, time.Now())
	}
	if failed.After > longestWait {
		failed.Passing = false
		failed.Predicate += fmt.Sprintf(" and asked for a pause of %s", failed.After.Round(time.Second))
	}
	return failed
}

// Passes says whether a status tells of a fault that passes.
func Passes(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// MessageOf finds the message in an error document, in the forms that endpoints
// use: {"error":{"message":…}}, {"error":…}, {"message":…}, {"detail":…}. What
// is no JSON is no message for people.
func MessageOf(body []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		var text string
		_ = json.Unmarshal(body, &text) // leaves "" when it is no text either
		return text
	}
	for _, name := range []string{"error", "message", "detail"} {
		if raw, ok := members[name]; ok && !bytes.Equal(raw, []byte("null")) {
			if message := MessageOf(raw); message != "" {
				return message
			}
		}
	}
	return ""
}

// presentable makes an endpoint's words fit to be shown: one bounded line
// without the key.
func presentable(said, key string) string {
	if key != "" {
		said = strings.ReplaceAll(said, key, "[redacted]")
	}
	said = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(said, ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	said = strings.TrimRight(said, ".: ")
	if runes := []rune(said); len(runes) > saidLimit {
		said = string(runes[:saidLimit]) + "…"
	}
	return said
}
