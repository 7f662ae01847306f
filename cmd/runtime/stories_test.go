package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"
)

func TestMain(m *testing.M) {
	// The race detector makes a program sleep for a second before it ends.
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"runtime": main})
}

// TestStories runs each script of testdata with peers of its own.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no stories: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			variables := peersOf(t, name)
			testscript.Run(t, testscript.Params{
				Files: []string{file},
				Setup: func(env *testscript.Env) error { env.Vars = append(env.Vars, variables...); return nil },
				Cmds:  commands,
			})
		})
	}
}

var commands = map[string]func(*testscript.TestScript, bool, []string){
	"exits": exits,
	"json":  jsonField,
	"last":  lastField,
	"fill":  fill,
	"tells": tells,
}

// exits CODE COMMAND... runs a command and wants that exit code; of a failure,
// the last line of standard error is the sentence that says why.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = ended.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s exits with %d, not %d", strings.Join(args[1:], " "), got, want)
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stderr"), "\n"), "\n")
	if last := lines[len(lines)-1]; want != 0 && !strings.HasPrefix(last, "runtime: ") {
		ts.Fatalf("standard error does not end with the sentence that says why: %q", last)
	}
}

// json PATH VALUE wants a value at a path of standard output, which must hold
// nothing but JSON: one value a line. The path is that of gjson; "..0.x" is field
// x of the first line.
func jsonField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: json PATH VALUE")
	}
	wantField(ts, strings.Join(outputLines(ts), "\n"), args[0], args[1], neg)
}

// last PATH VALUE is json for the last line alone.
func lastField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: last PATH VALUE")
	}
	lines := outputLines(ts)
	wantField(ts, lines[len(lines)-1], args[0], args[1], neg)
}

// outputLines is the lines of standard output, each of which must be JSON.
func outputLines(ts *testscript.TestScript) []string {
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n")
	for _, line := range lines {
		if !gjson.Valid(line) {
			ts.Fatalf("this line is not JSON: %s", line)
		}
	}
	return lines
}

func wantField(ts *testscript.TestScript, text, path, want string, neg bool) {
	if got := gjson.Get(text, path).String(); (got == want) == neg {
		ts.Fatalf("%s is %q", path, got)
	}
}

// fill FILE... replaces ${NAME} by the environment in files of the story.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	for _, file := range args {
		filled := os.Expand(ts.ReadFile(file), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(filled), 0o600))
	}
}

// tells TEXT... wants texts in standard error, one after the other.
func tells(ts *testscript.TestScript, neg bool, args []string) {
	rest := ts.ReadFile("stderr")
	for _, text := range args {
		_, after, found := strings.Cut(rest, text)
		if !found {
			ts.Fatalf("%q does not follow in:\n%s", text, rest)
		}
		rest = after
	}
}
