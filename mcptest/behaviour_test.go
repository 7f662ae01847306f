package mcptest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/mcptest"
)

const metadata = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// request is a request of 2026-07-28 as a client must make it.
func request(t *testing.T, s *mcptest.Server, method, params string) *http.Request {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s"_meta":{%s}}}`, method, params, metadata)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", method)
	return r
}

func callRequest(t *testing.T, s *mcptest.Server, tool string) *http.Request {
	t.Helper()
	r := request(t, s, "tools/call", fmt.Sprintf(`"name":%q,`, tool))
	r.Header.Set("Mcp-Name", tool)
	return r
}

// seen is what a client saw of an answer.
type seen struct {
	status int
	header http.Header
	body   string
	err    error // of the request, or of reading the body
	sent   bool  // the answer had begun
}

func send(client *http.Client, r *http.Request) seen {
	response, err := client.Do(r)
	if err != nil {
		return seen{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return seen{response.StatusCode, response.Header, string(body), err, true}
}

const good = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcptest","version":"1"}},"content":[{"type":"text","text":"ran"}]}}`

func TestEachBehaviourDoesWhatItIsNamedFor(t *testing.T) {
	body := func(want string) func(seen) bool {
		return func(got seen) bool { return got.err == nil && got.status == 200 && got.body == want }
	}
	status := func(want int) func(seen) bool {
		return func(got seen) bool { return got.err == nil && got.status == want }
	}
	short := func(got seen) bool { return got.sent && errors.Is(got.err, io.ErrUnexpectedEOF) }
	ends := func(suffix string, bytes int) func(seen) bool {
		return func(got seen) bool {
			return got.err == nil && len(got.body) >= bytes && strings.HasSuffix(got.body, suffix)
		}
	}
	for _, test := range []struct {
		behaviour mcptest.Behaviour
		runs      int32 // how often the tool runs
		holds     func(seen) bool
	}{
		{mcptest.Ordinary(), 1, body(good)},
		{mcptest.Delay(time.Millisecond), 1, body(good)},
		{mcptest.Execute(), 1, body(good)},
		{mcptest.Execute().Then(mcptest.Execute(), mcptest.Ordinary()), 1, body(good)},
		{mcptest.Execute().Then(mcptest.Status(502, "text/html", "<p>")), 1, status(502)},
		{mcptest.Status(418, "", "no"), 0, func(got seen) bool {
			return got.status == 418 && got.body == "no" && got.header["Content-Type"] == nil
		}},
		{mcptest.Body("text/plain", "$ID: $REPLY"), 1, body("7: " + good)},
		{mcptest.JSON(""), 0, body("")},
		{mcptest.Accepted(), 0, status(202)},
		{mcptest.Unauthorized(`Bearer scope="a"`), 0, func(got seen) bool {
			return got.status == 401 && got.header.Get("WWW-Authenticate") == `Bearer scope="a"`
		}},
		{mcptest.Forbidden(""), 0, func(got seen) bool { return got.status == 403 && got.header["Www-Authenticate"] == nil }},
		{mcptest.TooMany("3"), 0, func(got seen) bool { return got.status == 429 && got.header.Get("Retry-After") == "3" }},
		{mcptest.Redirect(307, "http://127.0.0.1:1/x"), 0, func(got seen) bool {
			return got.status == 307 && got.header.Get("Location") == "http://127.0.0.1:1/x"
		}},
		{mcptest.Reset(), 0, func(got seen) bool { return !got.sent && errors.Is(got.err, syscall.ECONNRESET) }},
		{mcptest.Close(), 0, func(got seen) bool { return !got.sent && errors.Is(got.err, io.EOF) }},
		{mcptest.End(), 0, body("")},
		{mcptest.CutHalfway(), 1, short},
		{mcptest.ResetHalfway(), 1, func(got seen) bool { return got.err != nil }},
		{mcptest.Headers(200, "application/json").Then(mcptest.Write("{"), mcptest.Close()), 0, short},
		{mcptest.Events(": hi\n\ndata: x\n\n"), 0, body(": hi\n\ndata: x\n\n")},
		{mcptest.ReplyAfter("ping\n\n"), 1, body("ping\n\nevent: message\ndata: " + good + "\n\n")},
		{mcptest.ReplyLines("\r"), 1, body("event: message\rdata: {\"jsonrpc\":\rdata: " + strings.TrimPrefix(good, `{"jsonrpc":`) + "\r\r")},
		{mcptest.CutEvent(), 1, func(got seen) bool { return got.err == nil && !strings.Contains(got.body, "\n\n") }},
		{mcptest.Prime(time.Second), 1, body("id: event-1\nretry: 1000\ndata:\n\n")},
		{mcptest.Progress(1000), 1, ends("data: "+good+"\n\n", 100_000)},
		{mcptest.Message(`{"a":$ID}`), 0, body(`{"a":7}`)},
		{mcptest.Answer(`{"x":1}`), 0, body(`{"jsonrpc":"2.0","id":7,"result":{"x":1}}`)},
		{mcptest.Error(-32042, "odd", `{"a":1}`), 0, body(`{"jsonrpc":"2.0","id":7,"error":{"code":-32042,"message":"odd","data":{"a":1}}}`)},
		{mcptest.InputRequired(`{}`), 0, body(`{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{}}}`)},
		{mcptest.WrongID(), 1, func(got seen) bool { return strings.Contains(got.body, `"id":"nobody asked"`) }},
		{mcptest.NullID(), 1, func(got seen) bool { return strings.Contains(got.body, `"id":null`) }},
		{mcptest.TextError("gone"), 0, body(`{"error":"gone"}`)},
		{mcptest.Batch(), 1, body("[" + good + "]")},
		{mcptest.Nested(20_000), 0, ends("]]]]}}", 40_000)},
		{mcptest.Huge(1 << 20), 1, ends(good, 1<<20)},
		{mcptest.HugeStatus(500, 1<<20), 0, func(got seen) bool { return got.status == 500 && len(got.body) == 1<<20 }},
		{mcptest.HugeEvent(1 << 20), 1, ends(good+"\n\n", 1<<20)},
		{mcptest.GzipBomb(1 << 20), 1, ends(good, 1<<20)},
		{mcptest.Bomb(1<<20, "gzip", "gzip"), 1, func(got seen) bool {
			return got.header.Get("Content-Encoding") == "gzip, gzip" && len(got.body) > 0 && len(got.body) < 10_000
		}},
		{mcptest.Bomb(1<<20, "deflate"), 1, func(got seen) bool {
			return got.header.Get("Content-Encoding") == "deflate" && len(got.body) > 0 && len(got.body) < 10_000
		}},
		{mcptest.Bomb(1<<20, "br"), 1, ends(good, 1<<20)},
		{mcptest.HugeHeader(1 << 20), 1, func(got seen) bool { return len(got.header.Get("X-Padding")) == 1<<20 && got.body == good }},
	} {
		t.Run(test.behaviour.String(), func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int32
			s := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{Name: "run", Call: func(context.Context, mcptest.Call) mcptest.Result {
				runs.Add(1)
				return mcptest.Text("ran")
			}}))
			s.On("tools/call", test.behaviour)
			client := newClient(t, "")
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			got := send(client, callRequest(t, s, "run"))
			if !test.holds(got) {
				t.Errorf("the client saw %+.1000v", got)
			}
			if runs.Load() != test.runs {
				t.Errorf("the tool ran %d times", runs.Load())
			}
		})
	}
}

