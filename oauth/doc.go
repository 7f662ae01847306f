// Package oauth promises that each step of an authorization is one request, or
// one decision, whose answer is checked before anything of it is used.
//
// It holds the steps of OAuth 2.1 as MCP uses it (MCP 2026-07-28, "Authorization",
// and what 2025-11-25 and 2025-03-26 did before it), each a function:
//
//   - from a refused request to its resource's metadata (RFC 9728): [Bearer],
//     [Client.DiscoverResource], [PickServer]
//   - from there to an authorization server's metadata (RFC 8414, OpenID Connect
//     Discovery 1.0): [Client.DiscoverServer], [Client.LegacyServer]
//   - to a client (RFC 7591): [Client.Register], [AuthMethod]
//   - to a person's consent (PKCE, RFC 7636; RFC 9207): [Client.AuthorizationURL],
//     [ReadCallback]
//   - to a token (RFC 6749, RFC 7523, RFC 8707), and away from it (RFC 7009):
//     [Client.Exchange], [Client.Refresh], [Client.ClientCredentials], [Client.Revoke]
//
// Nothing is remembered between two steps, nothing is stored, nothing runs on.
// Whoever calls keeps what one step returned for the next.
//
// # What is never done
//
//   - A code, a token, a secret or an assertion is in no URL that is sent, and in
//     no error and no log line.
//   - A request that carries one follows no redirect. A metadata request follows
//     redirects on its own origin only.
//   - One request authenticates its client in one way; nothing is tried twice.
//   - A document leads to https endpoints, to http only where the MCP server itself
//     is http, and to loopback only where the MCP server itself is there. Which
//     networks are open beyond that is for the egress to say, at each hop.
//   - A server that has resource metadata is never treated as one without.
//
// # Failures
//
// Errors are told apart by what the caller does about them: [Temporary],
// [GrantEnded], [ClientForgotten], [Denied] and [Unusable]. What the egress
// refuses comes through as it is.
package oauth
