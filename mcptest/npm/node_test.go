package npm_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/psych-systems/psych-go/mcptest/npm"
)

const server = `require("node:http").createServer((_, response) => response.end("hello"))
	.listen(process.env.PORT || 3001, () => console.log("up"))`

func TestAServerListensOnLoopbackAndEndsWithItsTest(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "server.js"), []byte(server), 0o600); err != nil {
		t.Fatal(err)
	}
	var origin string
	t.Run("running", func(t *testing.T) {
		origin = npm.Node(t, directory, "server.js")
		response, err := http.Get(origin)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		if body, err := io.ReadAll(response.Body); err != nil || string(body) != "hello" {
			t.Errorf("it answers %q (%v)", body, err)
		}
	})
	if origin == "" {
		return // the inner test tells why
	}
	if response, err := http.Get(origin); err == nil {
		_ = response.Body.Close()
		t.Error("it outlives its test")
	}
}
