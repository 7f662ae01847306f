package mcpwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcpwire/bounded"
)

// JSON-RPC error codes that have a meaning of their own (MCP 2026-07-28, "Error
// Codes"). Drafts of that revision used the legacy numbers, which mean other
// things to other servers: they count only where the error's shape agrees.
const (
	codeMethodNotFound          = -32601
	codeInvalidParams           = -32602
	codeInternal                = -32603
	codeHeaderMismatch          = -32020
	codeMissingCapability       = -32021
	codeUnsupportedVersion      = -32022
	codeDraftHeaderMismatch     = -32001
	codeDraftMissingCapability  = -32003
	codeDraftUnsupportedVersion = -32004
	codeURLElicitationRequired  = -32042

	// longestServerText bounds, in runes, what a sentence repeats of a server's words.
	longestServerText = 300
	// longestRead bounds, in bytes, what is looked at for it.
	longestRead = 8 * longestServerText
)

// modernCode is the code of 2026-07-28 for an error, told by its number or, for a
// draft's number, by its number and shape; 0 for any other error.
func (e *ServerError) modernCode() int64 {
	switch e.Code {
	case codeHeaderMismatch, codeMissingCapability, codeUnsupportedVersion:
		return e.Code
	case codeDraftHeaderMismatch:
		if text := strings.ToLower(e.Message); strings.Contains(text, "header") &&
			(strings.Contains(text, "mismatch") || strings.Contains(text, "match")) {
			return codeHeaderMismatch
		}
	case codeDraftMissingCapability:
		if e.hasData("requiredCapabilities") {
			return codeMissingCapability
		}
	case codeDraftUnsupportedVersion:
		if e.hasData("supported") {
			return codeUnsupportedVersion
		}
	}
	return 0
}

// asksForModern says that the server wants a modern revision which is spoken here.
func (e *ServerError) asksForModern() bool {
	return e.modernCode() == codeUnsupportedVersion && slices.ContainsFunc(supported(e.Data), func(version string) bool {
		return version >= version20260728 && speaks(version)
	})
}

func (e *ServerError) hasData(member string) bool {
	found := false
	err := eachMember(e.Data, func(name, value []byte) {
		found = found || string(name) == member && !absent(value)
	})
	return err == nil && found
}

// refused is a JSON-RPC error as a fault.
func (o *Options) refused(e *ServerError) *Fault {
	text := excerpt(e.Message)
	kind, predicate := failure.KindMcpProtocolError, fmt.Sprintf("answered with error %d: %s", e.Code, text)
	if text == "" {
		predicate = fmt.Sprintf("answered with error %d", e.Code)
	}
	switch {
	case e.modernCode() == codeHeaderMismatch:
		kind, predicate = failure.KindMcpHeaderMismatchError, "found the request's headers and body at odds: "+text
	case e.modernCode() == codeMissingCapability:
		kind, predicate = failure.KindMcpMissingClientCapabilityError, "needs "+capabilities(e.Data)+", which this client does not have"
	case e.modernCode() == codeUnsupportedVersion:
		kind, predicate = failure.KindMcpUnsupportedProtocolVersion, "shares no protocol revision with this client"+revisions(e.Data)
	case e.Code == codeURLElicitationRequired:
		kind, predicate = failure.KindMcpInputRequiredError, "asks a person to visit a page first, which this client does not arrange"
	}
	fault := o.fault(ClassRefused, kind, strings.TrimRight(predicate, ": "), false, nil)
	fault.Server = e
	return fault
}

func capabilities(data []byte) string {
	var wire struct {
		RequiredCapabilities map[string]json.RawMessage `json:"requiredCapabilities"`
	}
	if json.Unmarshal(data, &wire) != nil || len(wire.RequiredCapabilities) == 0 {
		return "a capability"
	}
	return "the capability " + excerpt(strings.Join(slices.Sorted(maps.Keys(wire.RequiredCapabilities)), ", "))
}

func revisions(data []byte) string {
	spoken := supported(data)
	if len(spoken) == 0 {
		return ""
	}
	return "; it speaks " + excerpt(strings.Join(spoken, ", "))
}

