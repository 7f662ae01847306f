package pool_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/catalog"
	"github.com/psych-systems/psych-go/actors/connection"
	"github.com/psych-systems/psych-go/actors/pool"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
)

// wire dials servers over real sockets.
type wire struct{ client *http.Client }

func (w wire) Dial(ctx context.Context, target *messages.Target) (connection.Session, error) {
	return mcpwire.Connect(ctx, mcpwire.Options{
		URL: target.GetKey().GetUrl(), Transport: messages.Transport(target.GetKey().GetTransport()),
		Client: w.client, Server: target.GetServer(),
	}, target.GetCredential())
}

// onWire runs a story with a pool whose connections are real.
func onWire(t *testing.T, story func(t *testing.T, h *house)) {
	t.Helper()
	transport := &http.Transport{}
	h := &house{system: supervision.NewSystem(zap.NewNop())}
	h.pool = h.system.Root.Spawn(pool.Props(pool.Deps{Logger: zap.NewNop(), Connection: func(key messages.PoolKey) *actor.Props {
		return connection.Props(key, connection.Deps{
			Logger: zap.NewNop(), Dialer: wire{&http.Client{Transport: transport}},
			Catalog: func(source connection.Source) *actor.Props {
				return catalog.Props(catalog.Deps{Logger: zap.NewNop(), Source: source})
			},
		})
	}}))
	story(t, h)
	if err := h.system.Root.StopFuture(h.pool).Wait(); err != nil {
		t.Error(err)
	}
	h.system.Shutdown()
	transport.CloseIdleConnections()
}

func at(t *testing.T, server *mcptest.Server, transport messages.Transport) *messages.Target {
	t.Helper()
	key, err := messages.NewPoolKey(messages.Scope{Tenant: "acme"}, server.URL(), transport, "")
	if err != nil {
		t.Fatal(err)
	}
	return &messages.Target{Key: key.Message(), Server: "crm"}
}

// names lists the tools by name, or says why not.
func names(t *testing.T, h *house, to *messages.Target, fresh bool) string {
	t.Helper()
	got := ask[*messages.Catalogue](t, h, &messages.GetCatalogue{RequestId: "c", Target: to, Fresh: fresh})
	if got.GetFailure() != nil {
		return got.GetFailure().GetKind()
	}
	var tools []string
	for _, tool := range got.GetSnapshot().GetTools() {
		tools = append(tools, tool.GetName())
	}
	return strings.Join(tools, " ")
}

// TestALifeOnTheWire is a connection's life with a real server of each era: it
// lists and calls, sees a change, loses an answer, loses its streams, and outlives
// a restart of the server.
func TestALifeOnTheWire(t *testing.T) {
	for name, era := range map[string]struct {
		option    mcptest.Option
		transport messages.Transport
	}{
		mcptest.Version20260728: {mcptest.Modern(), messages.TransportHTTP},
		mcptest.Version20251125: {mcptest.Legacy(mcptest.Version20251125), messages.TransportHTTP},
		mcptest.Version20250618: {mcptest.Legacy(mcptest.Version20250618), messages.TransportHTTP},
		mcptest.Version20250326: {mcptest.Legacy(mcptest.Version20250326), messages.TransportHTTP},
		mcptest.Version20241105: {mcptest.HTTPSSE(), messages.TransportSSE},
	} {
		t.Run(name, func(t *testing.T) {
			server := mcptest.NewServer(t, era.option, mcptest.Tools(mcptest.Tool{Name: "find"}), mcptest.Cache(time.Hour, "private"))
			onWire(t, func(t *testing.T, h *house) {
				to := at(t, server, era.transport)
				if got := names(t, h, to, false); got != "find" {
					t.Fatalf("listed are %s", got)
				}
				find := func(id string) *messages.CallTool {
					return &messages.CallTool{CallId: id, Target: to, Tool: "find", Arguments: []byte(`{}`)}
				}
				if got := outcome(ask[*messages.CallDone](t, h, find("1"))); got != "ok" {
					t.Errorf("the call ended %s", got)
				}
				server.WaitStreams(1)
				changes := func(tools ...string) {
					t.Helper()
					var offered []mcptest.Tool
					for _, tool := range tools {
						offered = append(offered, mcptest.Tool{Name: tool})
					}
					server.SetTools(offered...)
				}
				changes("find", "more")
				server.NotifyToolsChanged()
				eventually(t, "an announced change is seen", func() bool { return names(t, h, to, false) == "find more" })

				server.On(mcptest.CallOf("find"), mcptest.Execute().Then(mcptest.Reset()).Once())
				lost := ask[*messages.CallDone](t, h, find("2"))
				if era.transport == messages.TransportHTTP && outcome(lost) != "OutcomeUnknown, sent" {
					t.Errorf("a call whose answer was lost ended %s", outcome(lost))
				}
				eventually(t, "the next call is answered", func() bool {
					return outcome(ask[*messages.CallDone](t, h, find("3"))) == "ok"
				})

				changes("other")
				server.CloseStreams()
				eventually(t, "a change in the gap is seen", func() bool { return names(t, h, to, false) == "other" })

				changes("find")
				server.Restart()
				eventually(t, "the server is back", func() bool {
					return names(t, h, to, true) == "find" && outcome(ask[*messages.CallDone](t, h, find("4"))) == "ok"
				})
			})
		})
	}
}

