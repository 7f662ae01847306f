// Package interop promises that a Run has one story with every MCP server that
// others wrote: what it is offered, what its calls come to, what it learns of
// changes, and what a broken stream and a restart of the server cost it.
//
// It holds nothing but that story, as tests. docs/interop.md names the servers.
package interop
