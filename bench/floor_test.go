package bench_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// floor is net/http alone, sending the bytes of a call and throwing the answer
// away: no client can be faster than what it leaves to the server.
type floor struct {
	client *http.Client
	url    string
}

func newFloor(t testing.TB, url string) floor {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	t.Cleanup(client.CloseIdleConnections)
	return floor{client, url}
}

// calls is [house.calls] with this client.
func (f floor) calls(t testing.TB, callers, each int) time.Duration {
	t.Helper()
	return together(t, callers, each, f.call)
}

func (f floor) call(ctx context.Context) error {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"floor","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},` +
		`"name":"echo","arguments":{"text":"hello"}}}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo",
	} {
		request.Header.Set(name, value)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
