package psych

import (
	"context"
	"time"

	"github.com/psych-systems/psych-go/failure"
)

// askLimit bounds a question to the pool whose asker brought no deadline.
const askLimit = time.Minute

// ask puts one question to the pool from outside of the actors and waits for
// its answer.
func ask[Answer any](ctx context.Context, r *Runtime, question any) (Answer, error) {
	var none Answer
	if r.pool == nil {
		return none, errNoPool
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	deadline, _ := ctx.Deadline()
	future := r.system.Root.RequestFuture(r.pool, question, time.Until(deadline))
	type outcome struct {
		answer any
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		answer, err := future.Result()
		done <- outcome{answer, err}
	}()
	select {
	case <-ctx.Done():
		return none, timedOut(ctx.Err())
	case got := <-done:
		answer, ok := got.answer.(Answer)
		if got.err != nil || !ok {
			return none, failure.New(failure.KindMcpServerUnreachable, "the connection timed out", got.err)
		}
		return answer, nil
	}
}

func timedOut(cause error) error {
	return failure.New(failure.KindDeadlineExceeded, "the connection timed out", cause)
}

var errNoPool = failure.New(failure.KindSpecInvalid, "this runtime was made without MCP and has no connections", nil)
