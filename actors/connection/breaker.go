package connection

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/psych-systems/psych-go/failure"
)

const (
	// tripAfter is how many transport failures in a row open the breaker.
	tripAfter = 5
	// openFor is how long it stays open before one request may probe.
	openFor = 5 * time.Second
)

// breaker keeps a dead server from being hammered: it opens on transport
// failures in a row, and on nothing that a server answered. It is safe for
// concurrent use.
type breaker struct {
	gate *gobreaker.TwoStepCircuitBreaker[struct{}]
	// last is the last transport failure, for those who are turned away.
	last atomic.Pointer[error]
}

func newBreaker() *breaker {
	return &breaker{gate: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  1,
		Timeout:      openFor,
		ReadyToTrip:  func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= tripAfter },
		IsSuccessful: func(err error) bool { return !transportFailed(err) },
		IsExcluded:   saysNothing,
	})}
}

// allow asks whether a request may go out; report takes what became of it. While
// the breaker is open the reason is the last transport failure.
func (b *breaker) allow() (report func(error), err error) {
	done, err := b.gate.Allow()
	if err == nil {
		return func(err error) {
			if transportFailed(err) {
				b.last.Store(&err)
			}
			done(err)
		}, nil
	}
	reason := "it failed several times in a row"
	if last := b.last.Load(); last != nil {
		reason = (*last).Error()
	}
	return nil, failure.New(failure.KindMcpServerUnreachable,
		fmt.Sprintf("the server is not asked for now: %s", reason), err)
}

func (b *breaker) state() string { return b.gate.State().String() }

// transportFailed reports whether an error says that the server did not answer. A
// server that is unreachable by its own word, such as one that refuses the
// credential, has answered: nothing failed beneath, and the request is not left
// open.
func transportFailed(err error) bool {
	unreachable, ok := errors.AsType[failure.Failure](err)
	return ok && unreachable.Kind() == failure.KindMcpServerUnreachable && (unreachable.Unwrap() != nil || wasSent(err))
}

// saysNothing reports whether an error tells nothing about the server, because
// it was ours or our caller's.
func saysNothing(err error) bool {
	switch failure.KindOf(err) {
	case failure.KindCancelled, failure.KindDeadlineExceeded, failure.KindInternal, failure.KindInvalidArguments:
		return true
	default:
		return isLocal(err)
	}
}

// wasSent reports whether a request that failed may have been carried out. What
// panicked may have sent it.
func wasSent(err error) bool {
	if fault, ok := errors.AsType[interface {
		error
		Sent() bool
	}](err); ok {
		return fault.Sent()
	}
	return failure.KindOf(err) == failure.KindInternal
}
