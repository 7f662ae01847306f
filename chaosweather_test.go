package psych_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/mcptest"
)

// dice are thrown from many goroutines.
type dice struct {
	mu     sync.Mutex
	chance *rand.Rand
}

func (d *dice) roll(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chance.IntN(n)
}

// panicking has actors of a kind panic at one of so many messages, before or after
// they receive it. The end of an actor is no message.
func (w *world) panicking(kind string, oneOf int) []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			switch envelope.Message.(type) {
			case *actor.Restarting, *actor.Stopping, *actor.Stopped:
				next(ctx, envelope)
				return
			}
			roll := -1
			if !w.over.Load() {
				roll = w.panics.roll(2 * oneOf)
			}
			if roll == 0 {
				w.count("panics of a " + kind)
				panic("before")
			}
			next(ctx, envelope)
			if roll == 1 {
				w.count("panics of a " + kind)
				panic("after")
			}
		}
	}}
}

// ambush has an actor panic on the next message, whatever that is.
type ambush struct{ laid atomic.Bool }

func (a *ambush) middleware(told *tally) []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			if a.laid.CompareAndSwap(true, false) {
				told.count("panics of a pool")
				panic("an ambush")
			}
			next(ctx, envelope)
		}
	}}
}

// strikes are the faults of single answers. None of them denies in an older server's
// words what it has done: such a server is asked again, as the protocol demands.
var strikes = []mcptest.Behaviour{
	mcptest.Reset().Named("reset before headers"),
	mcptest.Execute().Then(mcptest.Reset()).Named("executed, then reset"),
	mcptest.ResetHalfway().Named("half a body, then reset"),
	mcptest.CutHalfway().Named("half a body, then closed"),
	mcptest.Close().Named("closed without an answer"),
	mcptest.Status(404, "text/plain", "Not here.").Named("404"),
	mcptest.Unauthorized(`Bearer error="invalid_token"`).Named("401"),
	mcptest.TooMany("0").Named("429"),
	mcptest.Status(502, "text/html", "<p>Bad gateway.").Named("502"),
	mcptest.Execute().Then(mcptest.Status(502, "text/html", "<p>Bad gateway.")).Named("executed, then 502"),
	mcptest.Status(503, "text/plain", "Busy.").Named("503"),
	mcptest.JSON("{\x00").Named("garbage"),
	mcptest.Execute().Then(mcptest.JSON("<<<")).Named("executed, then garbage"),
	mcptest.WrongID().Named("a wrong id"),
	mcptest.Body("text/html", "<p>Log in.").Named("a page"),
	mcptest.Hang().Named("no answer"),
}

// struck is what the strikes hit; what stands more often is hit more often.
var struck = []string{
	"tools/call", "tools/call", "tools/call", "tools/call", "tools/call", "tools/call", "tools/list", "tools/list",
	mcptest.Get, mcptest.Delete, "initialize", "notifications/initialized", "server/discover", "subscriptions/listen",
}

// observe is what the older server always does about initialize: it notes whose the
// session is.
func (w *world) observe() mcptest.Behaviour {
	return mcptest.Do("observed", func(x *mcptest.Exchange) {
		x.Ordinary()
		w.noteSession(x.Writer().Header().Get("Mcp-Session-Id"), x.Request.Token())
	})
}

func (w *world) strike(server *mcptest.Server, chance *rand.Rand) {
	what, fault := struck[chance.IntN(len(struck))], strikes[chance.IntN(len(strikes))]
	name := fault.String()
	script := []mcptest.Behaviour{
		mcptest.Do(name, func(*mcptest.Exchange) { w.count("strikes"); w.count("strikes: " + name) }).Then(fault).Times(1 + chance.IntN(3)),
	}
	if what == "initialize" && server == w.legacy {
		script = append(script, w.observe())
	}
	server.On(what, script...)
}

// calm takes back what strikes have not hit yet.
func (w *world) calm() {
	for _, what := range struck {
		w.modern.On(what)
		w.legacy.On(what)
	}
	w.legacy.On("initialize", w.observe())
}

// betweenRestarts is how many other things happen between two restarts of a server.
const betweenRestarts = 80

// weather is the story's time: something happens every few moments. On a machine that
// is slow it takes longer, until enough has happened. It ends with servers that
// behave.
func (w *world) weather(t *testing.T) {
	t.Helper()
	chance := rand.New(rand.NewPCG(w.seed, 4))
	began := time.Now()
	ambushes, restarts, gusts := 0, 0, 0
	for {
		passed := time.Since(began)
		if passed >= 10*w.length || passed >= w.length && len(w.missing()) == 0 {
			break
		}
		server := w.modern
		if chance.IntN(2) == 0 {
			server = w.legacy
		}
		switch due := min(int(4*passed/w.length), 4); {
		case ambushes < due:
			ambushes++
			w.ambush.laid.Store(true)
		case restarts < gusts/betweenRestarts:
			restarts++
			w.restart(restarts, chance)
		default:
			gusts++
			w.gust(t, server, chance)
		}
		time.Sleep(time.Duration(2+chance.IntN(14)) * time.Millisecond)
	}
	w.calm()
}

// restart stops each server in turn, and starts it at once or a little later.
func (w *world) restart(n int, chance *rand.Rand) {
	name, server := "modern", w.modern
	if n%2 == 0 {
		name, server = "legacy", w.legacy
	}
	w.count("restarts of the " + name + " server")
	server.Stop()
	time.Sleep(time.Duration(chance.IntN(2)*chance.IntN(250)) * time.Millisecond)
	server.Start()
}

// gust is one small thing.
func (w *world) gust(t *testing.T, server *mcptest.Server, chance *rand.Rand) {
	t.Helper()
	switch chance.IntN(20) {
	case 0:
		w.count("rotations")
		w.tokens.rotate(w.scopes[chance.IntN(len(w.scopes))])
	case 1:
		w.count("changes of planes")
		if err := w.runtime.SetTenants(w.planes(chance)); err != nil {
			t.Errorf("the planes cannot be changed: %v", err)
		}
	case 2:
		w.listing.Add(1)
		w.add("list_changed", server.NotifyToolsChanged())
	case 3:
		w.count("idle connections closed")
		server.CloseIdle()
	case 4:
		w.count("streams broken")
		server.BreakStreams()
	case 5:
		w.count("streams closed")
		server.CloseStreams()
	case 6:
		w.count("sessions dropped")
		w.legacy.DropSessions()
	default:
		w.strike(server, chance)
	}
}

// planes is what tenants permit: everything, or most tools of each server, and
// never the sealed ones.
func (w *world) planes(chance *rand.Rand) map[string]psych.Tenant {
	planes := map[string]psych.Tenant{}
	for i := range chaosTenants {
		allowed := []string{"find", "set", "mine_*", "slow", "drop", "extra"}
		if chance.IntN(6) > 0 {
			allowed = append(allowed, "pay")
		}
		plane := psych.Tenant{Allow: map[string][]string{}}
		for _, alias := range []string{"crm", "vault", "old", "attic", "own"} {
			if chance.IntN(20) > 0 {
				plane.Allow[alias] = allowed
			}
		}
		planes[fmt.Sprintf("t%02d", i)] = plane
	}
	return planes
}
