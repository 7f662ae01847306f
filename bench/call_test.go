package bench_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/spec"
)

// BenchmarkCalls measures one tool call where several are made at once: as a
// turn of a whole Run, which also starts, resolves, records and ends, and as
// concurrent calls of the bare client.
func BenchmarkCalls(b *testing.B) {
	for _, calls := range []int{1, 64} {
		b.Run(fmt.Sprintf("run/%d", calls), func(b *testing.B) {
			runtime, version := start(b, serve(b), calls)
			perCall(b, calls, func(ctx context.Context) error {
				run, err := runtime.Start(ctx, messages.Scope{Tenant: "acme"}, version, "go")
				if err != nil {
					return err
				}
				_, err = run.Wait(ctx)
				return err
			})
		})
		b.Run(fmt.Sprintf("go-sdk/%d", calls), func(b *testing.B) {
			session := connect(b, serve(b))
			perCall(b, calls, func(ctx context.Context) error {
				group, ctx := errgroup.WithContext(ctx)
				for range calls {
					group.Go(func() error {
						_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{}})
						return err
					})
				}
				return group.Wait()
			})
		})
	}
}

// perCall repeats work that makes a number of calls, and reports the time of one.
func perCall(b *testing.B, calls int, work func(context.Context) error) {
	if err := work(b.Context()); err != nil { // connects
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := work(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*calls), "ns/call")
}

// caller is a model that asks for a number of calls and then is done.
type caller int

// Generate implements model.Port.
func (c caller) Generate(_ context.Context, request model.Request, _ func(string)) (model.Response, error) {
	if len(request.Messages) > 1 {
		return model.Response{Text: "done"}, nil
	}
	var response model.Response
	for i := range int(c) {
		response.ToolCalls = append(response.ToolCalls, model.ToolCall{ID: fmt.Sprint(i), Name: "s__echo", Arguments: "{}"})
	}
	return response, nil
}

func start(b *testing.B, url string, calls int) (*psych.Runtime, spec.Version) {
	runtime, err := psych.New(psych.Options{
		Model:  psych.UseModel(caller(calls)),
		MCP:    &psych.MCP{},
		Egress: egress.Policy{AllowHTTP: true, AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = runtime.Close(context.WithoutCancel(b.Context())) })
	version, err := spec.New(spec.Spec{
		Name: "bench", Model: spec.Model{Model: "none"},
		MCPServers: []spec.Server{{Name: "s", URL: url}},
	})
	if err != nil {
		b.Fatal(err)
	}
	// A benchmark of failures would be a fast one.
	run, err := runtime.Start(b.Context(), messages.Scope{Tenant: "acme"}, version, "go")
	if err != nil {
		b.Fatal(err)
	}
	for record := range run.Records() {
		if ended, ok := record.Entry.(journal.ToolCallFinished); ok && ended.Outcome != journal.OutcomeOK {
			b.Fatalf("a call ended %s: %+v", ended.Outcome, ended.Error)
		}
	}
	return runtime, version
}

func connect(b *testing.B, url string) *mcp.ClientSession {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(transport.CloseIdleConnections)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bare", Version: "1"}, nil).Connect(b.Context(),
		&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: transport}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = session.Close() })
	return session
}
