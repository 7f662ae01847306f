package catalog

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// workers is the fetch in flight and the watcher, and as much again that a
// session which was left has not let go of.
const workers = 4

// Props makes a catalog. The props serve for one actor.
func Props(deps Deps) *actor.Props {
	deps = deps.withDefaults()
	versions := &lineage{}
	return supervision.Answering(deps.Logger, func(ledger *supervision.Ledger) supervision.Answerer {
		return &catalog{deps: deps, ledger: ledger, versions: versions}
	}, actor.WithReceiverMiddleware(deps.Middleware...))
}

// catalog is the actor.
type catalog struct {
	deps     Deps
	ledger   *supervision.Ledger
	versions *lineage
	machine  *machine
	work     *async.Group
	// overdue takes back the alarms of those who wait.
	overdue map[supervision.Asked]func()
	// stopFetch and stopWatch end what runs, nil before the first.
	stopFetch, stopWatch func()
	// told says that a change is on its way through the mailbox: a server that
	// announces without end does not fill it.
	told *atomic.Bool
}

// What the catalog tells itself.
type (
	fetched struct {
		number   uint64
		snapshot *messages.Snapshot
		ttl      *time.Duration
		err      error
	}
	fetchDue     struct{}
	sweepDue     struct{ number uint64 }
	askerOverdue struct{ asked supervision.Asked }
	watchDue     struct{ epoch uint64 }
	watchOpened  struct{ epoch uint64 }
	watchChanged struct{ epoch uint64 }
	watchEnded   struct {
		epoch uint64
		again bool
		err   error
	}
)

// Receive implements [actor.Actor].
func (c *catalog) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		c.start(ctx)
	case *messages.GetCatalogue:
		c.ask(ctx, message)
	case *messages.SessionOpened:
		c.do(ctx, c.machine.onSessionOpened(message.GetEpoch(), time.Now()))
	case *messages.SessionClosed:
		c.do(ctx, c.machine.onSessionClosed(message.GetEpoch(), message.GetFailure().Err()))
	case *messages.CatalogueWanted:
		c.do(ctx, c.machine.onChanged(time.Now()))
	case *async.Done:
		if own, current := c.work.Take(message); current {
			c.receiveOwn(ctx, own)
		}
	}
}

func (c *catalog) receiveOwn(ctx actor.Context, own any) {
	switch message := own.(type) {
	case fetched:
		c.do(ctx, c.machine.onFetched(message.number, message.snapshot, message.ttl, message.err, time.Now()))
	case fetchDue:
		c.do(ctx, c.machine.onDue(time.Now()))
	case sweepDue:
		c.do(ctx, c.machine.onSweep(message.number, time.Now()))
	case askerOverdue:
		c.do(ctx, c.machine.onOverdue(message.asked, cmp.Or(c.deps.Source.Awaits(), errOverdue)))
	case watchDue:
		c.watch(message.epoch)
	case watchOpened:
		c.do(ctx, c.machine.onWatchOpened(message.epoch, time.Now()))
	case watchChanged:
		c.onWatchChanged(ctx, message)
	case watchEnded:
		c.deps.Logger.Debug("the stream of changes ended", zap.Bool("again", message.again), zap.Error(message.err))
		c.do(ctx, c.machine.onWatchEnded(message.epoch, message.again, time.Now()))
	}
}

// errOverdue is of the kind of a server that cannot be reached, because that is
// what one is which does not list its tools in time.
var errOverdue error = failure.New(failure.KindMcpServerUnreachable, "the connection timed out", nil)

func (c *catalog) start(ctx actor.Context) {
	c.machine = newMachine(c.deps.TTL, c.versions)
	c.machine.closed = failure.New(failure.KindMcpServerUnreachable, "the connection is not open", nil)
	c.work = async.NewGroup(ctx, workers)
	c.overdue = map[supervision.Asked]func(){}
	c.told = &atomic.Bool{}
	if epoch, open := c.deps.Source.Epoch(); open {
		c.do(ctx, c.machine.onSessionOpened(epoch, time.Now()))
	}
}

// End implements [supervision.Answerer].
func (c *catalog) End(actor.Context) {
	if c.work != nil {
		c.work.Close()
	}
}

func (c *catalog) ask(ctx actor.Context, question *messages.GetCatalogue) {
	asked := supervision.NameOf(ctx.Sender(), question)
	if c.machine.waits(asked) {
		return
	}
	c.do(ctx, c.machine.onAsk(asked, question.GetFresh(), time.Now()))
	if deadline := question.GetDeadlineUnixMs(); deadline > 0 && c.machine.waits(asked) {
		c.overdue[asked] = c.work.After(time.Until(time.UnixMilli(deadline)), askerOverdue{asked})
	}
}

func (c *catalog) do(ctx actor.Context, effects []effect) {
	for _, one := range effects {
		switch e := one.(type) {
		case answerSnapshot:
			c.answered(e.asked)
			c.ledger.Answer(ctx, e.asked, &messages.Catalogue{RequestId: e.asked.ID, Snapshot: e.snapshot})
		case answerFailure:
			c.answered(e.asked)
			c.ledger.Fail(ctx, e.asked, e.why)
		case fetch:
			c.fetch(e)
		case abandon:
			c.stopFetch()
		case fetchAfter:
			c.work.After(e.wait, fetchDue{})
		case publish:
			ctx.Request(ctx.Parent(), &messages.CataloguePublished{Snapshot: e.snapshot})
		case reportFailed:
			ctx.Request(ctx.Parent(), &messages.CatalogueFailed{Failure: messages.FailureOf(e.why)})
		case sweepAfter:
			c.work.After(sweepWait(e.lives), sweepDue{e.number})
		case openWatch:
			c.openWatch(e)
		case closeWatch:
			if c.stopWatch != nil {
				c.stopWatch()
			}
		}
	}
}

func (c *catalog) answered(asked supervision.Asked) {
	if stop, set := c.overdue[asked]; set {
		stop()
		delete(c.overdue, asked)
	}
}
