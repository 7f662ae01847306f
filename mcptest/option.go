package mcptest

import (
	"slices"
	"time"
)

// Revisions of the protocol, newest first.
const (
	Version20260728 = "2026-07-28"
	Version20251125 = "2025-11-25"
	Version20250618 = "2025-06-18"
	Version20250326 = "2025-03-26"
	Version20241105 = "2024-11-05"
)

// settings is what the options decide. It does not change once a server runs.
type settings struct {
	modern       bool
	legacy       string // a revision with Streamable HTTP; "" for none
	sse          bool
	stateless    bool
	tls          bool
	eventStream  bool
	listChanged  bool
	instructions string
	pageSize     int
	ttl          time.Duration
	cacheScope   string
	authenticate func(token string) (tools []Tool, ok bool)
	protection   *protection
	tools        []Tool
}

// Option is a property of a server.
type Option func(*settings)

func newSettings(options []Option) settings {
	s := settings{modern: true, listChanged: true, cacheScope: "private"}
	for _, o := range options {
		o(&s)
	}
	return s
}

// Modern is a stateless server of revision 2026-07-28, and the default.
func Modern() Option {
	return func(s *settings) { s.modern, s.legacy, s.sse = true, "", false }
}

// Legacy is a server of one older revision of Streamable HTTP (2025-11-25,
// 2025-06-18 or 2025-03-26): initialize, sessions, the GET stream and DELETE.
func Legacy(version string) Option {
	return func(s *settings) { s.modern, s.legacy, s.sse = false, version, false }
}

// Dual is a server that speaks 2026-07-28 and one older revision at one address.
func Dual(version string) Option {
	return func(s *settings) { s.modern, s.legacy, s.sse = true, version, false }
}

// HTTPSSE is a server of the HTTP+SSE transport of revision 2024-11-05: a GET
// stream whose first event names the address for messages.
func HTTPSSE() Option {
	return func(s *settings) { s.modern, s.legacy, s.sse = false, "", true }
}

// Stateless makes a [Legacy] server hand out no session ids and offer no GET
// stream.
func Stateless() Option { return func(s *settings) { s.stateless = true } }

// EventStream makes the server answer each request with an event stream instead
// of a JSON body.
func EventStream() Option { return func(s *settings) { s.eventStream = true } }

// WithoutListChanged makes the server declare that it sends no list_changed
// notifications, and offer no stream for them.
func WithoutListChanged() Option { return func(s *settings) { s.listChanged = false } }

// Instructions is what the server says it is for.
func Instructions(text string) Option { return func(s *settings) { s.instructions = text } }

// PageSize is how many tools a page of tools/list holds; 0 is all of them.
func PageSize(tools int) Option { return func(s *settings) { s.pageSize = tools } }

// Cache is the ttlMs and the cacheScope ("public" or "private") of a modern
// server's lists. The default is 0 and "private".
func Cache(ttl time.Duration, scope string) Option {
	return func(s *settings) { s.ttl, s.cacheScope = ttl, scope }
}

// Tools are the tools that the server begins with; see [Server.SetTools].
func Tools(tools ...Tool) Option {
	return func(s *settings) { s.tools = slices.Clone(tools) }
}

// Authenticate makes the server ask for a bearer token. The function judges the
// token of every request and says which tools it opens; nil tools are the server's
// own. Anything else is answered 401 with a challenge.
func Authenticate(judge func(token string) (tools []Tool, ok bool)) Option {
	return func(s *settings) { s.authenticate = judge }
}
