package pool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
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
	pid *actor.PID

	mu      sync.Mutex
	asked   map[string]int
	answers map[string]int
}

// count makes the asker of a house.
func (h *house) count() *counting {
	c := &counting{asked: map[string]int{}, answers: map[string]int{}}
	c.pid = h.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }))
	return c
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

// ask sends a message to the pool, and notes it where it is a question.
func (c *counting) ask(h *house, message any) {
	if question, ok := message.(messages.Question); ok {
		c.mu.Lock()
		c.asked[question.QuestionID()]++
		c.mu.Unlock()
	}
	h.system.Root.RequestWithCustomSender(h.pool, message, c.pid)
}

// check ends the asker: each question has exactly one answer.
func (c *counting) check(t *testing.T, h *house) {
	t.Helper()
	if err := h.system.Root.StopFuture(c.pid).Wait(); err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(c.asked, c.answers) {
		for id := range c.asked {
			if c.answers[id] != 1 {
				t.Errorf("question %s has %d answers", id, c.answers[id])
			}
		}
		t.Errorf("%d questions have answers by %d names", len(c.asked), len(c.answers))
	}
}

// dice are thrown by all actors of a story.
type dice struct {
	mu     sync.Mutex
	chance *rand.Rand
}

func (d *dice) roll(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chance.IntN(n)
}

// panics is middleware that panics before or after one of so many messages.
func (d *dice) panics(oneOf int) []actor.ReceiverMiddleware {
	return []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			roll := d.roll(oneOf * 2)
			if roll == 0 {
				panic("before")
			}
			next(ctx, envelope)
			if roll == 1 {
				panic("after")
			}
		}
	}}
}

// TestWhateverFailsEachQuestionHasExactlyOneAnswer asks at random, while the
// pool, its connections and their catalogs panic before and after their messages,
// sessions are lost, dialing fails, calls hang, are lost, panic and are cancelled,
// and connections are disconnected.
func TestWhateverFailsEachQuestionHasExactlyOneAnswer(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			d := &dice{chance: rand.New(rand.NewPCG(seed, 7))}
			plan := func(p *pool.Deps, c *connection.Deps, g *catalog.Deps) {
				p.MaxConnections, c.MaxCalls, c.MaxWaiting, c.IdleClose = 4, 3, 4, 20*time.Second
				p.Middleware, c.Middleware, g.Middleware = d.panics(300), d.panics(40), d.panics(40)
			}
			inHouse(t, plan, func(t *testing.T, h *house) {
				h.server.call = d.call
				asker := h.count()
				for i := range 400 {
					d.step(t, h, asker, i)
					if d.roll(3) == 0 {
						time.Sleep(time.Duration(d.roll(500)) * time.Millisecond)
					}
				}
				time.Sleep(15 * time.Minute)
				asker.check(t, h)
			})
		})
	}
}

// call plays a call of a story.
func (d *dice) call(ctx context.Context, _ *messages.CallTool) (*messages.ToolResult, error) {
	switch d.roll(6) {
	case 0:
		<-ctx.Done()
		return nil, lostAnswer{failure.New(failure.KindCancelled, "cancelled", nil)}
	case 1:
		return nil, lostAnswer{errors.New("lost")}
	case 2:
		panic("in the session")
	default:
		time.Sleep(time.Duration(d.roll(3000)) * time.Millisecond)
		return &messages.ToolResult{Text: "done"}, nil
	}
}

// step does one thing.
func (d *dice) step(t *testing.T, h *house, asker *counting, i int) {
	id := fmt.Sprint("q", i)
	to := target(t, fmt.Sprint("tenant", d.roll(6)))
	if d.roll(5) == 0 {
		to.Session = fmt.Sprint("run", d.roll(3))
	}
	deadline := time.Now().Add(time.Duration(d.roll(20)) * time.Second).UnixMilli()
	switch d.roll(12) {
	case 0, 1, 2:
		asker.ask(h, &messages.GetCatalogue{RequestId: id, Target: to, Fresh: d.roll(4) == 0, DeadlineUnixMs: deadline})
	case 3:
		asker.ask(h, &messages.ListConnections{RequestId: id})
	case 4:
		asker.ask(h, &messages.Disconnect{RequestId: id, Tenant: to.GetKey().GetTenant()})
	case 5:
		asker.ask(h, &messages.CancelCall{CallId: fmt.Sprint("q", d.roll(i+1)), Target: to})
	case 6:
		asker.ask(h, &messages.ReleaseSession{Target: to})
	case 7:
		h.server.set(func() { d.weather(h.server) })
	default:
		asker.ask(h, &messages.CallTool{CallId: id, Target: to, Tool: "x", DeadlineUnixMs: deadline, Repeatable: d.roll(2) == 0})
	}
}

// weather has the server go or come back, and sessions be lost.
func (d *dice) weather(s *server) {
	s.refuse = nil
	if d.roll(3) == 0 {
		s.refuse = failure.New(failure.KindMcpServerUnreachable, "away", nil)
	}
	for _, one := range s.sessions {
		if one.closes == 0 && d.roll(4) == 0 {
			one.lose()
		}
	}
}