func TestSomeBehavioursNeverEnd(t *testing.T) {
	for _, test := range []struct {
		behaviour mcptest.Behaviour
		begins    string // what comes; "" where not even headers do
	}{
		{mcptest.Hang(), ""},
		{mcptest.Headers(200, "text/event-stream").Then(mcptest.Write(":"), mcptest.Hang()), ":"},
		{mcptest.HangHalfway(), `{"json`},
		{mcptest.Drip("application/json", time.Millisecond), "   "},
		{mcptest.Endless("application/json"), strings.Repeat(" ", 4096)},
	} {
		t.Run(test.behaviour.String(), func(t *testing.T) {
			t.Parallel()
			s := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{Name: "run"}))
			s.On("tools/call", test.behaviour)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.begins == "" {
				go func() {
					s.WaitFor("tools/call", 1)
					cancel()
				}()
			}
			response, err := newClient(t, "").Do(callRequest(t, s, "run").WithContext(ctx))
			if err != nil {
				if test.begins != "" || !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				return
			}
			defer func() { _ = response.Body.Close() }()
			got := make([]byte, len(test.begins))
			if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != test.begins {
				t.Errorf("it begins with %.20q (%v)", got, err)
			}
			cancel()
			if _, err := io.Copy(io.Discard, response.Body); !errors.Is(err, context.Canceled) {
				t.Errorf("it ended by itself: %v", err)
			}
		})
	}
}

