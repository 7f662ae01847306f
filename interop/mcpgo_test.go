package interop_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// mcpGoLife is a server of mcp-go.
type mcpGoLife struct {
	http.Handler
	host   *hosted
	server *mcpserver.MCPServer
	end    func()

	mu    sync.Mutex
	count map[string]int // calls of counter, by session
}

// The ways in which mcp-go serves.
var (
	mcpGoModern    []mcpserver.StreamableHTTPOption
	mcpGoStateful  = []mcpserver.StreamableHTTPOption{mcpserver.WithStateful(true), mcpserver.WithStreamableHTTPProtocolVersions("2025-11-25")}
	mcpGoStateless = []mcpserver.StreamableHTTPOption{
		mcpserver.WithStateLess(true), mcpserver.WithDisableStreaming(true), mcpserver.WithStreamableHTTPProtocolVersions("2025-11-25"),
	}
)

func mcpGo(options []mcpserver.StreamableHTTPOption) func(testing.TB) server {
	return func(t testing.TB) server {
		return host(t, func(host *hosted) life {
			l := &mcpGoLife{host: host, count: map[string]int{}}
			l.server = mcpserver.NewMCPServer("mcp-go", "1", mcpserver.WithInstructions("Use it well."), mcpserver.WithToolCapabilities(true),
				mcpserver.WithCacheHints(time.Hour.Milliseconds(), "private"))
			l.equip()
			handler := mcpserver.NewStreamableHTTPServer(l.server, options...)
			l.Handler = handler
			l.end = func() { _ = handler.Shutdown(context.Background()) }
			return l
		})
	}
}

func (l *mcpGoLife) tool(name string, run func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error), options ...mcp.ToolOption) {
	options = append(options, mcp.WithDescription("Does "+name+"."), mcp.WithReadOnlyHintAnnotation(true))
	l.server.AddTool(mcp.NewTool(name, options...), func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		l.host.runs(name)
		return run(ctx, request)
	})
}

func (l *mcpGoLife) equip() {
	over := l.host.over
	said := func(text string) (*mcp.CallToolResult, error) { return mcp.NewToolResultText(text), nil }
	l.tool("echo", func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return said(request.GetString("text", ""))
	}, mcp.WithString("text", mcp.Required()))
	l.tool("add", func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		sum := map[string]any{"sum": request.GetFloat("a", 0) + request.GetFloat("b", 0)}
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: sum}, nil
	}, mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required()))
	l.tool("fail", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("it broke"), nil
	})
	l.tool("slow", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-over
		return nil, errors.New("the server ended")
	})
	l.tool("counter", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		id := mcpserver.ClientSessionFromContext(ctx).SessionID()
		l.count[id]++
		return said(fmt.Sprint(l.count[id]))
	})
	l.tool("whoami", func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return said(request.Header.Get("Authorization"))
	})
	l.tool("grow", func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		l.host.Order("add " + request.GetString("name", ""))
		return said("grown")
	}, mcp.WithString("name", mcp.Required()))
	l.change("add", "gone")
}

func (l *mcpGoLife) change(what, name string) {
	if what == "remove" {
		l.server.DeleteTools(name)
		return
	}
	l.tool(name, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(name), nil
	})
}

func (l *mcpGoLife) close() { l.end() }
