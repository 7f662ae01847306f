package mcpwire

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// Field names and values of requests (MCP 2026-07-28, Streamable HTTP, "Request
// Metadata"; 2025-11-25, "Session Management"), in canonical form.
const (
	fieldAccept        = "Accept"
	fieldAuthorization = "Authorization"
	fieldChallenge     = "Www-Authenticate"
	fieldContentType   = "Content-Type"
	fieldLastEventID   = "Last-Event-Id"
	fieldMethod        = "Mcp-Method"
	fieldName          = "Mcp-Name"
	fieldParamPrefix   = "Mcp-Param-"
	fieldSession       = "Mcp-Session-Id"
	fieldVersion       = "Mcp-Protocol-Version"

	mediaJSON        = "application/json"
	mediaEventStream = "text/event-stream"
)

// Values that never change are shared by all requests. Their capacity is their
// length, so that adding to one copies it.
var (
	valueJSON   = []string{mediaJSON}
	valueStream = []string{mediaEventStream}
	valueEither = []string{mediaJSON + ", " + mediaEventStream}
)

// agreement is what was negotiated with a server. It never changes; a session
// that was lost is replaced by a new one.
type agreement struct {
	version string
	// modern is 2026-07-28 and later: no session, metadata in each request.
	modern bool
	// session is the Mcp-Session-Id of an older server; "" for none.
	session string
}

const (
	version20260728 = "2026-07-28"
	version20251125 = "2025-11-25"
	version20250618 = "2025-06-18"
	version20250326 = "2025-03-26"
	version20241105 = "2024-11-05"
)

// speaks says whether this client speaks a revision.
func speaks(version string) bool {
	switch version {
	case version20260728, version20251125, version20250618, version20250326, version20241105:
		return true
	}
	return false
}

// postHeader is the header of a POST that carries the message.
func (a *agreement) postHeader(m *Message) http.Header {
	header := make(http.Header, 8+len(m.Headers))
	header[fieldContentType], header[fieldAccept] = valueJSON, valueEither
	a.common(header, m.Version)
	if a == nil && m.Version < version20260728 || a != nil && !a.modern {
		return header
	}
	header[fieldMethod] = []string{m.Method}
	if m.Name != "" {
		header[fieldName] = []string{encodeField(m.Name)}
	}
	for _, param := range m.Headers {
		header[param.Name] = []string{param.Value}
	}
	return header
}

// streamHeader is the header of a GET that opens or resumes a stream.
func (a *agreement) streamHeader(lastEventID string) http.Header {
	header := make(http.Header, 6)
	header[fieldAccept] = valueStream
	a.common(header, "")
	if lastEventID != "" {
		header[fieldLastEventID] = []string{lastEventID}
	}
	return header
}

func (a *agreement) common(header http.Header, version string) {
	if a != nil {
		version = a.version
	}
	if version != "" {
		header[fieldVersion] = []string{version}
	}
	if a != nil && a.session != "" {
		header[fieldSession] = []string{a.session}
	}
}

const (
	base64Begin = "=?base64?"
	base64End   = "?="
)

// encodeField is a text as the value of Mcp-Name and Mcp-Param fields: as it is
// where HTTP can carry it, in base64 between markers else (2026-07-28, "Value
// Encoding").
func encodeField(text string) string {
	if fitsField(text) {
		return text
	}
	return base64Begin + base64.StdEncoding.EncodeToString([]byte(text)) + base64End
}

func fitsField(text string) bool {
	if text == "" {
		return true
	}
	if strings.HasPrefix(text, base64Begin) && strings.HasSuffix(text, base64End) {
		return false
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text[0] != ' ' && text[len(text)-1] != ' '
}
