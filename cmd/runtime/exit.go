package main

import (
	"errors"

	"github.com/psych-systems/psych-go/failure"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitWrong       = 2
	exitInterrupted = 130
)

// failed is an error of the work itself, whatever its kind: the command line,
// the Spec and the configuration were right.
type failed struct{ cause error }

func (f *failed) Error() string { return f.cause.Error() }

func (f *failed) Unwrap() error { return f.cause }

// exitCode tells what went wrong by the types in an error's chain. Errors that
// are no failures are made by the parser of the command line.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if _, marked := errors.AsType[*failed](err); marked {
		return exitFailed
	}
	if found, ok := errors.AsType[failure.Failure](err); ok && found.Kind() != failure.KindSpecInvalid {
		return exitFailed
	}
	return exitWrong
}

// wrong is an error in what the user typed or wrote.
func wrong(sentence string, cause error) error {
	return failure.New(failure.KindSpecInvalid, sentence, cause)
}
