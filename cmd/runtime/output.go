package main

import (
	"encoding/json"
	"fmt"

	"github.com/psych-systems/psych-go/failure"
)

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
