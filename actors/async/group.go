package async

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/failure"
)

// maxQueued bounds the work of a group that waits for its beginning.
const maxQueued = 4096

// Group is the work of one incarnation of an actor. All methods but [Group.Tell]
// are called from the actor's Receive.
type Group struct {
	root *actor.RootContext
	self *actor.PID
	// limit bounds the work that runs at once; what exceeds it waits in queue.
	limit   int
	running int
	queue   []func()
	// alarms are those that have not rung.
	alarms map[*alarm]struct{}

	context context.Context
	cancel  context.CancelFunc
	// closed is read by workers: what ends after it is not sent.
	closed atomic.Bool
}

// Done brings the result of work, or an alarm, to the actor that wanted it.
type Done struct {
	group   *Group
	message any
	// worked says that a worker became free.
	worked bool
	// rung is the alarm that this is, nil for none.
	rung *alarm
}

// alarm is a message for later.
type alarm struct{ timer *time.Timer }

// NewGroup returns the group of an actor's incarnation; limit is how much of its
// work runs at once.
func NewGroup(ctx actor.Context, limit int) *Group {
	working, cancel := context.WithCancel(context.Background())
	return &Group{
		root: ctx.ActorSystem().Root, self: ctx.Self(), limit: limit,
		alarms: map[*alarm]struct{}{}, context: working, cancel: cancel,
	}
}

// Go starts work, or queues it while the group is at its limit. The context of
// work ends after timeout (0: with the group), counted from when it starts. What
// it returns goes through done, on the worker's goroutine, and comes to the
// actor as a [Done]; a panic of work is a [failure.Internal], and work for which
// even the queue has no room is a [failure.Busy]. The returned function cancels
// the work, whose message still comes. A closed group starts nothing.
func Go[R any](g *Group, timeout time.Duration, work func(ctx context.Context) (R, error), done func(result R, err error) any) (cancel func()) {
	if g.closed.Load() {
		return func() {}
	}
	if g.running >= g.limit && len(g.queue) >= maxQueued {
		var none R
		g.Tell(done(none, failure.New(failure.KindBusy, "too much work waits already", nil)))
		return func() {}
	}
	ctx, cancel := context.WithCancel(g.context)
	g.start(func() {
		defer cancel()
		limited := ctx
		if timeout > 0 {
			var release context.CancelFunc
			limited, release = context.WithTimeout(ctx, timeout)
			defer release()
		}
		result, err := protected(limited, work)
		g.send(&Done{group: g, message: done(result, err), worked: true})
	})
	return cancel
}

// protected runs work and turns its panic into an error.
func protected[R any](ctx context.Context, work func(ctx context.Context) (R, error)) (result R, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = failure.New(failure.KindInternal, "an internal error ended this work", fmt.Errorf("panic: %v", recovered))
		}
	}()
	return work(ctx)
}

func (g *Group) start(job func()) {
	if g.running >= g.limit {
		g.queue = append(g.queue, job)
		return
	}
	g.running++
	go job()
}

// After sends a message to the actor once a time has passed, as a [Done]. The
// returned function takes the alarm back: its message does not come any more,
// not even when it was on its way.
func (g *Group) After(wait time.Duration, message any) (stop func()) {
	if g.closed.Load() {
		return func() {}
	}
	set := &alarm{}
	g.alarms[set] = struct{}{}
	set.timer = time.AfterFunc(wait, func() { g.send(&Done{group: g, message: message, rung: set}) })
	return func() {
		set.timer.Stop()
		delete(g.alarms, set)
	}
}

// Tell sends a message to the actor as a [Done]. Unlike the other methods it may
// be called by work, for what there is to say before its end.
func (g *Group) Tell(message any) { g.send(&Done{group: g, message: message}) }

func (g *Group) send(done *Done) {
	if !g.closed.Load() {
		g.root.Send(g.self, done)
	}
}

// Take opens a [Done]. False says to drop it: it belongs to an older
// incarnation, whose state is gone, or is an alarm that was taken back.
func (g *Group) Take(done *Done) (message any, current bool) {
	if done.group != g || g.closed.Load() {
		return nil, false
	}
	if done.rung != nil {
		if _, set := g.alarms[done.rung]; !set {
			return nil, false
		}
		delete(g.alarms, done.rung)
	}
	if done.worked {
		g.running--
		if len(g.queue) > 0 {
			next := g.queue[0]
			g.queue[0] = nil
			g.queue = g.queue[1:]
			g.start(next)
		}
	}
	return done.message, true
}

// Close cancels all work and all alarms. Nothing of the group reaches the actor
// afterwards. Closing twice is harmless.
func (g *Group) Close() {
	g.closed.Store(true)
	g.queue = nil
	for set := range g.alarms {
		set.timer.Stop()
	}
	clear(g.alarms)
	g.cancel()
}
