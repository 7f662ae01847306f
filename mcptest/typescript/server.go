package typescript

import (
	"embed"
	"testing"

	"github.com/psych-systems/psych-go/mcptest/npm"
)

// Mode is which SDK a server is built with, and how it serves.
type Mode string

// The modes.
const (
	// FirstStateful is the first SDK with Streamable HTTP and sessions.
	FirstStateful Mode = "first stateful"
	// FirstStateless is the first SDK with Streamable HTTP and without sessions.
	FirstStateless Mode = "first stateless"
	// FirstSSE is the first SDK with HTTP+SSE.
	FirstSSE Mode = "first sse"
	// SecondStateful is the second SDK with sessions, as before 2026-07-28.
	SecondStateful Mode = "second stateful"
	// SecondModern is the second SDK's own way of 2026-07-28.
	SecondModern Mode = "second modern"
	// SecondStream is as SecondModern, with each answer as an event stream.
	SecondStream Mode = "second stream"
)

var (
	//go:embed package.json package-lock.json
	packages embed.FS
	//go:embed first.mjs second.mjs tools.mjs
	scripts embed.FS
)

// Start runs a server until the test ends; its endpoint is /mcp, or /sse in mode
// [FirstSSE]. See package npm for what happens on a machine without Node.js.
func Start(tb testing.TB, mode Mode) *npm.Server {
	tb.Helper()
	var sdk, how string
	for _, known := range []struct {
		mode     Mode
		sdk, how string
	}{
		{FirstStateful, "first", "stateful"},
		{FirstStateless, "first", "stateless"},
		{FirstSSE, "first", "sse"},
		{SecondStateful, "second", "stateful"},
		{SecondModern, "second", "auto"},
		{SecondStream, "second", "sse"},
	} {
		if known.mode == mode {
			sdk, how = known.sdk, known.how
		}
	}
	if sdk == "" {
		tb.Fatalf("there is no mode %q", mode)
	}
	directory := npm.Install(tb, "typescript", packages)
	return npm.Serve(tb, directory, npm.Scripts(tb, directory, scripts)+"/"+sdk+".mjs", how)
}
