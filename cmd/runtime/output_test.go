package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// full is a standard output that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAnOutputThatIsLostFailsEveryCommandWithOneSentence(t *testing.T) {
	spec := filepath.Join("demo", "support.yaml")
	for _, args := range [][]string{{"demo"}, {"demo", "--json"}, {"check", spec}} {
		var errs bytes.Buffer
		code := execute(args, strings.NewReader(""), full{}, &errs)
		said := errs.String()
		if code != exitFailed || !strings.HasSuffix(said, "runtime: the answer could not be written to standard output\n") {
			t.Errorf("%q ends with %d and says %q", args, code, said)
		}
	}
}
