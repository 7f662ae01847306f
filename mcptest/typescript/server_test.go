package typescript_test

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/psych-systems/psych-go/mcptest/typescript"
)

func TestTheServersSpeakMCPInEachMode(t *testing.T) {
	streamable := func(url string) mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: url + "/mcp"} }
	for mode, transport := range map[typescript.Mode]func(url string) mcp.Transport{
		typescript.FirstStateful:  streamable,
		typescript.FirstStateless: streamable,
		typescript.FirstSSE:       func(url string) mcp.Transport { return &mcp.SSEClientTransport{Endpoint: url + "/sse"} },
		typescript.SecondStateful: streamable,
		typescript.SecondModern:   streamable,
		typescript.SecondStream:   streamable,
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			server := typescript.Start(t, mode)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), transport(server.Origin()), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = session.Close() }()
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}})
			if err != nil {
				t.Fatal(err)
			}
			if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != "hello" {
				t.Errorf("echo answers %+v", result.Content[0])
			}
			server.Order("release")
			if server.Printed("ran echo") != 1 {
				t.Error("it does not tell what ran")
			}
		})
	}
}
