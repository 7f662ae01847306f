package interop_test

import (
	"fmt"
	"testing"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/mcptest/everything"
	"github.com/psych-systems/psych-go/mcptest/npm"
	"github.com/psych-systems/psych-go/mcptest/typescript"
	"github.com/psych-systems/psych-go/messages"
)

// server is a running server of others. Only the test's goroutine gives it orders
// and stops and starts it.
type server interface {
	Origin() string
	// Requests is what reached it over all its lives, oldest first.
	Requests() []mcptest.Request
	// Ran counts how often a tool ran over all its lives.
	Ran(tool string) int
	// Order changes its tools ("add NAME", "remove NAME") and has that told, ends its
	// streams of changes in order ("end"), or does nothing. What had reached it and
	// what ran before is known when it returns.
	Order(order string)
	// CutStreams breaks its streams of changes.
	CutStreams()
	// Stop ends it at once, with all its connections and all that it remembers.
	Stop()
	// Start starts it again at the same address.
	Start()
}

// peer is what is known of one way in which others serve MCP.
type peer struct {
	start     func(testing.TB) server
	path      string
	transport messages.Transport
	// revision is what has to be negotiated.
	revision string
	// tools is what it lists, in order of names.
	tools string
	// echo is the arguments and the result of its tool "echo" for a text.
	echo func(text string) (arguments, result string)
	// slow is a tool that runs until the server ends, with its arguments.
	slow, slowly string
	// ours says that it has the tools that are ours; see package typescript.
	ours bool
	// tells says that it tells of changes, ends that it can end the stream in order.
	tells, ends bool
	// sessions says that it gives sessions, remembers that a tool can keep state in
	// one.
	sessions, remembers bool
	// resumes says that the stream of a call's answer can be taken up again.
	resumes bool
	// unknown is how it fails a call of a tool that it does not have.
	unknown failure.Kind
}

// ourTools is what a peer with our tools lists.
const ourTools = "add counter echo fail gone grow slow whoami"

// ours is a peer that was given our tools.
func ours(start func(testing.TB) server, revision string, unknown failure.Kind) peer {
	return peer{
		start: start, path: "/mcp", transport: messages.TransportHTTP, revision: revision, tools: ourTools,
		echo: func(text string) (string, string) { return fmt.Sprintf(`{"text":%q}`, text), text },
		slow: "slow", slowly: `{}`, ours: true, unknown: unknown,
	}
}

// listens says that it opens a stream of changes when it is asked to.
func (p peer) listens() bool { return p.tells || p.sessions }

func (p peer) telling() peer  { p.tells = true; return p }
func (p peer) ending() peer   { p.ends = true; return p }
func (p peer) stateful() peer { p.sessions, p.remembers = true, true; return p }

// scripted is a server that a script runs as.
type scripted struct{ *npm.Server }

func (s scripted) Ran(tool string) int { return s.Printed("ran " + tool) }

func built(mode typescript.Mode) func(testing.TB) server {
	return func(t testing.TB) server { return scripted{typescript.Start(t, mode)} }
}

// reference is the reference server. It does not tell what ran, so a call counts
// that reached it.
type reference struct{ *npm.Server }

func (r reference) Ran(tool string) int {
	count := 0
	for _, request := range r.Requests() {
		if request.About(mcptest.CallOf(tool)) {
			count++
		}
	}
	return count
}

func everythingIn(mode, path string, transport messages.Transport, revision string) peer {
	return peer{
		start: func(t testing.TB) server { return reference{everything.Serve(t, mode)} },
		path:  path, transport: transport, revision: revision,
		echo: func(text string) (string, string) { return fmt.Sprintf(`{"message":%q}`, text), "Echo: " + text },
		slow: "trigger-long-running-operation", slowly: `{"duration":60,"steps":1}`, sessions: true,
		resumes: transport == messages.TransportHTTP,
		tools: "echo get-annotated-message get-env get-resource-links get-resource-reference get-structured-content get-sum " +
			"get-tiny-image gzip-file-as-resource simulate-research-query toggle-simulated-logging toggle-subscriber-updates " +
			"trigger-long-running-operation",
	}
}

// peers are all of them.
var peers = map[string]peer{
	"server-everything":           everythingIn(everything.StreamableHTTP, "/mcp", messages.TransportHTTP, "2025-11-25"),
	"server-everything, HTTP+SSE": everythingIn(everything.SSE, "/sse", messages.TransportSSE, "2025-11-25"),

	"TypeScript SDK 1, stateful":  ours(built(typescript.FirstStateful), "2025-11-25", failure.KindMcpToolError).telling().ending().stateful(),
	"TypeScript SDK 1, stateless": ours(built(typescript.FirstStateless), "2025-11-25", failure.KindMcpToolError),
	"TypeScript SDK 1, HTTP+SSE":  overSSE(ours(built(typescript.FirstSSE), "2025-11-25", failure.KindMcpToolError).telling()),

	"TypeScript SDK 2, stateful": ours(built(typescript.SecondStateful), "2025-11-25", failure.KindMcpProtocolError).telling().ending().stateful(),
	"TypeScript SDK 2":           ours(built(typescript.SecondModern), "2026-07-28", failure.KindMcpProtocolError).telling(),
	"TypeScript SDK 2, streams":  ours(built(typescript.SecondStream), "2026-07-28", failure.KindMcpProtocolError).telling(),

	"Go SDK, stateless":       ours(goSDK(true, false), "2026-07-28", failure.KindMcpProtocolError).telling(),
	"Go SDK, stateless, JSON": ours(goSDK(true, true), "2026-07-28", failure.KindMcpProtocolError).telling(),
	"Go SDK, stateful":        ours(goSDK(false, false), "2025-11-25", failure.KindMcpProtocolError).telling().stateful(),
	"Go SDK, stateful, JSON":  ours(goSDK(false, true), "2025-11-25", failure.KindMcpProtocolError).telling().stateful(),

	"mcp-go":            ours(mcpGo(mcpGoModern), "2026-07-28", failure.KindMcpProtocolError).telling(),
	"mcp-go, stateful":  ours(mcpGo(mcpGoStateful), "2025-11-25", failure.KindMcpProtocolError).telling().stateful(),
	"mcp-go, stateless": ours(mcpGo(mcpGoStateless), "2025-11-25", failure.KindMcpProtocolError),
}

func overSSE(p peer) peer {
	p.path, p.transport, p.sessions, p.remembers = "/sse", messages.TransportSSE, true, true
	return p
}
