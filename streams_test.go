package psych_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/spec"
)

// watching is what a server's stream of changes is asked for with, by era.
var watching = map[string]struct {
	era  mcptest.Option
	what string
}{
	"2026-07-28": {mcptest.Modern(), "subscriptions/listen"},
	"2025-11-25": {mcptest.Legacy("2025-11-25"), mcptest.Get},
	"2025-03-26": {mcptest.Legacy("2025-03-26"), mcptest.Get},
}

// crowd is a Spec of a server for each behaviour, each with one tool, and a runtime
// whose model calls them all in one turn.
type crowd struct {
	servers []*mcptest.Server
	runtime *psych.Runtime
	version spec.Version
}

func newCrowd(t *testing.T, many int, ttl time.Duration, options ...mcptest.Option) *crowd {
	t.Helper()
	c := &crowd{}
	var definitions []spec.Server
	var calls []model.ToolCall
	for i := range many {
		server := mcptest.NewServer(t, append(options, mcptest.Tools(tool("find", nil)), mcptest.Cache(ttl, "private"))...)
		one := at(server)
		one.Name = fmt.Sprint("s", i)
		c.servers, definitions = append(c.servers, server), append(definitions, one)
		calls = append(calls, call(one.Name, one.Name+"__find", `{}`))
	}
	c.runtime = start(t, psych.Options{
		Model: psych.UseModel(play(ask(calls...), say("done"))), MCP: &psych.MCP{ConnectTimeout: time.Hour, CatalogueTTL: ttl},
	})
	c.version = agent(t, func(s *spec.Spec) { s.Limits.Deadline = 20 * time.Second }, definitions...)
	return c
}

// works has a Run call every server's tool.
func (c *crowd) works(t *testing.T) {
	t.Helper()
	got := runAgent(t, c.runtime, c.version)
	for id, outcome := range got.finished {
		if outcome.Outcome != journal.OutcomeOK {
			t.Errorf("the call of %s ended %+v", id, outcome)
		}
	}
	if len(got.finished) != len(c.servers) || got.end.State != journal.StateCompleted {
		t.Errorf("%d calls were made, and the Run ended %+v", len(got.finished), got.end)
	}
}

// change gives each server a second tool, without telling anybody.
func (c *crowd) change() {
	for _, server := range c.servers {
		server.SetTools(tool("find", nil), tool("more", nil))
	}
}

// sees waits until the second tools are seen.
func (c *crowd) sees(t *testing.T, between func()) {
	t.Helper()
	waitFor(t, func() bool {
		between()
		shown, err := c.runtime.Tools(t.Context(), acme, c.version)
		return err == nil && len(shown.Tools) == 2*len(c.servers)
	})
	connections, err := c.runtime.Connections(t.Context(), "acme")
	if err != nil || len(connections) != len(c.servers) {
		t.Errorf("there are %d connections (%v)", len(connections), err)
	}
	for _, one := range connections {
		if one.State != "ready" || one.Restarts != 0 || one.Breaker != "closed" {
			t.Errorf("a connection is %+v", one)
		}
	}
	for i, server := range c.servers {
		if opened := len(server.Requests("initialize")); opened > 1 {
			t.Errorf("server %d opened %d sessions", i, opened)
		}
	}
}

// The stream of changes is optional for a server. One that is never opened, or is
// opened and silent, or refused in any way, delays no Run and costs notifications
// only: a change is then seen when the list's time is up.
func TestAStreamThatNeverBeginsCostsNotificationsOnly(t *testing.T) {
	odd := []mcptest.Behaviour{
		mcptest.Hang(), mcptest.HangAfterHeaders("text/event-stream"), mcptest.Drip("text/event-stream", time.Millisecond),
		mcptest.Headers(200, "").Then(mcptest.Hang()), mcptest.Accepted(), mcptest.Body("text/html", "<p>"),
		mcptest.Status(405, "", ""), mcptest.Status(404, "", ""), mcptest.Status(502, "text/event-stream", "data: x\n\n"),
		mcptest.TooMany("1"), mcptest.Reset(), mcptest.Events("").Then(mcptest.End()),
		mcptest.Events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"notifications\":{}}}\n\n"),
	}
	for name, w := range watching {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, len(odd), time.Second, w.era)
			for i, server := range c.servers {
				server.On(w.what, odd[i])
			}
			c.works(t)
			c.change()
			c.sees(t, func() {})
			for i, server := range c.servers {
				if streams := len(server.Requests(w.what)); streams > 20 { // waits of up to 1, 2, 4 s, and HTTP clients repeat a GET
					t.Errorf("%s: the stream was asked for %d times", odd[i], streams)
				}
			}
		})
	}
}

