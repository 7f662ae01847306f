// Package psych promises many tenants in one process, each with its own agents,
// MCP servers and credentials: a token of one tenant is never sent on another
// tenant's call, every tool call ends in exactly one recorded outcome, and a
// bad server costs only its own call.
//
// A [Runtime] is made once per process by [New]. It starts Runs of registered
// Specs with [Runtime.Start]; each is followed through its [Run]. The runtime
// holds one pool of connections, one for each combination of tenant, principal,
// server URL, transport and resolved credential.
//
// Every failure is a type of package failure and is found with errors.As.
package psych
