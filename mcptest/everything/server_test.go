package everything_test

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/psych-systems/psych-go/mcptest/everything"
)

func TestTheServerSpeaksMCPInEachMode(t *testing.T) {
	for mode, transport := range map[string]func(url string) mcp.Transport{
		everything.StreamableHTTP: func(url string) mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: url} },
		everything.SSE:            func(url string) mcp.Transport { return &mcp.SSEClientTransport{Endpoint: url} },
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), transport(everything.Start(t, mode)), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = session.Close() }()
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hello"}})
			if err != nil {
				t.Fatal(err)
			}
			if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != "Echo: hello" {
				t.Errorf("echo answers %+v", result.Content[0])
			}
		})
	}
}
