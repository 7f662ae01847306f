// Package mcpwire promises that one exchange is one request's own affair: what
// goes wrong with a request is a typed [Fault] of that request, and the session
// and every other call on it go on.
//
// It speaks the Model Context Protocol as a client of tools, over Streamable HTTP
// (revision 2026-07-28, and 2025-11-25, 2025-06-18 and 2025-03-26 with their
// sessions) and over the older HTTP+SSE. [Connect] lets go-sdk negotiate the
// revision, once, through a transport of this package, and then lets go of it:
// what follows is written and read here. Bytes of a server stay the bytes that
// came, are bounded, and are never trusted.
//
// A request that may have run is never repeated here; see [Fault.Sent].
package mcpwire
