package memory

import (
	"context"
	"slices"
	"sync"

	"github.com/psych-systems/psych-go/journal"
)

// defaultKept is how many finished Runs a store keeps.
const defaultKept = 1000

// Store is a [journal.Store] in memory.
type Store struct {
	kept int

	mu   sync.Mutex
	runs map[string][]journal.Record
	// finished is the ids of the finished Runs in runs, oldest first; never more
	// than kept.
	finished []string
}

var _ journal.Store = (*Store)(nil)

// New returns an empty store that keeps that many finished Runs and forgets the
// oldest beyond them; 0 means 1000. Unfinished Runs are always kept.
func New(kept int) *Store {
	if kept <= 0 {
		kept = defaultKept
	}
	return &Store{kept: kept, runs: map[string][]journal.Record{}}
}

// Append implements [journal.Store].
func (s *Store) Append(ctx context.Context, runID string, expected int64, records []journal.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.runs[runID]
	if actual := int64(len(log)); actual != expected {
		return &journal.Conflict{RunID: runID, Expected: expected, Actual: actual}
	}
	for i, record := range records {
		if record.RunID != runID || record.Seq != expected+int64(i)+1 {
			return &journal.Contradiction{RunID: runID, Seq: record.Seq, Why: "it is not the next record of the run"}
		}
	}
	s.runs[runID] = append(log, records...)
	if len(records) > 0 && records[len(records)-1].Entry.Type() == journal.TypeRunFinished {
		s.forgetBeyond(runID)
	}
	return nil
}

// forgetBeyond notes a finished Run and drops the oldest beyond the limit.
func (s *Store) forgetBeyond(runID string) {
	s.finished = append(s.finished, runID)
	if len(s.finished) > s.kept {
		delete(s.runs, s.finished[0])
		s.finished = slices.Delete(s.finished, 0, 1)
	}
}

// Read implements [journal.Store].
func (s *Store) Read(ctx context.Context, runID string, after int64) ([]journal.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.runs[runID]
	if after >= int64(len(log)) {
		return nil, nil
	}
	return slices.Clone(log[max(after, 0):]), nil
}
