package pool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/actors/catalog"
	"github.com/psych-systems/psych-go/actors/connection"
	"github.com/psych-systems/psych-go/actors/pool"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// counting is an asker that counts the answers to each of its questions.
type counting struct {
	mu      sync.Mutex
	answers map[string]int
}

func (c *counting) Receive(ctx actor.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch message := ctx.Message().(type) {
	case *messages.Catalogue:
		c.answers[message.GetRequestId()]++
	case *messages.CallDone:
		c.answers[message.GetCallId()]++
	case *messages.Connections:
		c.answers[message.GetRequestId()]++
	case *messages.Disconnected:
		c.answers[message.GetRequestId()]++
	}
}

// TestWhateverFailsEachQuestionHasExactlyOneAnswer asks at random, while
// connections and catalogs panic before and after their messages, sessions are
// lost, dialing fails, calls hang, are lost, panic and are cancelled, and
// connections are disconnected.
func TestWhateverFailsEachQuestionHasExactlyOneAnswer(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func chaos(t *testing.T, chance *rand.Rand) {
	var mu sync.Mutex
	rolls := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return chance.IntN(n)
	}
	panics := actor.ReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			switch envelope.Message.(type) {
			case actor.SystemMessage, actor.AutoReceiveMessage, *actor.Started:
				next(ctx, envelope)
				return
			}
			roll := rolls(60)
			if roll == 0 {
				panic("before")
			}
			next(ctx, envelope)
			if roll == 1 {
				panic("after")
			}
		}
	})
	plans := func(p *pool.Deps, c *connection.Deps, g *catalog.Deps) {
		p.MaxConnections, c.MaxCalls, c.MaxWaiting, c.IdleClose = 4, 3, 4, 20*time.Second
		c.Middleware, g.Middleware = []actor.ReceiverMiddleware{panics}, []actor.ReceiverMiddleware{panics}
	}
	inHouse(t, plans, func(t *testing.T, h *house) {
		h.server.call = func(ctx context.Context, _ *messages.CallTool) (*messages.ToolResult, error) {
			switch rolls(6) {
			case 0:
				<-ctx.Done()
				return nil, lostAnswer{failure.New(failure.KindCancelled, "cancelled", nil)}
			case 1:
				return nil, lostAnswer{errors.New("lost")}
			case 2:
				panic("in the session")
			default:
				time.Sleep(time.Duration(rolls(3000)) * time.Millisecond)
				return &messages.ToolResult{Text: "done"}, nil
			}
		}
		asker := &counting{answers: map[string]int{}}
		pid := h.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return asker }))
		var questions []string
		for i := range 400 {
			id := fmt.Sprint("q", i)
			to := target(t, fmt.Sprint("tenant", rolls(6)))
			if rolls(5) == 0 {
				to.Session = fmt.Sprint("run", rolls(3))
			}
			deadline := time.Now().Add(time.Duration(rolls(20)) * time.Second).UnixMilli()
			var message any
			switch rolls(12) {
			case 0, 1, 2:
				message = &messages.GetCatalogue{RequestId: id, Target: to, Fresh: rolls(4) == 0, DeadlineUnixMs: deadline}
			case 3:
				message = &messages.ListConnections{RequestId: id}
			case 4:
				message = &messages.Disconnect{RequestId: id, Tenant: to.GetKey().GetTenant()}
			case 5:
				h.system.Root.RequestWithCustomSender(h.pool, &messages.CancelCall{CallId: fmt.Sprint("q", rolls(i+1)), Target: to}, pid)
			case 6:
				h.system.Root.RequestWithCustomSender(h.pool, &messages.ReleaseSession{Target: to}, pid)
			case 7:
				h.server.set(func() {
					h.server.refuse = nil
					if rolls(3) == 0 {
						h.server.refuse = failure.New(failure.KindMcpServerUnreachable, "away", nil)
					}
					for _, one := range h.server.sessions {
						if one.closes == 0 && rolls(4) == 0 {
							select {
							case <-one.lost:
							default:
								close(one.lost)
							}
						}
					}
				})
			default:
				message = &messages.CallTool{CallId: id, Target: to, Tool: "x", DeadlineUnixMs: deadline, Repeatable: rolls(2) == 0}
			}
			if message != nil {
				questions = append(questions, id)
				h.system.Root.RequestWithCustomSender(h.pool, message, pid)
			}
			if rolls(3) == 0 {
				time.Sleep(time.Duration(rolls(500)) * time.Millisecond)
			}
		}
		time.Sleep(15 * time.Minute)
		asker.mu.Lock()
		wrong := map[string]int{}
		for _, id := range questions {
			if got := asker.answers[id]; got != 1 {
				wrong[id] = got
			}
		}
		extra := len(asker.answers) - len(questions) + len(wrong)
		asker.mu.Unlock()
		if len(wrong) > 0 || extra < 0 {
			t.Errorf("of %d questions, these have another number of answers than one: %v", len(questions), slices.Sorted(maps.Keys(wrong)))
			t.Log(wrong)
		}
		if err := h.system.Root.StopFuture(pid).Wait(); err != nil {
			t.Error(err)
		}
	})
}
