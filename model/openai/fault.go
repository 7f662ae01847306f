package openai

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

const brokeOff = "broke off its answer"

// fault is what went wrong in one attempt.
type fault struct {
	// predicate says what the endpoint did; it holds nothing that came from outside.
	predicate string
	// said is the endpoint's own message; "" when it gave none.
	said  string
	cause error
	// passing says that the same request may succeed later.
	passing bool
	// after is how long the endpoint asked to be left alone.
	after time.Duration
	// known is a failure that goes to the caller as it is.
	known failure.Failure
}

// Error makes a fault travel through the library as an error.
func (f *fault) Error() string { return f.predicate }

func (f *fault) failure(host, ending string) error {
	if f.known != nil {
		return f.known
	}
	sentence := "the model endpoint " + host + " " + f.predicate + ending
	if f.said != "" {
		sentence += ": " + f.said
	}
	return failure.New(failure.KindModelError, sentence, f.cause)
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
func (m *Model) unanswered(ctx context.Context, err error) *fault {
	if refusal, ok := errors.AsType[*fault](err); ok {
		if errors.Is(context.Cause(ctx), errIdle) {
			return m.silent()
		}
		return refusal
	}
	if failed := m.known(ctx, err); failed != nil {
		return failed
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &fault{predicate: "showed a certificate that is not trusted", cause: err}
	}
	reason := "could not be reached"
	if lookup, ok := errors.AsType[*net.DNSError](err); ok && lookup.IsNotFound {
		reason = "could not be found by its name"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		reason = "refused the connection"
	}
	return &fault{predicate: reason, cause: err, passing: true}
}

// brokenOff is the fault of an answer that could not be read on.
func (m *Model) brokenOff(ctx context.Context, failed *fault) *fault {
	if errors.Is(failed.cause, bufio.ErrTooLong) {
		return &fault{predicate: "sent an event that is too large", cause: failed.cause}
	}
	if known := m.known(ctx, failed.cause); known != nil {
		return known
	}
	return failed
}

// known finds the faults that have a name of their own on either way.
func (m *Model) known(ctx context.Context, err error) *fault {
	if errors.Is(context.Cause(ctx), errIdle) {
		return m.silent()
	}
	if _, ok := errors.AsType[*failure.McpResponseTooLarge](err); ok {
		return &fault{predicate: "answered with more bytes than the response ceiling allows", cause: err}
	}
	found, ok := errors.AsType[failure.Failure](err)
	if !ok {
		return nil
	}
	switch found.Kind() {
	case failure.KindEgressDenied, failure.KindCancelled:
		return &fault{predicate: "may not be reached", known: found}
	default:
		return &fault{predicate: "gave an answer that cannot be used", said: found.Error(), cause: err}
	}
}

func (m *Model) silent() *fault {
	return &fault{predicate: fmt.Sprintf("sent nothing for %s", m.idle), cause: errIdle, passing: true}
}

// refusalOf reads and closes a response whose status is no success.
func refusalOf(response *http.Response) *fault {
	// What cannot be read of a refusal only makes its sentence shorter.
	body, _ := io.ReadAll(io.LimitReader(response.Body, refusalLimit))
	_ = response.Body.Close()
	status := response.StatusCode
	shown := strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	failed := &fault{predicate: "answered " + shown, said: messageOf(body), passing: passes(status)}
	switch status {
	case http.StatusUnauthorized:
		// Endpoints like to repeat a part of the key here.
		failed.predicate, failed.said = "refused its credential ("+shown+")", ""
	case http.StatusForbidden:
		failed.predicate = "refused its credential (" + shown + ")"
	}
	if failed.passing {
		failed.after = retryAfter(response.Header, time.Now())
	}
	if failed.after > longestWait {
		failed.passing = false
		failed.predicate += fmt.Sprintf(" and asked for a pause of %s", failed.after.Round(time.Second))
	}
	return failed
}

// passes says whether a status tells of a fault that passes.
func passes(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// messageOf finds the message in an error document, in the forms that endpoints
// use: {"error":{"message":…}}, {"error":…}, {"message":…}, {"detail":…}. What
// is no JSON is no message for people.
func messageOf(body []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		var text string
		_ = json.Unmarshal(body, &text) // leaves "" when it is no text either
		return text
	}
	for _, name := range []string{"error", "message", "detail"} {
		if raw, ok := members[name]; ok && !bytes.Equal(raw, []byte("null")) {
			if message := messageOf(raw); message != "" {
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
