package everything

import (
	"embed"
	"testing"

	"github.com/psych-systems/psych-go/mcptest/npm"
)

// The modes in which the server can be started.
const (
	// StreamableHTTP is the transport of the revisions from 2025-03-26 on.
	StreamableHTTP = "streamableHttp"
	// SSE is HTTP+SSE, the transport of revision 2024-11-05.
	SSE = "sse"
)

//go:embed package.json package-lock.json
var folder embed.FS

// paths are where the endpoints of the modes are.
var paths = map[string]string{StreamableHTTP: "/mcp", SSE: "/sse"}

// Start runs the server in a mode until the test ends, and returns the URL of
// its endpoint. See package npm for what happens on a machine without Node.js.
func Start(tb testing.TB, mode string) (url string) {
	tb.Helper()
	return Serve(tb, mode).Origin() + paths[mode]
}

// Serve runs the server as [Start] does, for a test that watches it, stops it and
// starts it again.
func Serve(tb testing.TB, mode string) *npm.Server {
	tb.Helper()
	if paths[mode] == "" {
		tb.Fatalf("the server has no mode %q", mode)
	}
	directory := npm.Install(tb, "everything", folder)
	return npm.Serve(tb, directory, "node_modules/@modelcontextprotocol/server-everything/dist/index.js", mode)
}
