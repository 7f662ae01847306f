package mcptest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/mcptest"
)

// A test asks how its own client takes two busy answers and a lost one.
func Example() {
	// In a test, t is the test's own *testing.T.
	story := func(t testing.TB) {
		server := mcptest.NewServer(t,
			mcptest.Legacy(mcptest.Version20251125), mcptest.Stateless(),
			mcptest.Tools(mcptest.Tool{Name: "greet"}))
		server.On("tools/call",
			mcptest.Status(503, "text/plain", "busy").Times(2),
			mcptest.Execute().Then(mcptest.Reset()).Once(),
		)
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet"}}`
		for range 4 {
			request, _ := http.NewRequest(http.MethodPost, server.URL(), strings.NewReader(call))
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "application/json, text/event-stream")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				fmt.Println("no answer")
				continue
			}
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			fmt.Println(response.StatusCode, string(body))
		}
		fmt.Println(len(server.Requests(mcptest.CallOf("greet"))), "calls reached the server")
	}
	run(story)
	// Output:
	// 503 busy
	// 503 busy
	// no answer
	// 200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ok"}]}}
	// 4 calls reached the server
}

// run stands in for a test, which an example has not got.
func run(story func(testing.TB)) {
	t := new(exampleTB)
	defer func() { t.cleanup() }()
	story(t)
	http.DefaultClient.CloseIdleConnections()
}

type exampleTB struct {
	testing.TB
	cleanup func()
}

func (*exampleTB) Helper()            {}
func (t *exampleTB) Cleanup(f func()) { t.cleanup = f }
