package mcptest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/psych-systems/psych-go/mcptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bearer is a client that sends a token with everything.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.RoundTripper.RoundTrip(r)
}

func newClient(t *testing.T, token string) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: bearer{transport, token}}
}

// connect connects the SDK's own client.
func connect(t *testing.T, s *mcptest.Server, token string, changed func()) (*mcp.ClientSession, error) {
	var options mcp.ClientOptions
	if changed != nil {
		options.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { changed() }
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &options)
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: s.URL(), HTTPClient: newClient(t, token)}
	if strings.HasSuffix(s.URL(), "/sse") {
		transport = &mcp.SSEClientTransport{Endpoint: s.URL(), HTTPClient: newClient(t, token)}
	}
	session, err := client.Connect(t.Context(), transport, nil)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

// peers is every kind of server that can be started.
var peers = map[string][]mcptest.Option{
	"2026-07-28":                 {mcptest.Modern()},
	"2026-07-28 in events":       {mcptest.Modern(), mcptest.EventStream()},
	"2025-11-25":                 {mcptest.Legacy(mcptest.Version20251125)},
	"2025-11-25 in events":       {mcptest.Legacy(mcptest.Version20251125), mcptest.EventStream()},
	"2025-06-18":                 {mcptest.Legacy(mcptest.Version20250618)},
	"2025-03-26":                 {mcptest.Legacy(mcptest.Version20250326)},
	"2025-11-25 without session": {mcptest.Legacy(mcptest.Version20251125), mcptest.Stateless()},
	"2024-11-05":                 {mcptest.HTTPSSE()},
	"2026-07-28 and 2025-11-25":  {mcptest.Dual(mcptest.Version20251125)},
}

func version(name string) string { return strings.Fields(name)[0] }

var echo = mcptest.Tool{
	Name: "echo", Description: "Says it again.",
	InputSchema: `{"type":"object","properties":{"text":{"type":"string","x-mcp-header":"Text"},"in":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}`,
	Annotations: `{"readOnlyHint":true}`,
	Call: func(_ context.Context, call mcptest.Call) mcptest.Result {
		call.Notify("notifications/message", `{"level":"info","data":"working"}`)
		var arguments struct{ Text string }
		if json.Unmarshal(call.Arguments, &arguments) != nil {
			return mcptest.ToolError("no text")
		}
		return mcptest.Text(arguments.Text)
	},
}

func TestTheSDKFindsNothingWrongWithAnOrdinaryServer(t *testing.T) {
	for name, options := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools := []mcptest.Tool{echo}
			for i := range 4 {
				tools = append(tools, mcptest.Tool{Name: fmt.Sprintf("tool-%d", i)})
			}
			s := mcptest.NewServer(t, append(options, mcptest.Tools(tools...), mcptest.PageSize(2), mcptest.Instructions("Use it well."))...)
			changed := make(chan struct{}, 1)
			session, err := connect(t, s, "", func() { changed <- struct{}{} })
			if err != nil {
				t.Fatal(err)
			}
			if got := session.InitializeResult(); got.ProtocolVersion != version(name) || got.Instructions != "Use it well." {
				t.Errorf("the session is %+v", got)
			}
			listed := 0
			for tool, err := range session.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				if tool.Name == "echo" && !tool.Annotations.ReadOnlyHint {
					t.Error("the annotations are lost")
				}
				listed++
			}
			if listed != len(tools) {
				t.Errorf("%d tools of %d", listed, len(tools))
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{
				Name: "echo", Arguments: map[string]any{"text": "größe ", "in": map[string]any{"n": 7}},
			})
			if err != nil || result.Content[0].(*mcp.TextContent).Text != "größe " {
				t.Errorf("got %+v (%v)", result, err)
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "none"}); err == nil {
				t.Error("a tool that is none was called")
			}
			if strings.Contains(name, "without session") {
				return
			}
			s.WaitStreams(1)
			s.SetTools(echo)
			if told := s.NotifyToolsChanged(); told != 1 {
				t.Errorf("%d streams were told", told)
			}
			<-changed
			if got, err := session.ListTools(t.Context(), nil); err != nil || len(got.Tools) != 1 {
				t.Errorf("got %+v (%v)", got, err)
			}
		})
	}
}

func TestAServerSaysHowLongItsListsLastAndWhatItWillNotTell(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.Cache(90*time.Second, "public"), mcptest.WithoutListChanged(), mcptest.Tools(
		mcptest.Tool{Name: "fails", OutputSchema: `{"type":"object"}`, Call: func(context.Context, mcptest.Call) mcptest.Result { return mcptest.ToolError("out of paper") }},
		mcptest.Tool{Name: "odd", Definition: `{"name":7}`},
	))
	got := send(newClient(t, ""), request(t, s, "tools/list", ""))
	for _, part := range []string{`"ttlMs":90000,"cacheScope":"public"`, `"outputSchema":{"type":"object"}`, `,{"name":7}]`} {
		if !strings.Contains(got.body, part) {
			t.Errorf("%s lacks %s", got.body, part)
		}
	}
	if got := send(newClient(t, ""), callRequest(t, s, "fails")); !strings.Contains(got.body, `"text":"out of paper"}],"isError":true`) {
		t.Errorf("got %s", got.body)
	}
	answer := make(chan seen)
	go func() {
		answer <- send(newClient(t, ""), request(t, s, "subscriptions/listen", `"notifications":{"toolsListChanged":true},`))
	}()
	s.WaitStreams(1)
	if s.NotifyToolsChanged() != 0 || s.Notify("notifications/prompts/list_changed") != 1 {
		t.Error("the wrong streams were told")
	}
	s.CloseStreams()
	if got := <-answer; !strings.Contains(got.body, `"notifications":{}`) || !strings.Contains(got.body, "prompts/list_changed") {
		t.Errorf("got %s", got.body)
	}
	s.Forget()
	if left := s.Requests(mcptest.Any); len(left) != 0 {
		t.Errorf("the log holds %d requests", len(left))
	}
}
