package interop_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goSDKLife is a server of the official Go SDK.
type goSDKLife struct {
	http.Handler
	host   *hosted
	server *mcp.Server

	mu    sync.Mutex
	count map[string]int // calls of counter, by session
}

func goSDK(stateless, json bool) func(testing.TB) server {
	return func(t testing.TB) server {
		return host(t, func(host *hosted) life {
			l := &goSDKLife{host: host, count: map[string]int{}}
			l.server = mcp.NewServer(&mcp.Implementation{Name: "go-sdk", Version: "1"}, &mcp.ServerOptions{
				Instructions: "Use it well.",
				SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs = int(time.Hour.Milliseconds()) },
			})
			l.equip()
			l.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return l.server },
				&mcp.StreamableHTTPOptions{Stateless: stateless, JSONResponse: json})
			return l
		})
	}
}

// tool adds a tool that says something.
func tool[In any](l *goSDKLife, name string, run func(context.Context, *mcp.CallToolRequest, In) (string, error)) {
	mcp.AddTool(l.server, goSDKTool(name), func(ctx context.Context, request *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		l.host.runs(name)
		said, err := run(ctx, request, in)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil, err
	})
}

func goSDKTool(name string) *mcp.Tool {
	return &mcp.Tool{Name: name, Description: "Does " + name + ".", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
}

func (l *goSDKLife) equip() {
	type nothing struct{}
	over := l.host.over
	tool(l, "echo", func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	})
	tool(l, "fail", func(context.Context, *mcp.CallToolRequest, nothing) (string, error) {
		return "", errors.New("it broke")
	})
	tool(l, "slow", func(context.Context, *mcp.CallToolRequest, nothing) (string, error) {
		<-over
		return "", errors.New("the server ended")
	})
	tool(l, "counter", func(_ context.Context, request *mcp.CallToolRequest, _ nothing) (string, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.count[request.Session.ID()]++
		return fmt.Sprint(l.count[request.Session.ID()]), nil
	})
	tool(l, "whoami", func(_ context.Context, request *mcp.CallToolRequest, _ nothing) (string, error) {
		return request.Extra.Header.Get("Authorization"), nil
	})
	tool(l, "grow", func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Name string `json:"name"`
	}) (string, error) {
		l.host.Order("add " + in.Name)
		return "grown", nil
	})
	type sum struct {
		Sum float64 `json:"sum"`
	}
	mcp.AddTool(l.server, goSDKTool("add"), func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}) (*mcp.CallToolResult, sum, error) {
		l.host.runs("add")
		return nil, sum{in.A + in.B}, nil
	})
	l.change("add", "gone")
}

func (l *goSDKLife) change(what, name string) {
	if what == "remove" {
		l.server.RemoveTools(name)
		return
	}
	tool(l, name, func(context.Context, *mcp.CallToolRequest, struct{}) (string, error) { return name, nil })
}

func (l *goSDKLife) close() {
	for session := range l.server.Sessions() {
		_ = session.Close()
	}
}