// supported is the revisions in an error's data; none where it does not say.
func supported(data []byte) []string {
	var wire struct {
		Supported []string `json:"supported"`
	}
	if json.Unmarshal(data, &wire) != nil {
		return nil
	}
	return wire.Supported
}

// longestErrorBody bounds, in bytes, what is read of the body of a status that is
// no success; a JSON-RPC error that is longer is not worth its reading.
const longestErrorBody = 64 << 10

// beginning reads a response's body as far as an error needs it, and closes it.
func (x *span) beginning(response *http.Response) []byte {
	defer response.Body.Close() //nolint:errcheck // nothing was written to it
	body, err := bounded.ReadAll(x.answering(response.Body), response.ContentLength, longestErrorBody)
	if err != nil {
		return nil
	}
	return body
}

// refusedStatus is an HTTP status outside 200 to 299 as a fault. The body may
// hold a JSON-RPC error.
func (x *span) refusedStatus(response *http.Response) *Fault {
	body := x.beginning(response)
	status, o := response.StatusCode, x.wire
	fault := o.statusFault(status, x.token != "")
	if told := errorIn(body); told != nil && status != http.StatusUnauthorized {
		fault = x.refused(told)
	}
	fault.Status = status
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		fault.Challenge = response.Header.Values(fieldChallenge)
		fault.version = x.version
		if status == http.StatusForbidden && insufficientScope(fault.Challenge) {
			fault.failure = failure.New(failure.KindInsufficientScope,
				o.subject()+" says that the credential does not permit this", nil)
		}
	}
	return fault
}

func (o *Options) statusFault(status int, authorized bool) *Fault {
	kind, predicate := failure.KindMcpProtocolError, fmt.Sprintf("answered %d %s", status, http.StatusText(status))
	sent := false
	switch {
	case status == http.StatusUnauthorized && authorized:
		kind, predicate = failure.KindMcpServerUnreachable, "refused the credential"
	case status == http.StatusUnauthorized:
		kind, predicate = failure.KindMcpServerUnreachable, "wants OAuth and none is configured"
	case status >= 300 && status < 400:
		predicate = fmt.Sprintf("answered %d and sent the request elsewhere; only its own origin is followed, without a change of method", status)
	case status >= 500 || status < 200:
		kind, sent = failure.KindMcpServerUnreachable, true
	default:
		switch status {
		case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusProxyAuthRequired,
			http.StatusRequestTimeout, http.StatusGone, http.StatusMisdirectedRequest, http.StatusTooEarly,
			http.StatusTooManyRequests, http.StatusUnavailableForLegalReasons:
			kind = failure.KindMcpServerUnreachable
		}
	}
	return o.fault(ClassStatus, kind, strings.TrimSpace(predicate), sent, nil)
}

// errorIn is the JSON-RPC error that a body holds, whatever its content type
// says; nil for none.
func errorIn(body []byte) *ServerError {
	var found *ServerError
	if decodeInbound(bytes.TrimSpace(body), func(m *inbound) { found = m.fault }) != nil {
		return nil
	}
	return found
}

// insufficientScope finds RFC 6750's error among challenges.
func insufficientScope(challenges []string) bool {
	for _, challenge := range challenges {
		if strings.Contains(challenge, `error="insufficient_scope"`) || strings.Contains(challenge, "error=insufficient_scope") {
			return true
		}
	}
	return false
}

// mediaType is a content type without parameters, in lower case; "" when there
// is none or it cannot be read.
func mediaType(contentType string) string {
	switch contentType {
	case mediaJSON, mediaEventStream, "":
		return contentType
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil && media == "" {
		media, _, _ = strings.Cut(strings.ToLower(contentType), ";")
	}
	return strings.TrimSpace(media)
}

// excerpt is a stranger's text, fit for a sentence: one line, bounded, without
// control characters and without punctuation at its end that leads nowhere.
func excerpt(text string) string {
	// What is cut here could be space alone only in a text that is of no use.
	cut := len(text) > longestRead
	if cut {
		text = text[:longestRead]
	}
	cleaned := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	runes := []rune(strings.Join(strings.Fields(cleaned), " "))
	if cut || len(runes) > longestServerText {
		return string(runes[:min(len(runes), longestServerText)]) + "…"
	}
	return strings.TrimRight(string(runes), ": ")
}