func TestEveryFaultEndsAndIsOver(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{Name: "bad"}, mcptest.Tool{Name: "good"}))
	client := newClient(t, "")
	names := make(map[string]bool)
	for _, fault := range mcptest.Faults(100_000) {
		if names[fault.String()] {
			t.Errorf("two faults are named %q", fault)
		}
		names[fault.String()] = true
		s.On(mcptest.CallOf("bad"), fault)
		got := send(client, callRequest(t, s, "bad"))
		if got.err == nil && got.status == 200 && strings.TrimSpace(got.body) == strings.ReplaceAll(good, "ran", "ok") &&
			!strings.HasPrefix(fault.String(), "a reply") && len(got.body) < 100_000 {
			t.Errorf("%s is no fault", fault)
		}
		if got := send(client, callRequest(t, s, "good")); got.status != 200 {
			t.Errorf("after %s a good call is answered %+v", fault, got)
		}
	}
	for _, stall := range mcptest.Stalls() {
		if names[stall.String()] {
			t.Errorf("two faults are named %q", stall)
		}
		names[stall.String()] = true
		s.On(mcptest.CallOf("bad"), stall)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if got := send(client, callRequest(t, s, "bad").WithContext(ctx)); !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("%s ended: %+v", stall, got)
		}
		cancel()
	}
	t.Log(len(names), "faults")
}

func TestAnIdleConnectionIsClosedUnderItsClient(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{Name: "run"}))
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.Origin(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if err := callRequest(t, s, "run").Write(connection); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("got %+v (%v)", response, err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	for { // the server calls a connection idle a moment after its answer has come
		s.CloseIdle()
		_ = connection.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if _, err := reader.ReadByte(); errors.Is(err, io.EOF) {
			return
		}
	}
}

func TestAScriptIsPlayedInOrderAndTheNarrowestCounts(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{Name: "a"}, mcptest.Tool{Name: "b"}))
	s.On(mcptest.CallOf("a"), mcptest.Status(501, "", "").Times(2), mcptest.Status(502, "", "").Once())
	s.On("tools/call", mcptest.Status(503, "", "").Once())
	s.On(mcptest.Any, mcptest.Status(504, "", "").Times(2))
	client := newClient(t, "")
	for i, step := range []struct {
		tool   string
		status int
	}{{"a", 501}, {"b", 503}, {"a", 501}, {"a", 502}, {"b", 504}, {"a", 504}, {"a", 200}, {"b", 200}} {
		if got := send(client, callRequest(t, s, step.tool)); got.status != step.status {
			t.Errorf("step %d: got %d and not %d", i, got.status, step.status)
		}
	}
	s.On("tools/call", mcptest.Status(500, "", ""))
	for range 3 {
		if got := send(client, callRequest(t, s, "a")); got.status != 500 {
			t.Errorf("a lasting behaviour answers %d", got.status)
		}
	}
	s.On("tools/call")
	if got := send(client, callRequest(t, s, "a")); got.status != 200 {
		t.Errorf("an empty script answers %d", got.status)
	}
	if got := len(s.Requests(mcptest.CallOf("a"))); got != 9 {
		t.Errorf("the log holds %d calls of a", got)
	}
}

