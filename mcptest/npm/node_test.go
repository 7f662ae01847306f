package npm_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/psych-systems/psych-go/mcptest"
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

const reborn = `process.on("order", (order) => console.log("took " + order));
require("node:http").createServer((request, response) => {
	response.writeHead(200, {"content-type": "text/event-stream"}).flushHeaders();
	if (request.method === "POST") request.resume().on("end", () => response.end("hello"));
}).listen()`

func TestAServerIsWatchedCutAndStartedAgain(t *testing.T) {
	directory := t.TempDir()
	script := npm.Scripts(t, directory, fstest.MapFS{"server.js": {Data: []byte(reborn)}}) + "/server.js"
	server := npm.Serve(t, directory, script)
	origin := server.Origin()
	for life := 1; life <= 2; life++ {
		stream, err := http.Get(origin)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post(origin+"/mcp", "application/json", strings.NewReader(`{"method":"tools/call","params":{"name":"echo"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "hello" {
			t.Errorf("it answers %q (%v)", body, err)
		}
		_ = answer.Body.Close()
		server.Order("greetings")
		if n := server.Printed("took greetings"); n != life {
			t.Errorf("it took %d orders of %d", n, life)
		}
		server.CutStreams()
		if _, err := io.ReadAll(stream.Body); err == nil {
			t.Error("the stream was not cut")
		}
		_ = stream.Body.Close()
		calls := slices.DeleteFunc(server.Requests(), func(r mcptest.Request) bool { return !r.About(mcptest.CallOf("echo")) })
		if len(calls) != life || calls[0].Path != "/mcp" || calls[0].Header.Get("Content-Type") != "application/json" {
			t.Errorf("it tells of the calls %+v", calls)
		}
		server.Stop()
		if response, err := http.Get(origin); err == nil {
			_ = response.Body.Close()
			t.Error("it answers when it is stopped")
		}
		server.Start()
	}
	if server.Origin() != origin {
		t.Errorf("it moved from %s to %s", origin, server.Origin())
	}
}
