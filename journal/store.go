package journal

import (
	"context"
	"fmt"
)

// Store keeps the records of Runs. Implementations are safe for concurrent use.
type Store interface {
	// Append writes records to a Run's log whose last sequence number is
	// expected, all of them or none. The records are numbered expected+1,
	// expected+2 and so on. A log that has moved on fails with [*Conflict].
	Append(ctx context.Context, runID string, expected int64, records []Record) error
	// Read returns the records of a Run whose sequence number is greater than
	// after, in order; none for a Run that it does not know.
	Read(ctx context.Context, runID string, after int64) ([]Record, error)
}

// Conflict is an append at a sequence number that the log has passed: another
// owner wrote. Whoever gets it owns the Run no longer and stops.
type Conflict struct {
	RunID            string
	Expected, Actual int64
}

func (c *Conflict) Error() string {
	return fmt.Sprintf("run %s stands at record %d, not at %d: it has another owner", c.RunID, c.Actual, c.Expected)
}
