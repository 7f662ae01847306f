package messages

import (
	"errors"

	"github.com/psych-systems/psych-go/failure"
)

// FailureOf is an error as messages carry it: kind and sentence, without the
// cause, which may hold what must not travel. It returns nil for nil. The text
// of an error that is no [failure.Failure] is not shown. That a key is stale
// travels: [ErrStaleKey] is found again in [Failure.Err].
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrStaleKey) {
		return &Failure{Kind: string(failure.KindMcpServerUnreachable), Message: ErrStaleKey.Error(), StaleKey: true}
	}
	kind := failure.KindOf(err)
	if kind == failure.KindInternal {
		return &Failure{Kind: string(kind), Message: "an internal error ended this work"}
	}
	return &Failure{Kind: string(kind), Message: err.Error()}
}

// Err is the failure as an error, nil for nil.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	var cause error
	if f.GetStaleKey() {
		cause = ErrStaleKey
	}
	return failure.New(failure.Kind(f.GetKind()), f.GetMessage(), cause)
}
