package mcpwire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
)

type query struct {
	Text   string `json:"text"`
	Region string `json:"region,omitempty"`
}

// sdkServer is go-sdk's own server, with tools of every kind of result.
func sdkServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, &mcp.ServerOptions{Instructions: "Use it well."})
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "says it again"},
		func(_ context.Context, _ *mcp.CallToolRequest, in query) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "structured", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in query) (*mcp.CallToolResult, query, error) {
			return nil, in, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "fails"},
		func(context.Context, *mcp.CallToolRequest, query) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no"}}}, nil, nil
		})
	server.AddTool(&mcp.Tool{Name: "mirrored", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"text":{"type":"string"},"region":{"type":"string","x-mcp-header":"Region"}}}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Extra.Header.Get("Mcp-Param-Region")}}}, nil
		})
	return server
}

// recorder keeps the requests that pass.
type recorder struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []recorded
}

type recorded struct {
	method string
	header map[string]string
	body   any // without the id, which is each client's own
}

// owned are the headers that a client of MCP is answerable for.
var owned = []string{"Accept", "Content-Type", "Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Mcp-Param-Region"}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	seen := recorded{method: request.Method, header: make(map[string]string)}
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		var members map[string]any
		if err := json.Unmarshal(body, &members); err != nil {
			return nil, err
		}
		if _, ok := members["id"]; ok {
			members["id"] = "some"
		}
		seen.body = members
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	for _, field := range owned {
		if value := request.Header.Get(field); value != "" {
			if field == "Mcp-Session-Id" {
				value = "some"
			}
			seen.header[field] = value
		}
	}
	r.mu.Lock()
	r.seen = append(r.seen, seen)
	r.mu.Unlock()
	return r.next.RoundTrip(request)
}

// The same things done through go-sdk's bare client and through this package
// send the same requests, up to the order of members, and bring the same results.
func TestTheWireIsTheSDKs(t *testing.T) {
	calls := []struct{ tool, arguments string }{
		{"echo", `{"text":"größe \u0000 <&>"}`}, {"echo", `{"text":""}`}, {"structured", `{"text":"a","region":"b"}`},
		{"fails", `{"text":"x"}`}, {"mirrored", `{"text":"x","region":"us-west1"}`}, {"mirrored", `{"region":"Zürich "}`},
		{"mirrored", `{"region":null}`}, {"nothing", `{}`}, {"echo", `{}`},
	}
	for name, stateless := range map[string]bool{modern: true, legacy: false} {
		t.Run(name, func(t *testing.T) {
			server := sdkServer()
			peer := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
				&mcp.StreamableHTTPOptions{Stateless: stateless}))
			t.Cleanup(peer.Close)

			theirs := &recorder{next: newClient(t).Transport}
			client := mcp.NewClient(&mcp.Implementation{Name: "psych-go", Version: "0.1.0"},
				&mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
			bare, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: peer.URL, HTTPClient: &http.Client{Transport: theirs}, DisableStandaloneSSE: true,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ours := &recorder{next: newClient(t).Transport}
			s, err := mcpwire.Connect(t.Context(), mcpwire.Options{URL: peer.URL, Client: &http.Client{Transport: ours}}, "")
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.ProtocolVersion(), bare.InitializeResult().ProtocolVersion; got != want || got != name {
				t.Errorf("negotiated %s, the SDK %s", got, want)
			}
			if s.Instructions() != bare.InitializeResult().Instructions {
				t.Errorf("instructions %q", s.Instructions())
			}
			sameTools(t, s, bare)
			for _, c := range calls {
				want, wantErr := bare.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)})
				got, gotErr := s.CallTool(t.Context(), &messages.CallTool{Tool: c.tool, Arguments: []byte(c.arguments)})
				sameResult(t, c.tool+c.arguments, got, gotErr, want, wantErr)
			}
			s.Close()
			if err := bare.Close(); err != nil {
				t.Error(err)
			}
			sameRequests(t, ours.seen, theirs.seen)
		})
	}
}

func sameTools(t *testing.T, s *mcpwire.Session, bare *mcp.ClientSession) {
	t.Helper()
	theirs, err := bare.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ours := list(t, s, "").Tools
	if len(ours) != len(theirs.Tools) {
		t.Fatalf("%d tools, the SDK has %d", len(ours), len(theirs.Tools))
	}
	for i, tool := range theirs.Tools {
		var got any
		if err := json.Unmarshal(ours[i].InputSchema, &got); err != nil {
			t.Fatal(err)
		}
		if ours[i].Name != tool.Name || ours[i].Description != tool.Description || !reflect.DeepEqual(got, tool.InputSchema) {
			t.Errorf("%v is not %v", ours[i], tool)
		}
	}
}

func sameResult(t *testing.T, what string, got *messages.ToolResult, gotErr error, want *mcp.CallToolResult, wantErr error) {
	t.Helper()
	if (gotErr == nil) != (wantErr == nil) {
		t.Errorf("%s: %v, the SDK %v", what, gotErr, wantErr)
	}
	if gotErr != nil || wantErr != nil {
		return
	}
	var texts []string
	for _, block := range want.Content {
		texts = append(texts, block.(*mcp.TextContent).Text)
	}
	var structured any
	if len(got.Structured) > 0 {
		if err := json.Unmarshal(got.Structured, &structured); err != nil {
			t.Error(err)
		}
	}
	if got.Text != strings.Join(texts, "\n") || got.IsError != want.IsError || !reflect.DeepEqual(structured, want.StructuredContent) {
		t.Errorf("%s: %v, the SDK %v", what, got, want)
	}
}

func sameRequests(t *testing.T, ours, theirs []recorded) {
	t.Helper()
	if len(ours) != len(theirs) {
		t.Errorf("%d requests, the SDK sent %d", len(ours), len(theirs))
	}
	for i := range min(len(ours), len(theirs)) {
		if !reflect.DeepEqual(ours[i], theirs[i]) {
			t.Errorf("request %d differs:\nours   %v %v\ntheirs %v %v", i, header(ours[i]), ours[i].body, header(theirs[i]), theirs[i].body)
		}
	}
}

func header(r recorded) []string {
	lines := []string{r.method}
	for _, field := range slices.Sorted(maps.Keys(r.header)) {
		lines = append(lines, field+": "+r.header[field])
	}
	return lines
}
