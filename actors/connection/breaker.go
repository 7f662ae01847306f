package connection

import (
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/psych-systems/psych-go/failure"
)

const (
	// tripAfter is how many transport failures in a row open the breaker.
	tripAfter = 5
	// openFor is how long it stays open before one call may probe.
	openFor = 5 * time.Second
)

// breaker keeps a dead server from being hammered: it opens on transport
// failures in a row, and on nothing that a server answered.
type breaker struct {
	gate *gobreaker.TwoStepCircuitBreaker[struct{}]
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

// allow asks whether a call may go out; report takes what became of it, from any
// goroutine. While the breaker is open the reason is the last failure.
func (b *breaker) allow(last error) (report func(error), err error) {
	report, err = b.gate.Allow()
	if err == nil {
		return report, nil
	}
	reason := "it failed several times in a row"
	if last != nil {
		reason = last.Error()
	}
	return nil, failure.New(failure.KindMcpServerUnreachable,
		fmt.Sprintf("the server is not asked for now: %s", reason), err)
}

func (b *breaker) state() string { return b.gate.State().String() }

// transportFailed reports whether an error says that the server did not answer.
func transportFailed(err error) bool {
	return failure.KindOf(err) == failure.KindMcpServerUnreachable
}

// saysNothing reports whether an error tells nothing about the server, because
// it was ours or our caller's.
func saysNothing(err error) bool {
	switch failure.KindOf(err) {
	case failure.KindCancelled, failure.KindDeadlineExceeded, failure.KindCredentialNotFound, failure.KindEgressDenied:
		return true
	default:
		return false
	}
}
