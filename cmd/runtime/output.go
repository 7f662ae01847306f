package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/psych-systems/psych-go/failure"
)

// output is standard output, which may be full or gone: a command that could not
// say what it did has not succeeded.
type output struct {
	io.Writer
	// lost is the first write that failed.
	lost error
}

// Write implements [io.Writer].
func (o *output) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	if o.lost == nil {
		o.lost = err
	}
	return n, err
}

// verdict is a command's error, or that its output was lost.
func (o *output) verdict(err error) error {
	if o.lost != nil && (err == nil || errors.Is(err, o.lost)) {
		return &failed{fmt.Errorf("the answer could not be written to standard output")}
	}
	return err
}

// printJSON writes one value as one line of JSON on standard output.
func (p *program) printJSON(value any) error {
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return failure.New(failure.KindInternal, "the answer could not be written to standard output", err)
	}
	return nil
}

// note tells something on standard error that is no failure.
func (p *program) note(format string, args ...any) {
	fmt.Fprintf(p.err, "runtime: note: %s\n", printable(fmt.Sprintf(format, args...)))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
