package npm

import (
	"os"
	"os/exec"
	"testing"
)

// Node runs a script that starts a server, waits until it listens, and returns
// its origin, such as http://127.0.0.1:40001. The server ends with the test, and
// also when the test process dies. What it prints is told when the test fails.
func Node(tb testing.TB, directory, script string, arguments ...string) string {
	tb.Helper()
	return Serve(tb, directory, script, arguments...).Origin()
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
