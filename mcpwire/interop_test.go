package mcpwire_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
)

// eras are the servers there are to speak with.
var eras = map[string]struct {
	options   []mcptest.Option
	transport messages.Transport
	version   string
}{
	"2026-07-28":            {[]mcptest.Option{mcptest.Modern()}, messages.TransportHTTP, modern},
	"2026-07-28, streams":   {[]mcptest.Option{mcptest.Modern(), mcptest.EventStream()}, messages.TransportHTTP, modern},
	"both":                  {[]mcptest.Option{mcptest.Dual(legacy)}, messages.TransportHTTP, modern},
	"2025-11-25":            {[]mcptest.Option{mcptest.Legacy(legacy)}, messages.TransportHTTP, legacy},
	"2025-11-25, stateless": {[]mcptest.Option{mcptest.Legacy(legacy), mcptest.Stateless()}, messages.TransportHTTP, legacy},
	"2025-06-18, streams":   {[]mcptest.Option{mcptest.Legacy("2025-06-18"), mcptest.EventStream()}, messages.TransportHTTP, "2025-06-18"},
	"2025-03-26":            {[]mcptest.Option{mcptest.Legacy("2025-03-26")}, messages.TransportHTTP, "2025-03-26"},
	"HTTP+SSE":              {[]mcptest.Option{mcptest.HTTPSSE()}, messages.TransportSSE, "2024-11-05"},
}

func TestAllErasTellOneStory(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			echo := mcptest.Tool{Name: "echo", Description: "says it again", Call: func(_ context.Context, c mcptest.Call) mcptest.Result {
				var in struct{ Text string }
				_ = json.Unmarshal(c.Arguments, &in)
				return mcptest.Text(in.Text)
			}}
			server := mcptest.NewServer(t, append(era.options, mcptest.Instructions("Use it well."), mcptest.PageSize(1),
				mcptest.Tools(echo, mcptest.Tool{Name: "größe", Annotations: `{"readOnlyHint":true}`}))...)
			o := options(t, server.URL())
			o.Transport = era.transport
			s, err := mcpwire.Connect(t.Context(), o, "")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.ProtocolVersion() != era.version || s.Instructions() != "Use it well." {
				t.Errorf("%s, %q", s.ProtocolVersion(), s.Instructions())
			}
			first := list(t, s, "")
			if names(first) != "echo größe" || first.Tools[1].Class != "read-only" {
				t.Errorf("%v", first)
			}
			result, err := s.CallTool(t.Context(), &messages.CallTool{Tool: "echo", Arguments: []byte(`{"text":"größe"}`)})
			if err != nil || result.GetText() != "größe" {
				t.Errorf("%v, %v", result, err)
			}
			if text, err := call(t.Context(), s, "größe"); err != nil || text != "ok" {
				t.Errorf("%q, %v", text, err)
			}
			if name == "2025-11-25, stateless" {
				return // it has no stream to tell of changes
			}
			ctx, cancel := context.WithCancel(t.Context())
			opened, changed, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				if again, _ := s.Watch(ctx, "", func() { close(opened) }, func() { close(changed) }); !again {
					t.Error("the stream was refused")
				}
			}()
			soon(t, "the stream is opened", opened)
			server.WaitStreams(1)
			server.SetTools(echo)
			server.NotifyToolsChanged()
			soon(t, "the change is told", changed)
			if l := list(t, s, first.Etag); l.Unchanged || names(l) != "echo" {
				t.Errorf("%v", l)
			}
			cancel()
			<-done
		})
	}
}

// Whatever can be wrong with the answer to one call, it ends as that call's own
// result or typed failure, in every era.
func TestEveryFaultOfAPeerCostsItsOwnCall(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			slow := mcptest.Tool{Name: "slow", Call: func(ctx context.Context, _ mcptest.Call) mcptest.Result {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return mcptest.Text("slow")
			}}
			server := mcptest.NewServer(t, append(era.options, mcptest.Tools(slow, mcptest.Tool{Name: "bad"}, mcptest.Tool{Name: "echo"}))...)
			o := options(t, server.URL())
			o.Transport = era.transport
			o.MaxResponseBytes = func() int64 { return ceiling }
			s, err := mcpwire.Connect(t.Context(), o, "")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			slowly := make(chan error, 8)
			for range cap(slowly) {
				go func() { _, err := call(t.Context(), s, "slow"); slowly <- err }()
			}
			server.WaitFor(mcptest.CallOf("slow"), cap(slowly))
			try := func(fault mcptest.Behaviour, patience time.Duration) {
				server.On(mcptest.CallOf("bad"), fault)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if text, err := call(ctx, s, "bad"); err != nil {
					speaksWell(t, err)
					if failure.KindOf(err) == failure.KindInternal || patience > time.Second && ctx.Err() != nil {
						t.Errorf("%s: %v", fault, err)
					}
				} else if text != "ok" && len(text) > 100 {
					t.Errorf("%s: %q", fault, text)
				}
				ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if text, err := call(ctx, s, "echo"); err != nil || text != "ok" {
					t.Fatalf("after %s: %q, %v", fault, text, err)
				}
			}
			patience := 10 * time.Second
			if era.transport == messages.TransportSSE {
				patience = 20 * time.Millisecond // what answers a POST there says nothing
			}
			for _, fault := range mcptest.Faults(ceiling) {
				try(fault, patience)
			}
			for _, fault := range mcptest.Stalls() {
				try(fault, 50*time.Millisecond)
			}
			close(release)
			for range cap(slowly) {
				if err := <-slowly; err != nil {
					t.Errorf("a neighbour's call failed: %v", err)
				}
			}
		})
	}
}
