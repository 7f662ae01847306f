package psych_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model/scripted"
	"github.com/psych-systems/psych-go/spec"
)

// weather starts an MCP server on loopback.
func weather() (url string, stop func()) {
	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	type place struct {
		City string `json:"city"`
	}
	mcp.AddTool(server, &mcp.Tool{
		Name: "forecast", Description: "Tells tomorrow's weather.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(_ context.Context, _ *mcp.CallToolRequest, in place) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "sun over " + in.City}}}, nil, nil
	})
	listening := httptest.NewServer(mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server }, nil))
	return listening.URL, func() {
		for session := range server.Sessions() {
			_ = session.Close()
		}
		listening.Close()
	}
}

// A Run asks its model, calls the tools of its servers, and answers.
func Example() {
	url, stop := weather()
	defer stop()
	ctx := context.Background()

	runtime, err := psych.New(psych.Options{
		// In production: psych.OpenAI("https://api.openai.com/v1", key).
		Model: psych.UseModel(scripted.New(
			scripted.Turn{ToolCalls: []scripted.Call{{Name: "weather__forecast", Arguments: map[string]any{"city": "Oslo"}}}},
			scripted.Turn{Text: "Take no umbrella."},
		)),
		MCP: &psych.MCP{},
		// Loopback is closed unless it is opened; public https is not.
		Egress: egress.Policy{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, AllowHTTP: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = runtime.Close(ctx) }()

	version, err := spec.New(spec.Spec{
		Name: "packing", Model: spec.Model{Model: "any"},
		MCPServers: []spec.Server{{Name: "weather", URL: url}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := runtime.Start(ctx, messages.Scope{Tenant: "acme"}, version, "Do I need an umbrella in Oslo?")
	if err != nil {
		fmt.Println(err)
		return
	}
	for record := range run.Records() {
		if call, ok := record.Entry.(journal.ToolCallFinished); ok {
			fmt.Println(call.Name, call.Outcome+":", call.Result)
		}
	}
	result, err := run.Wait(ctx)
	fmt.Println(result.State+":", result.Text, err)
	// Output:
	// weather__forecast ok: sun over Oslo
	// completed: Take no umbrella. <nil>
}

// A host tool is a Go function with typed arguments.
func ExampleNewTool() {
	type order struct {
		Number string `json:"number" jsonschema:"the order's number"`
	}
	lookup := psych.NewTool("lookup_order", "Finds an order.",
		func(_ context.Context, scope messages.Scope, in order) (string, error) {
			return fmt.Sprintf("order %s of %s has shipped", in.Number, scope.Tenant), nil
		}).ReadOnly()

	ctx := context.Background()
	runtime, err := psych.New(psych.Options{
		Tools: []psych.HostTool{lookup},
		Model: psych.UseModel(scripted.New(
			scripted.Turn{ToolCalls: []scripted.Call{{Name: "lookup_order", Arguments: map[string]any{"number": "7"}}}},
			scripted.Turn{Text: "It has shipped."},
		)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = runtime.Close(ctx) }()
	version, err := spec.New(spec.Spec{Name: "support", Model: spec.Model{Model: "any"}, Tools: []string{"lookup_order"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := runtime.Start(ctx, messages.Scope{Tenant: "acme"}, version, "Where is order 7?")
	if err != nil {
		fmt.Println(err)
		return
	}
	for record := range run.Records() {
		if call, ok := record.Entry.(journal.ToolCallFinished); ok {
			fmt.Println(call.Result)
		}
	}
	// Output: order 7 of acme has shipped
}

// Tools tells what a Run would be offered now, and which plane took the rest
// away.
func ExampleRuntime_Tools() {
	url, stop := weather()
	defer stop()
	ctx := context.Background()
	runtime, err := psych.New(psych.Options{
		MCP:     &psych.MCP{},
		Egress:  egress.Policy{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, AllowHTTP: true},
		Tenants: map[string]psych.Tenant{"globex": {Allow: map[string][]string{"weather": {"history"}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = runtime.Close(ctx) }()
	version, err := spec.New(spec.Spec{
		Name: "packing", Model: spec.Model{Model: "any"},
		MCPServers: []spec.Server{{Name: "weather", URL: url}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tenant := range []string{"acme", "globex"} {
		shown, err := runtime.Tools(ctx, messages.Scope{Tenant: tenant}, version)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, tool := range shown.Tools {
			fmt.Printf("%s: %s callable=%v excluded_by=%q\n", tenant, tool.Name, tool.Callable, tool.ExcludedBy)
		}
	}
	// Output:
	// acme: weather__forecast callable=true excluded_by=""
	// globex: weather__forecast callable=false excluded_by="tenant"
}
