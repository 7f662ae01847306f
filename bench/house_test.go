package bench_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/catalog"
	"github.com/psych-systems/psych-go/actors/connection"
	"github.com/psych-systems/psych-go/actors/pool"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/secret"
)

// loopback opens what the servers listen on.
var loopback = egress.Policy{AllowHTTP: true, AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// house is a pool with its connections and catalogs, wired as the runtime wires
// them, and without Runs.
type house struct {
	system *actor.ActorSystem
	pool   *actor.PID
	egress *egress.Egress
	lists  mcpwire.ToolLists
}

func newHouse(t testing.TB, p peer) *house {
	t.Helper()
	out, err := egress.New(egress.Options{Policy: loopback, RootCAs: p.roots})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{system: supervision.NewSystem(zap.NewNop()), egress: out}
	h.pool = h.system.Root.Spawn(pool.Props(pool.Deps{Logger: zap.NewNop(), Connection: func(key messages.PoolKey) *actor.Props {
		return connection.Props(key, connection.Deps{
			Logger: zap.NewNop(), Dialer: h,
			Catalog: func(source connection.Source) *actor.Props {
				return catalog.Props(catalog.Deps{Logger: zap.NewNop(), Source: source})
			},
		})
	}}))
	t.Cleanup(func() {
		if err := h.system.Root.StopFuture(h.pool).Wait(); err != nil {
			t.Error(err)
		}
		h.system.Shutdown()
		out.Close()
	})
	return h
}

// Dial implements [connection.Dialer].
func (h *house) Dial(ctx context.Context, target *messages.Target) (connection.Session, error) {
	key, err := messages.PoolKeyOf(target.GetKey())
	if err != nil {
		return nil, err
	}
	return mcpwire.Connect(ctx, mcpwire.Options{
		URL: key.URL(), Server: target.GetServer(), Client: h.egress.Client(key.Scope().Tenant),
		Authorize: func(context.Context, string) (mcpwire.Token, error) {
			return mcpwire.Token{Value: secret.NewText("token")}, nil
		},
		MaxResponseBytes: h.egress.MaxResponseBytes, Lists: &h.lists,
	}, target.GetCredential())
}

func target(t testing.TB, tenant, url string) *messages.Target {
	t.Helper()
	key, err := messages.NewPoolKey(messages.Scope{Tenant: tenant}, url, messages.TransportHTTP, "identity")
	if err != nil {
		t.Fatal(err)
	}
	return &messages.Target{Key: key.Message(), Server: "s", Credential: "token"}
}

// catalogue asks for a key's tools, which connects it.
func (h *house) catalogue(t testing.TB, to *messages.Target) *messages.Snapshot {
	t.Helper()
	answer, err := h.system.Root.RequestFuture(h.pool,
		&messages.GetCatalogue{RequestId: "bench", Target: to}, time.Minute).Result()
	if err != nil {
		t.Fatal(err)
	}
	listed := answer.(*messages.Catalogue)
	if err := listed.GetFailure().Err(); err != nil {
		t.Fatal(err)
	}
	return listed.GetSnapshot()
}

// call makes one call and returns its failure.
func (h *house) call(t testing.TB, to *messages.Target, tool string) error {
	t.Helper()
	answer, err := h.system.Root.RequestFuture(h.pool,
		&messages.CallTool{CallId: "bench", Target: to, Tool: tool}, time.Minute).Result()
	if err != nil {
		t.Fatal(err)
	}
	return answer.(*messages.CallDone).GetFailure().Err()
}

// calls has a number of callers make as many calls each, one after the other, and
// returns how long each call took.
func (h *house) calls(t testing.TB, to *messages.Target, callers, each int) []time.Duration {
	t.Helper()
	var done sync.WaitGroup
	took := make([][]time.Duration, callers)
	all := make([]*caller, callers)
	for i := range callers {
		all[i] = &caller{pool: h.pool, to: to, left: each, done: done.Done, name: fmt.Sprint(i)}
		done.Add(1)
		pid := h.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return all[i] }))
		defer h.system.Root.Stop(pid)
	}
	done.Wait()
	var flat []time.Duration
	for i, one := range all {
		if one.failed != nil {
			t.Fatal(one.failed)
		}
		took[i] = one.took
		flat = append(flat, took[i]...)
	}
	return flat
}

// caller is an actor that calls a tool again as soon as it has the answer, as a Run
// does which has nothing else to do.
type caller struct {
	pool   *actor.PID
	to     *messages.Target
	name   string
	left   int
	done   func()
	began  time.Time
	took   []time.Duration
	failed error
}

// Receive implements [actor.Actor].
func (c *caller) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		c.took = make([]time.Duration, 0, c.left)
		c.call(ctx)
	case *messages.CallDone:
		c.took = append(c.took, time.Since(c.began))
		c.failed = message.GetFailure().Err()
		if text := message.GetResult().GetText(); c.failed == nil && text != "ok" {
			c.failed = fmt.Errorf("a call was answered with %q", text)
		}
		if c.failed != nil || c.left == 0 {
			c.done()
			return
		}
		c.call(ctx)
	}
}

func (c *caller) call(ctx actor.Context) {
	c.left--
	c.began = time.Now()
	ctx.Request(c.pool, &messages.CallTool{CallId: c.name, Target: c.to, Tool: "echo", Arguments: []byte(`{"text":"hello"}`)})
}
