// Package egress promises that no byte leaves the process for an address that
// the policy keeps closed, and that no answer takes more memory than the ceiling
// allows.
//
// Every request to an MCP server, an authorization server or a model goes
// through a client of an [Egress]. What is judged, and when:
//
//   - Before a request is written: its scheme, its host against the host rules,
//     and its address where the URL holds one. This is done for each request,
//     also on a connection that was kept from an earlier one.
//   - When a socket is opened: the resolved address, at the last moment before
//     the system connects to it. The judged address is the one that is dialled,
//     so that a name that resolves differently the second time gains nothing.
//   - When a redirect becomes a request: it must stay on its origin (scheme, host
//     and port) and keep its method. Nothing, credentials least of all, follows a
//     redirect to another origin.
//
// Addresses are judged by the registries of special-purpose addresses, IPv4 and
// IPv6 (RFC 6890): private, loopback, link-local, shared, multicast, metadata and
// the like are closed unless [Policy.AllowCIDRs] opens them. Ports are not
// restricted. Scheme and address are judged apart: opening a network does not
// allow plain http to it.
//
// Connections are kept and shared between tenants only where their policies come
// to the same. Proxy variables of the environment are ignored, and there are no
// cookies.
//
// # Answers
//
// A body is counted while it is read, after decompression, whatever its status.
// Beyond the ceiling its reader fails with [failure.McpResponseTooLarge], and the
// connection is closed with the rest unread; a Content-Length beyond the ceiling
// fails the first read.
//
// An event stream lives for as long as its server has something to tell, and a
// ceiling on its whole life would end a healthy one. So a tenant's client does
// not count an answer that is a successful text/event-stream where the request's
// Accept field asked for exactly that: whoever asks for event streams bounds each
// event, and each exchange, by itself. A request that did not ask for one cannot
// be answered with one to escape the ceiling. A model's event stream ends with
// its reply and is counted, against a multiple of the ceiling.
//
// # Failures
//
// What the policy closes is [failure.EgressDenied], found with errors.As through
// whatever net/http wraps around it; its sentence names the setting that opens
// what is closed, and holds neither a query nor a user name. Show that sentence
// and never the text of the *url.Error around it, which holds the whole URL.
package egress
