package supervision

import (
	"math/rand/v2"
	"time"
)

// Backoff is a wait that doubles with each failure in a row.
type Backoff struct {
	// Base bounds the first wait, Cap every wait.
	Base, Cap time.Duration
}

// Wait returns how long to wait after the nth failure in a row, counted from 1:
// a random time of up to Base doubled n-1 times, and at least a tenth of that,
// so that many who failed together do not return together.
func (b Backoff) Wait(n int) time.Duration {
	bound := b.Base
	for range n - 1 {
		if bound *= 2; bound >= b.Cap {
			break
		}
	}
	bound = min(bound, b.Cap)
	least := bound / 10
	return least + rand.N(bound-least+1)
}