// TestAChangeDuringAListingIsNotLost has the server change its tools, and say so,
// while the second of three pages of the old list is on its way under a time to
// live of ten minutes: the old list serves nobody who asks later.
func TestAChangeDuringAListingIsNotLost(t *testing.T) {
	for name, era := range map[string]struct {
		option    mcptest.Option
		transport messages.Transport
	}{
		mcptest.Version20260728: {mcptest.Modern(), messages.TransportHTTP},
		mcptest.Version20251125: {mcptest.Legacy(mcptest.Version20251125), messages.TransportHTTP},
		mcptest.Version20241105: {mcptest.HTTPSSE(), messages.TransportSSE},
	} {
		t.Run(name, func(t *testing.T) {
			server := mcptest.NewServer(t, era.option, mcptest.PageSize(1), mcptest.Cache(10*time.Minute, "private"),
				mcptest.Tools(mcptest.Tool{Name: "a"}, mcptest.Tool{Name: "b"}, mcptest.Tool{Name: "c"}))
			onWire(t, func(t *testing.T, h *house) {
				to := at(t, server, era.transport)
				if got := names(t, h, to, false); got != "a b c" {
					t.Fatalf("listed are %s", got)
				}
				server.WaitStreams(1)
				made, release := make(chan struct{}), make(chan struct{})
				server.On("tools/list", mcptest.Ordinary().Once(), mcptest.Execute().Then(mcptest.Tell(made), mcptest.Until(release)).Once())
				before := len(server.Requests("tools/list"))
				listing := h.system.Root.RequestFuture(h.pool, &messages.GetCatalogue{RequestId: "old", Target: to, Fresh: true}, time.Minute)
				<-made
				server.SetTools(mcptest.Tool{Name: "x"}, mcptest.Tool{Name: "y"}, mcptest.Tool{Name: "z"})
				for range 5 {
					server.NotifyToolsChanged()
				}
				close(release)
				if _, err := listing.Result(); err != nil {
					t.Error(err)
				}
				eventually(t, "the new list is served", func() bool { return names(t, h, to, false) == "x y z" })
				if pages := len(server.Requests("tools/list")) - before; pages > 12 {
					t.Errorf("one change cost %d requests", pages)
				}
			})
		})
	}
}

// TestAPageThatFailsFailsItsListingAlone breaks the second of three pages in every
// way: nothing of the list is taken for the whole, and the next look finds it.
func TestAPageThatFailsFailsItsListingAlone(t *testing.T) {
	tools := mcptest.Tools(mcptest.Tool{Name: "a"}, mcptest.Tool{Name: "b"}, mcptest.Tool{Name: "c"})
	server := mcptest.NewServer(t, tools, mcptest.PageSize(1), mcptest.Cache(10*time.Minute, "private"))
	onWire(t, func(t *testing.T, h *house) {
		to := at(t, server, messages.TransportHTTP)
		for _, odd := range []mcptest.Behaviour{
			mcptest.Error(-32602, "Invalid cursor", ""), mcptest.Error(-32603, "oops", ""), mcptest.Status(500, "text/html", "<p>"),
			mcptest.Status(404, "", ""), mcptest.Reset(), mcptest.CutHalfway(), mcptest.Accepted(), mcptest.Body("text/html", "<p>"), mcptest.NullID(),
			mcptest.Answer(`{"tools":7}`), mcptest.Answer(`{"tools":[],"nextCursor":7}`), mcptest.Answer(`{"tools":[],"nextCursor":"1"}`),
			mcptest.Answer("null"), mcptest.Huge(17 << 20),
		} {
			server.On("tools/list", mcptest.Ordinary().Once(), odd.Once())
			got := names(t, h, to, true)
			if got == "" || strings.HasPrefix(got, "a") && got != "a b c" {
				t.Errorf("%s: listed are %q", odd, got)
			}
			server.On("tools/list")
			eventually(t, odd.String()+": the list is found", func() bool { return names(t, h, to, true) == "a b c" })
		}
	})
}

// eventually waits for what real sockets bring when they do.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 400 {
		if holds() {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Errorf("never: %s", what)
}
