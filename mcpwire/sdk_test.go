package mcpwire_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type echoInput struct {
	Text string `json:"text"`
}

func sdkServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, &mcp.ServerOptions{Instructions: "Use it well."})
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "says it again"},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
	return server
}

func TestSmoke(t *testing.T) {
	for name, stateless := range map[string]bool{"stateless": true, "stateful": false} {
		t.Run(name, func(t *testing.T) {
			server := sdkServer()
			peer := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
				&mcp.StreamableHTTPOptions{Stateless: stateless}))
			t.Cleanup(peer.Close)
			client := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(client.CloseIdleConnections)
			s, err := mcpwire.Connect(t.Context(), mcpwire.Options{URL: peer.URL, Client: client}, "")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			t.Log(s.ProtocolVersion(), s.Instructions())
			l, err := s.ListTools(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			t.Log(l)
			r, err := s.CallTool(t.Context(), &messages.CallTool{Tool: "echo", Arguments: []byte(`{"text":"hi"}`)})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r)
		})
	}
}
