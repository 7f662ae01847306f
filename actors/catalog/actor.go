package catalog

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

const (
	defaultFetchTimeout = time.Minute
	// workers is the fetch in flight and the watcher, and one more of each from a
	// session that is being left.
	workers = 4
)

var watchBackoff = supervision.Backoff{Base: time.Second, Cap: time.Minute}

// Props makes a catalog. The props serve for one actor.
func Props(deps Deps) *actor.Props {
	if deps.FetchTimeout == 0 {
		deps.FetchTimeout = defaultFetchTimeout
	}
	return supervision.Answering(func() actor.Actor { return &catalog{deps: deps} })
}

// catalog is the actor.
type catalog struct {
	deps      Deps
	machine   *machine
	ledger    *supervision.Ledger
	work      *async.Group
	stopWatch func()
}

// What the catalog tells itself.
type (
	fetched struct {
		epoch    uint64
		snapshot *messages.Snapshot
		ttl      *time.Duration
		err      error
	}
	sweepDue     struct{ version uint64 }
	watchDue     struct{ epoch uint64 }
	watchOpened  struct{ epoch uint64 }
	watchChanged struct{ epoch uint64 }
	watchEnded   struct {
		epoch uint64
		again bool
		err   error
	}
	askerOverdue struct{ asked supervision.Asked }
)

// Receive implements [actor.Actor].
func (c *catalog) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		c.start(ctx)
	case *actor.Restarting, *actor.Stopping:
		c.end(ctx)
	case *messages.GetCatalogue:
		c.ask(ctx, message)
	case *messages.SessionOpened:
		c.do(ctx, c.machine.onSessionOpened(message.GetEpoch()))
	case *messages.SessionClosed:
		c.do(ctx, c.machine.onSessionClosed(message.GetEpoch(), message.GetFailure().Err()))
	case *messages.CatalogueWanted:
		c.do(ctx, c.machine.onChanged())
	case *async.Done:
		if own, current := c.work.Take(message); current {
			c.receiveOwn(ctx, own)
		}
	}
}

func (c *catalog) receiveOwn(ctx actor.Context, own any) {
	switch message := own.(type) {
	case fetched:
		c.do(ctx, c.machine.onFetched(message.epoch, message.snapshot, message.ttl, message.err, time.Now()))
	case sweepDue:
		c.do(ctx, c.machine.onSweep(message.version))
	case watchDue:
		c.watch(message.epoch)
	case watchOpened:
		c.do(ctx, c.machine.onWatchOpened(message.epoch))
	case watchChanged:
		if message.epoch == c.machine.epoch {
			c.do(ctx, c.machine.onChanged())
		}
	case watchEnded:
		c.deps.Logger.Debug("the stream of changes ended", zap.Bool("again", message.again), zap.Error(message.err))
		c.do(ctx, c.machine.onWatchEnded(message.epoch, message.again))
	case askerOverdue:
		c.do(ctx, c.machine.onOverdue(message.asked, overdue))
	}
}

var overdue = failure.New(failure.KindMcpServerUnreachable, "the connection timed out", nil)

func (c *catalog) start(ctx actor.Context) {
	c.machine = newMachine(c.deps.TTL)
	c.machine.closed = failure.New(failure.KindMcpServerUnreachable, "the connection is not open", nil)
	c.ledger = supervision.NewLedger()
	c.work = async.NewGroup(ctx, workers)
	if epoch, open := c.deps.Source.Epoch(); open {
		c.do(ctx, c.machine.onSessionOpened(epoch))
	}
}

func (c *catalog) end(ctx actor.Context) {
	c.work.Close()
	c.ledger.Settle(ctx, failure.New(failure.KindMcpServerUnreachable, "the connection was closed", nil), nil)
}

func (c *catalog) ask(ctx actor.Context, question *messages.GetCatalogue) {
	asked, ok := c.ledger.Enter(ctx, question)
	if !ok {
		return
	}
	c.do(ctx, c.machine.onAsk(asked, question.GetFresh(), time.Now()))
	if deadline := question.GetDeadlineUnixMs(); deadline > 0 && c.machine.waits(asked) {
		c.work.After(time.Until(time.UnixMilli(deadline)), askerOverdue{asked})
	}
}

func (c *catalog) do(ctx actor.Context, effects []effect) {
	for _, one := range effects {
		switch e := one.(type) {
		case answerSnapshot:
			c.ledger.Answer(ctx, e.asked, &messages.Catalogue{RequestId: e.asked.ID, Snapshot: e.snapshot})
		case answerFailure:
			c.ledger.Fail(ctx, e.asked, e.why)
		case fetch:
			c.fetch(e)
		case publish:
			ctx.Send(ctx.Parent(), &messages.CataloguePublished{Snapshot: e.snapshot})
		case reportFailed:
			ctx.Send(ctx.Parent(), &messages.CatalogueFailed{Failure: messages.FailureOf(e.why)})
		case sweepAfter:
			// Between nine tenths and the whole of its time, so that lists that were
			// fetched together are not fetched together again.
			wait := e.wait - rand.N(e.wait/10+1)
			c.work.After(wait, sweepDue{e.version})
		case openWatch:
			c.openWatch(e)
		case closeWatch:
			if c.stopWatch != nil {
				c.stopWatch()
			}
		}
	}
}

func (c *catalog) fetch(wanted fetch) {
	source := c.deps.Source
	async.Go(c.work, c.deps.FetchTimeout,
		func(ctx context.Context) (fetched, error) {
			listing, err := source.ListTools(ctx, wanted.etag)
			if err != nil {
				return fetched{}, err
			}
			return fetched{snapshot: snapshotOf(listing, source), ttl: ttlOf(listing)}, nil
		},
		func(result fetched, err error) any {
			result.epoch, result.err = wanted.epoch, err
			return result
		})
}

func snapshotOf(listing *messages.Listing, source Source) *messages.Snapshot {
	return &messages.Snapshot{
		Etag: listing.GetEtag(), Tools: listing.GetTools(), CacheScope: listing.GetCacheScope(),
		ProtocolVersion: source.ProtocolVersion(), Instructions: source.Instructions(),
	}
}

func ttlOf(listing *messages.Listing) *time.Duration {
	if listing.TtlMs == nil {
		return nil
	}
	return new(time.Duration(min(listing.GetTtlMs(), maxTTL.Milliseconds())) * time.Millisecond)
}

func (c *catalog) openWatch(wanted openWatch) {
	if wanted.breaks == 0 {
		c.watch(wanted.epoch)
		return
	}
	c.work.After(watchBackoff.Wait(wanted.breaks), watchDue{wanted.epoch})
}

// watch follows the changes until the stream ends. It is work like any other:
// away from every asker, and ended with the actor.
func (c *catalog) watch(epoch uint64) {
	if epoch != c.machine.epoch || c.machine.state == Detached {
		return
	}
	source, work := c.deps.Source, c.work
	c.stopWatch = async.Go(work, 0,
		func(ctx context.Context) (bool, error) {
			return source.Watch(ctx,
				func() { work.Tell(watchOpened{epoch}) },
				func() { work.Tell(watchChanged{epoch}) })
		},
		func(again bool, err error) any { return watchEnded{epoch, again, err} })
}
