package psych

import (
	"context"
	"errors"
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
	if r.isClosed() {
		return none, errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	deadline, _ := ctx.Deadline()
	future := r.system.Root.RequestFuture(r.pool, question, time.Until(deadline))
	// The future is answered by whoever is first: the pool, its own clock, or the
	// asker that gives up.
	stop := context.AfterFunc(ctx, func() { r.system.Root.Send(future.PID(), ctx.Err()) })
	defer stop()
	answer, err := future.Result()
	if typed, ok := answer.(Answer); ok && err == nil {
		return typed, nil
	}
	if ctx.Err() != nil {
		return none, gaveUp(ctx.Err())
	}
	return none, failure.New(failure.KindMcpServerUnreachable, "the connection timed out", err)
}

func (r *Runtime) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// gaveUp is why an asker stopped waiting.
func gaveUp(cause error) error {
	if errors.Is(cause, context.Canceled) {
		return failure.New(failure.KindCancelled, "the question was cancelled", cause)
	}
	return failure.New(failure.KindDeadlineExceeded, "the connection timed out", cause)
}

var errNoPool = failure.New(failure.KindSpecInvalid, "this runtime was made without MCP and has no connections", nil)
