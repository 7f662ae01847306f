package bench_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"
)

// bare is go-sdk's client as a program would use it: one session that listed its
// tools, over as many kept connections as there are callers.
type bare struct{ session *mcp.ClientSession }

func newBare(t testing.TB, url string) bare {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bare", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: transport}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return bare{session}
}

// calls is [house.calls] with this client.
func (c bare) calls(t testing.TB, callers, each int) time.Duration {
	t.Helper()
	return together(t, callers, each, func(ctx context.Context) error {
		result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}})
		if err == nil && result.IsError {
			err = fmt.Errorf("a call failed: %v", result.Content)
		}
		return err
	})
}

// together has a number of callers do something as often each, and returns how long
// that took.
func together(t testing.TB, callers, each int, call func(context.Context) error) time.Duration {
	t.Helper()
	began := time.Now()
	group, ctx := errgroup.WithContext(context.Background())
	for range callers {
		group.Go(func() error {
			for range each {
				if err := call(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
