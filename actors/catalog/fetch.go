package catalog

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/messages"
)

// watchBackoff is between two streams of changes.
var watchBackoff = supervision.Backoff{Base: time.Second, Cap: time.Minute}

// fetch is one fetch of the list, away from the actor.
func (c *catalog) fetch(wanted fetch) {
	source := c.deps.Source
	c.stopFetch = async.Go(c.work, 0,
		func(ctx context.Context) (fetched, error) {
			listing, err := source.ListTools(ctx, wanted.etag, wanted.wanted)
			if err != nil {
				return fetched{}, err
			}
			return fetched{snapshot: snapshotOf(listing, source), ttl: ttlOf(listing)}, nil
		},
		func(result fetched, err error) any {
			result.number, result.err = wanted.number, err
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

// sweepWait is between nine tenths and the whole of a list's time, so that lists
// that were fetched together are not fetched together again.
func sweepWait(lives time.Duration) time.Duration { return lives - rand.N(lives/10+1) }

func (c *catalog) openWatch(wanted openWatch) {
	if wanted.breaks == 0 {
		c.watch(wanted.epoch)
		return
	}
	c.work.After(watchBackoff.Wait(wanted.breaks), watchDue{wanted.epoch})
}

// watch follows the changes until the stream ends. It is work like any other:
// away from every asker, and ended with the session or the actor.
func (c *catalog) watch(epoch uint64) {
	if epoch != c.machine.epoch || c.machine.state == Detached {
		return
	}
	source, work, told := c.deps.Source, c.work, c.told
	c.stopWatch = async.Go(work, 0,
		func(ctx context.Context) (bool, error) {
			return source.Watch(ctx,
				func() { work.Tell(watchOpened{epoch}) },
				func() {
					if told.CompareAndSwap(false, true) {
						work.Tell(watchChanged{epoch})
					}
				})
		},
		func(again bool, err error) any { return watchEnded{epoch, again, err} })
}

func (c *catalog) onWatchChanged(ctx actor.Context, message watchChanged) {
	c.told.Store(false)
	if message.epoch == c.machine.epoch {
		c.do(ctx, c.machine.onChanged(time.Now()))
	}
}
