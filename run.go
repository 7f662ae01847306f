package psych

import (
	"context"
	"iter"
	"sync"

	"github.com/psych-systems/psych-go/journal"
)

// Run is a Run that was started here.
type Run struct {
	id     string
	cancel func()
	onText func(piece string)

	mu sync.Mutex
	// records is all that was recorded so far; record n stands at index n-1.
	records []journal.Record
	// ended says that no more records follow; err is why, nil when the last record
	// tells it.
	ended bool
	err   error
	// changed is closed and replaced at each change.
	changed chan struct{}
}

func newRun(id string, onText func(string), cancel func()) *Run {
	return &Run{id: id, cancel: cancel, onText: onText, changed: make(chan struct{})}
}

// ID is the Run's id, the run_id of its records.
func (r *Run) ID() string { return r.id }

// Cancel asks the Run to end as aborted. It returns at once; [Run.Wait] tells
// when it has ended.
func (r *Run) Cancel() { r.cancel() }

// Records yields the Run's records from the first, each as soon as it is in the
// journal, and ends after the last. It may be called any number of times.
func (r *Run) Records() iter.Seq[journal.Record] {
	return func(yield func(journal.Record) bool) {
		for next := 0; ; next++ {
			record, ok := r.await(next)
			if !ok || !yield(record) {
				return
			}
		}
	}
}

// await waits for record index; false says that there will be none.
func (r *Run) await(index int) (journal.Record, bool) {
	for {
		r.mu.Lock()
		if index < len(r.records) {
			record := r.records[index]
			r.mu.Unlock()
			return record, true
		}
		ended, changed := r.ended, r.changed
		r.mu.Unlock()
		if ended {
			return journal.Record{}, false
		}
		<-changed
	}
}

// Result is how a Run ended.
type Result struct {
	State journal.RunState
	// Text is the model's last answer, in a Run that completed.
	Text string
}

// Wait waits until the Run has ended, or until ctx has, which does not end the
// Run. A Run that did not complete returns its failure beside the result; find
// its type with errors.As.
func (r *Run) Wait(ctx context.Context) (Result, error) {
	for {
		r.mu.Lock()
		ended, changed := r.ended, r.changed
		r.mu.Unlock()
		if ended {
			return r.result()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
	}
}

func (r *Run) result() (Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.records) > 0 {
		if finished, ok := r.records[len(r.records)-1].Entry.(journal.RunFinished); ok {
			return Result{State: finished.State, Text: finished.Text}, finished.Error.Err()
		}
	}
	return Result{}, r.err
}

// Recorded implements [run.Follower].
func (r *Run) Recorded(record journal.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if record.Seq != int64(len(r.records))+1 {
		return
	}
	r.records = append(r.records, record)
	r.announce()
}

// Said implements [run.Follower].
func (r *Run) Said(piece string) {
	if r.onText != nil {
		r.onText(piece)
	}
}

// Ended implements [run.Follower].
func (r *Run) Ended(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.err = true, err
	r.announce()
}

// announce wakes all who wait; r.mu is held.
func (r *Run) announce() {
	close(r.changed)
	r.changed = make(chan struct{})
}
