package run

import (
	"context"

	"github.com/psych-systems/psych-go/journal"
)

// inTurn is the journal of one Run, used by one at a time, over all incarnations of
// its actor: an append that was under way when the actor failed is over before the
// next incarnation reads, which would else take it for another owner's.
type inTurn struct {
	store journal.Store
	turn  chan struct{}
}

var _ journal.Store = inTurn{}

func newInTurn(store journal.Store) inTurn { return inTurn{store, make(chan struct{}, 1)} }

// Append implements [journal.Store].
func (j inTurn) Append(ctx context.Context, runID string, expected int64, records []journal.Record) error {
	if err := j.take(ctx); err != nil {
		return err
	}
	defer j.leave()
	return j.store.Append(ctx, runID, expected, records)
}

// Read implements [journal.Store].
func (j inTurn) Read(ctx context.Context, runID string, after int64) ([]journal.Record, error) {
	if err := j.take(ctx); err != nil {
		return nil, err
	}
	defer j.leave()
	return j.store.Read(ctx, runID, after)
}

func (j inTurn) take(ctx context.Context) error {
	select {
	case j.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j inTurn) leave() { <-j.turn }