// A stream that ends is opened again, and what changed in the gap is seen although
// nobody told; calls go on meanwhile, and no session is given up.
func TestAStreamThatEndsIsFollowedByALook(t *testing.T) {
	ends := []struct {
		by   func(*mcptest.Server)
		next mcptest.Behaviour // what the first attempt to open it again meets
	}{
		{(*mcptest.Server).CloseStreams, mcptest.Ordinary()},
		{(*mcptest.Server).BreakStreams, mcptest.Ordinary()},
		{(*mcptest.Server).CloseStreams, mcptest.Status(502, "text/event-stream", "")},
		{(*mcptest.Server).CloseStreams, mcptest.TooMany("1")},
		{(*mcptest.Server).BreakStreams, mcptest.Status(400, "text/plain", "session already exists")},
		{(*mcptest.Server).BreakStreams, mcptest.Events("event: ping\ndata\n\n").Then(mcptest.End())},
		{(*mcptest.Server).BreakStreams, mcptest.Reset()},
	}
	for name, w := range watching {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, len(ends), time.Hour, w.era)
			c.works(t)
			for i, server := range c.servers {
				server.WaitStreams(1)
				server.On(w.what, ends[i].next.Once())
			}
			c.change()
			for i, server := range c.servers {
				ends[i].by(server)
			}
			c.sees(t, func() { c.works(t) })
			for i, server := range c.servers {
				server.WaitStreams(1)
				if streams := len(server.Requests(w.what)); streams > 20 {
					t.Errorf("%s: the stream was asked for %d times", ends[i].next, streams)
				}
			}
		})
	}
}

// A server that takes connections and says nothing, or begins and does not go on,
// is unreachable when the time to connect is up, and not later.
func TestConnectingToSilenceEndsInTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		var open []net.Conn
		for {
			one, err := listener.Accept()
			if err != nil {
				break
			}
			open = append(open, one)
		}
		for _, one := range open {
			_ = one.Close()
		}
	})
	t.Cleanup(accepting.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	mute := "http://" + listener.Addr().String()
	runtime := start(t, psych.Options{MCP: &psych.MCP{ConnectTimeout: 300 * time.Millisecond}})
	targets := map[string]psych.ProbeTarget{
		"nothing at all": {URL: mute + "/mcp"}, "nothing at all on a stream": {URL: mute + "/sse", Transport: messages.TransportSSE},
		"no TLS": {URL: strings.Replace(mute, "http", "https", 1) + "/mcp"},
	}
	for _, odd := range []mcptest.Behaviour{
		mcptest.Hang(), mcptest.HangAfterHeaders("text/event-stream"), mcptest.Drip("text/event-stream", time.Millisecond),
		mcptest.Headers(500, "").Then(mcptest.Hang()).Named("an error's headers, then nothing"),
	} {
		for name, era := range map[string]mcptest.Option{"sse": mcptest.HTTPSSE(), "http": mcptest.Modern(), "old": mcptest.Legacy("2025-06-18")} {
			server := mcptest.NewServer(t, era)
			server.On(mcptest.Any, odd)
			target := psych.ProbeTarget{URL: server.URL()}
			if name == "sse" {
				target.Transport = messages.TransportSSE
			}
			targets[name+" "+odd.String()] = target
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var probing sync.WaitGroup
	for name, target := range targets {
		probing.Go(func() {
			if _, err := runtime.Probe(ctx, acme, target); failure.KindOf(err) != failure.KindMcpServerUnreachable || ctx.Err() != nil {
				t.Errorf("%s: %s: %v", name, failure.KindOf(err), err)
			}
		})
	}
	probing.Wait()
}

// A tool that makes others appear, and says so before it answers, has them offered
// at the next turn, while a call of the turn before is still held somewhere else.
func TestToolsThatACallBringsAreThereAtTheNextTurn(t *testing.T) {
	for name, w := range watching {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var server *mcptest.Server
			bootstrap := tool("bootstrap", func(c mcptest.Call) mcptest.Result {
				var all []mcptest.Tool
				for i := range 80 {
					all = append(all, tool("made"+strings.Repeat("x", i), func(mcptest.Call) mcptest.Result { return mcptest.Text("made") }))
				}
				server.SetTools(append(all, tool("bootstrap", nil))...)
				if w.what == mcptest.Get {
					c.Notify("notifications/tools/list_changed", "{}") // ahead of the reply, on its own stream
					return mcptest.Text("ready")
				}
				lists := len(server.Requests("tools/list"))
				server.NotifyToolsChanged()
				for len(server.Requests("tools/list")) == lists {
					time.Sleep(time.Millisecond)
				}
				return mcptest.Text("ready")
			})
			server = mcptest.NewServer(t, w.era, mcptest.Tools(bootstrap), mcptest.Cache(time.Hour, "private"))
			port := play(ask(call("a", "crm__bootstrap", `{}`)), ask(call("b", "crm__madexxx", `{}`)), say("done"))
			port.before = func(turn int) {
				if turn == 0 {
					server.WaitStreams(1)
				}
			}
			runtime := start(t, psych.Options{Model: psych.UseModel(port), MCP: &psych.MCP{BudgetChars: 1 << 20, CatalogueTTL: time.Hour}})
			got := runAgent(t, runtime, agent(t, nil, at(server)))
			if len(got.turns) < 2 || len(got.turns[0].Tools) != 1 || len(got.turns[1].Tools) != 81 || got.finished["b"].Result != "made" {
				t.Errorf("the Run had the turns %d and the call %+v", len(got.turns), got.finished["b"])
			}
		})
	}
}
