package mcpwire_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
)

// BenchmarkCallTool measures one tool call through this package and through
// go-sdk's bare client, against the same hand-written peer, so that the client's
// cost is nearly all there is. Compare the two, not the numbers themselves.
func BenchmarkCallTool(b *testing.B) {
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "application/json")
		result := `{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`
		if m.Method == "server/discover" {
			result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	b.Cleanup(peer.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 300}
	b.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}

	b.Run("mcpwire", func(b *testing.B) {
		s, err := mcpwire.Connect(b.Context(), mcpwire.Options{URL: peer.URL, Client: client}, "")
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		c := &messages.CallTool{Tool: "echo", Arguments: []byte(`{"text":"hello"}`)}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.CallTool(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("go-sdk", func(b *testing.B) {
		s, err := mcp.NewClient(&mcp.Implementation{Name: "bare", Version: "1"}, nil).Connect(b.Context(),
			&mcp.StreamableClientTransport{Endpoint: peer.URL, HTTPClient: client}, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		c := &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"text":"hello"}`)}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.CallTool(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkListTools measures a list of 351 tools and 2 MB, new and unchanged.
func BenchmarkListTools(b *testing.B) {
	var tools []string
	for n := range 351 {
		tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","description":"does","inputSchema":{"type":"object","properties":{%s}}}`,
			n, strings.TrimSuffix(strings.Repeat(`"argument":{"type":"string","description":"what it is for"},`, 98), ",")))
	}
	result := `{"resultType":"complete","tools":[` + strings.Join(tools, ",") + `]}`
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "application/json")
		text := result
		if m.Method == "server/discover" {
			text = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
		}
		before, after := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":`, m.ID), `}`
		w.Header().Set("Content-Length", fmt.Sprint(len(before)+len(text)+len(after)))
		for _, part := range []string{before, text, after} {
			_, _ = io.WriteString(w, part)
		}
	}))
	b.Cleanup(peer.Close)
	client := &http.Client{Transport: &http.Transport{}}
	b.Cleanup(client.CloseIdleConnections)
	s, err := mcpwire.Connect(b.Context(), mcpwire.Options{URL: peer.URL, Client: client}, "")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	first, err := s.ListTools(b.Context(), "", "")
	if err != nil {
		b.Fatal(err)
	}
	for name, etag := range map[string]string{"new": "", "unchanged": first.GetEtag()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(result)))
			for b.Loop() {
				if _, err := s.ListTools(b.Context(), "", etag); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