func TestAModernServerRefusesMetadataThatDoesNotFit(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.Tools(echo, mcptest.Tool{Name: "größe"}))
	const arguments = `"name":"echo","arguments":{"text":"ü","in":{"n":42}},`
	for name, test := range map[string]struct {
		change func(*http.Request)
		params string
		status int
		code   int
	}{
		"everything fits":       {func(r *http.Request) { r.Header.Set("Mcp-Param-N", "42.0") }, arguments, 200, 0},
		"no version":            {func(r *http.Request) { r.Header.Del("MCP-Protocol-Version") }, arguments, 400, -32020},
		"another version":       {func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", "2025-11-25") }, arguments, 400, -32020},
		"no method":             {func(r *http.Request) { r.Header.Del("Mcp-Method") }, arguments, 400, -32020},
		"another name":          {func(r *http.Request) { r.Header.Set("Mcp-Name", "eho") }, arguments, 400, -32020},
		"a raw name":            {func(r *http.Request) { r.Header.Set("Mcp-Name", "größe") }, `"name":"größe",`, 400, -32020},
		"an encoded name":       {func(r *http.Request) { r.Header.Set("Mcp-Name", "=?base64?Z3LDtsOfZQ==?=") }, `"name":"größe",`, 200, 0},
		"no parameter":          {func(r *http.Request) { r.Header.Del("Mcp-Param-Text") }, arguments, 400, -32020},
		"another parameter":     {func(r *http.Request) { r.Header.Set("Mcp-Param-N", "43") }, arguments, 400, -32020},
		"a parameter too many":  {func(r *http.Request) {}, `"name":"echo","arguments":{"text":null},`, 400, -32020},
		"a broken encoding":     {func(r *http.Request) { r.Header.Set("Mcp-Param-Text", "=?base64?*?=") }, arguments, 400, -32020},
		"no media type":         {func(r *http.Request) { r.Header.Del("Accept") }, arguments, 406, 0},
		"another content":       {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, arguments, 415, 0},
		"another site's script": {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, arguments, 403, 0},
		"a GET":                 {func(r *http.Request) { r.Method = http.MethodGet }, arguments, 405, 0},
		"a method that is none": {func(r *http.Request) { r.Header.Set("Mcp-Method", "x") }, "", 404, -32601},
	} {
		method := "tools/call"
		if test.params == "" {
			method = "x"
		}
		r := request(t, s, method, test.params)
		r.Header.Set("Mcp-Name", "echo")
		r.Header.Set("Mcp-Param-Text", "=?base64?w7w=?=")
		r.Header.Set("Mcp-Param-N", "42")
		if strings.Contains(test.params, "größe") {
			r.Header.Del("Mcp-Param-Text")
			r.Header.Del("Mcp-Param-N")
		}
		test.change(r)
		got := send(newClient(t, ""), r)
		var message struct {
			Error struct{ Code int }
		}
		_ = json.Unmarshal([]byte(got.body), &message)
		if got.status != test.status || message.Error.Code != test.code {
			t.Errorf("%s: got %d and %s", name, got.status, got.body)
		}
	}
	old := request(t, s, "initialize", "")
	if got := send(newClient(t, ""), old); got.status != 400 || !strings.Contains(got.body, `"supported":["2026-07-28"]`) {
		t.Errorf("initialize is answered %d and %s", got.status, got.body)
	}
}

func TestAListThatWasHeldBackIsTheOldOne(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{Name: "old"}))
	made, released := make(chan struct{}), make(chan struct{})
	s.On("tools/list", mcptest.Execute().Then(mcptest.Tell(made), mcptest.Until(released)).Once())
	answer := make(chan seen)
	go func() { answer <- send(newClient(t, ""), request(t, s, "tools/list", "")) }()
	<-made
	s.SetTools(mcptest.Tool{Name: "new"})
	close(released)
	if got := <-answer; !strings.Contains(got.body, `"old"`) {
		t.Errorf("got %s", got.body)
	}
	if got := send(newClient(t, ""), request(t, s, "tools/list", "")); !strings.Contains(got.body, `"new"`) {
		t.Errorf("got %s", got.body)
	}
}

func TestAStreamOfEventsCanBeReadLineByLine(t *testing.T) {
	s := mcptest.NewServer(t)
	response, err := newClient(t, "").Do(request(t, s, "subscriptions/listen", `"notifications":{"toolsListChanged":true},`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	next := func() string {
		for lines.Scan() {
			if data, isData := strings.CutPrefix(lines.Text(), "data: "); isData {
				return data
			}
		}
		return "the end"
	}
	s.WaitStreams(1)
	s.NotifyToolsChanged()
	s.WriteStreams(": nonsense\n\ndata: x\n\n")
	s.CloseStreams()
	for _, want := range []string{"notifications/subscriptions/acknowledged", "notifications/tools/list_changed", "x", `"resultType":"complete"`, "the end"} {
		if got := next(); !strings.Contains(got, want) {
			t.Errorf("got %s and not %s", got, want)
		}
	}
	s.WaitStreams(0)
}
