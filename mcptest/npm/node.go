package npm

import (
	"bufio"
	_ "embed"
	"encoding/base64"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	// startTime is how long a server may take until it listens.
	startTime = 60 * time.Second
	// listening begins the line by which the preload tells where a server listens.
	listening = "listening on "
)

// preload runs before the script: it keeps the server on loopback and on a port
// that the system picks, and ends it when the test process is gone.
//
//go:embed preload.mjs
var preload []byte

// Node runs a script that starts a server, waits until it listens, and returns
// its origin, such as http://127.0.0.1:40001. The server ends with the test, and
// also when the test process dies. What it prints is told when the test fails.
func Node(tb testing.TB, directory, script string, arguments ...string) string {
	tb.Helper()
	demand(tb, "node")
	command := exec.CommandContext(tb.Context(), "node", append([]string{
		"--import", "data:text/javascript;base64," + base64.StdEncoding.EncodeToString(preload), script,
	}, arguments...)...)
	command.Dir = directory
	command.WaitDelay = time.Second
	var output printed
	command.Stderr = &output
	// The preload ends the server at the end of its standard input.
	stdin, err := command.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := command.Start(); err != nil {
		tb.Fatalf("node cannot be started: %v", err)
	}
	origin, ended := make(chan string, 1), make(chan struct{})
	go func() { // ends with the server, whose end of the pipe it reads
		defer close(ended)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if at, found := strings.CutPrefix(lines.Text(), listening); found && len(origin) == 0 {
				origin <- at
				continue
			}
			output.add(lines.Text() + "\n")
		}
	}()
	tb.Cleanup(func() {
		_ = stdin.Close()
		<-ended
		_ = command.Wait() // it was killed with the test's context
		if tb.Failed() {
			tb.Logf("%s printed:\n%s", script, output.String())
		}
	})
	select {
	case at := <-origin:
		return at
	case <-ended:
		tb.Fatalf("%s ended before it listened", script)
	case <-time.After(startTime):
		tb.Fatalf("%s does not listen after %s", script, startTime)
	}
	return ""
}

// demand skips a test on a machine without a program, or fails it in CI.
func demand(tb testing.TB, program string) {
	tb.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	sentence := "NOT TESTED: this test talks to a third-party server and needs %s, which is not installed; " +
		"install Node.js 20 or later"
	if os.Getenv("CI") == "true" {
		tb.Fatalf(sentence, program)
	}
	tb.Skipf(sentence, program)
}
