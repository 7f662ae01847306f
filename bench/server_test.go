package bench_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// answers is what the server says to each method: just enough of an MCP server
// for its own cost to be small beside a client's.
var answers = map[string]string{
	"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
	"tools/list": `{"resultType":"complete","ttlMs":600000,"tools":[{"name":"echo","inputSchema":{"type":"object"},` +
		`"annotations":{"readOnlyHint":true}}]}`,
	"tools/call": `{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`,
}

func serve(b *testing.B) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if result, known := answers[request.Method]; known {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, result)
			return
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, request.ID)
	}))
	b.Cleanup(server.Close)
	return server.URL
}
