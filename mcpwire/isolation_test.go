package mcpwire_test

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
)

const ceiling = 256 << 10

// fault is something that a peer does about one call, and what is right then.
type fault struct {
	name     string
	peer     behaviour
	text     string       // the result's text when the call succeeds all the same
	kind     failure.Kind // how it fails else
	ran      bool         // it may have run
	deadline bool         // the caller has a short one
}

var faults = []fault{
	// Harmless bytes before or around a reply.
	{name: "comment", peer: events(": hi\n\ndata: $REPLY\n\n"), text: "ok"},
	{name: "bare unknown line", peer: events("ping\n\ndata: $REPLY\n\n"), text: "ok"},
	{name: "bare data", peer: events("data\n\ndata: $REPLY\n\n"), text: "ok"},
	{name: "data that is not JSON", peer: events("data: ping\n\ndata: $REPLY\n\n"), text: "ok"},
	{name: "data that is no message", peer: events("data: {}\n\ndata: [] \n\ndata: 5\n\ndata: $REPLY\n\n"), text: "ok"},
	{name: "data that is cut JSON", peer: events("data: {\"jsonrpc\":\n\ndata: $REPLY\n\n"), text: "ok"},
	{name: "array in an event", peer: events("data: [{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"},$REPLY]\n\n"), text: "ok"},
	{name: "CR LF", peer: events(": x\r\ndata: $REPLY\r\n\r\n"), text: "ok"},
	{name: "lone CR", peer: events("data: $REPLY\r\r"), text: "ok"},
	{name: "several data lines", peer: events("data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":$ID,\ndata: \"result\":{\"content\":\ndata: []}}\n\n")},
	{name: "byte order mark", peer: events("\uFEFFdata: $REPLY\n\n"), text: "ok"},
	{name: "another event name", peer: events("event: result\ndata: $REPLY\n\n"), text: "ok"},
	{name: "progress first", peer: events(strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n", 500) + "data: $REPLY\n\n"), text: "ok"},
	{name: "a reply to somebody else first", peer: events("data: {\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{}}\n\ndata: $REPLY\n\n"), text: "ok"},
	{name: "the reply twice", peer: events("data: $REPLY\n\ndata: $REPLY\n\n"), text: "ok"},
	{name: "JSON with a charset", peer: raw(200, "application/json; charset=utf-8", "$REPLY"), text: "ok"},
	{name: "JSON in capitals", peer: raw(200, "Application/JSON", "$REPLY"), text: "ok"},
	{name: "JSON without a type", peer: raw(200, "-", "$REPLY"), text: "ok"},
	{name: "JSON array", peer: raw(200, "application/json", "[$REPLY]"), text: "ok"},
	{name: "JSON behind a byte order mark", peer: raw(200, "application/json", "\uFEFF$REPLY"), text: "ok"},
	{name: "white space around", peer: raw(200, "application/json", "\n\t $REPLY \r\n"), text: "ok"},
	{name: "our id as a text", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":"$ID","result":{"content":[{"type":"text","text":"ok"}]}}`), text: "ok"},
	{name: "our id with a fraction", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID.0,"result":{"content":[{"type":"text","text":"ok"}]}}`), text: "ok"},
	{name: "no jsonrpc member", peer: raw(200, "application/json", `{"id":$ID,"result":{"content":[{"type":"text","text":"ok"}]},"extra":1}`), text: "ok"},
	{name: "the stream stays open after the reply", peer: func(w http.ResponseWriter, r *request) {
		events("data: $REPLY\n\n")(w, r)
		<-r.Context().Done()
	}, text: "ok"},

	// Answers that make no sense.
	{name: "text/plain", peer: raw(200, "text/plain", "$REPLY"), kind: failure.KindMcpProtocolError, ran: true},
	{name: "a page", peer: raw(200, "text/html", "<html>"), kind: failure.KindMcpProtocolError, ran: true},
	{name: "nothing", peer: raw(200, "application/json", ""), kind: failure.KindMcpProtocolError, ran: true},
	{name: "not JSON", peer: raw(200, "application/json", "oops"), kind: failure.KindMcpProtocolError, ran: true},
	{name: "an empty object", peer: raw(200, "application/json", "{}"), kind: failure.KindMcpProtocolError, ran: true},
	{name: "an empty array", peer: raw(200, "application/json", "[]"), kind: failure.KindMcpProtocolError, ran: true},
	{name: "another id", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":987654,"result":{}}`), kind: failure.KindMcpProtocolError, ran: true},
	{name: "a result without id", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":null,"result":{}}`), kind: failure.KindMcpProtocolError, ran: true},
	{name: "a request for a reply", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"method":"ping"}`), kind: failure.KindMcpProtocolError, ran: true},
	{name: "an error that is not JSON-RPC", peer: raw(200, "application/json", `{"error":"oops"}`), kind: failure.KindMcpProtocolError, ran: true},
	{name: "an error code that is a text", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":"E1","message":"x"}}`), kind: failure.KindMcpProtocolError, ran: true},
	{name: "a result that is no object", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":null}`), kind: failure.KindMcpProtocolError, ran: true},
	{name: "a result that is not JSON", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{"content":[tru]}}`), kind: failure.KindMcpProtocolError, ran: true},
	{name: "nested too deep", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":`+strings.Repeat("[", 100_000)), kind: failure.KindMcpProtocolError, ran: true},
	{name: "202", peer: raw(202, "-", ""), kind: failure.KindMcpProtocolError, ran: true},
	{name: "204", peer: raw(204, "-", ""), kind: failure.KindMcpProtocolError, ran: true},
	{name: "a stream without a reply", peer: events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"), kind: failure.KindMcpServerUnreachable, ran: true},
	{name: "a stream whose reply is cut off", peer: events("data: $REPLY\n"), kind: failure.KindMcpServerUnreachable, ran: true},

	// Errors that the server tells.
	{name: "a JSON-RPC error", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"boom"}}`), kind: failure.KindMcpProtocolError},
	{name: "a JSON-RPC error without id", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"boom"}}`), kind: failure.KindMcpProtocolError},
	{name: "a JSON-RPC error in a stream", peer: events("data: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32602,\"message\":\"no\"}}\n\n"), kind: failure.KindMcpProtocolError},
	{name: "header mismatch", peer: raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"Header mismatch"}}`), kind: failure.KindMcpHeaderMismatchError},
	{name: "header mismatch of a draft", peer: raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"Header mismatch: Mcp-Name"}}`), kind: failure.KindMcpHeaderMismatchError},
	{name: "missing capability", peer: raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32021,"message":"x","data":{"requiredCapabilities":{"sampling":{}}}}}`), kind: failure.KindMcpMissingClientCapabilityError},
	{name: "missing capability of a draft", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32003,"message":"x","data":{"requiredCapabilities":{"sampling":{}}}}}`), kind: failure.KindMcpMissingClientCapabilityError},
	{name: "its number with another meaning", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32003,"message":"x"}}`), kind: failure.KindMcpProtocolError},
	{name: "unsupported version", peer: raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"x","data":{"supported":["2030-01-01"]}}}`), kind: failure.KindMcpUnsupportedProtocolVersion},
	{name: "unsupported version of a draft", peer: raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32004,"message":"x","data":{"supported":["2030-01-01"]}}}`), kind: failure.KindMcpUnsupportedProtocolVersion},
	{name: "a page to visit first", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32042,"message":"x"}}`), kind: failure.KindMcpInputRequiredError},
	{name: "input wanted", peer: raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}}`), kind: failure.KindMcpInputRequiredError},

	// Statuses.
	{name: "403", peer: raw(403, "text/plain", "no"), kind: failure.KindMcpProtocolError},
	{name: "413", peer: raw(413, "-", ""), kind: failure.KindMcpProtocolError},
	{name: "429", peer: raw(429, "-", ""), kind: failure.KindMcpServerUnreachable},
	{name: "500", peer: raw(500, "text/html", "<html>"), kind: failure.KindMcpServerUnreachable, ran: true},
	{name: "502 of the type of a stream", peer: raw(502, "text/event-stream", "data: $REPLY\n\n"), kind: failure.KindMcpServerUnreachable, ran: true},
	{name: "500 with a JSON-RPC error", peer: raw(500, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"boom"}}`), kind: failure.KindMcpProtocolError},
	{name: "500 with an endless body", peer: func(w http.ResponseWriter, r *request) {
		w.WriteHeader(http.StatusInternalServerError)
		endless(w, r)
	}, kind: failure.KindMcpServerUnreachable, ran: true},
	{name: "insufficient scope", peer: func(w http.ResponseWriter, _ *request) {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
		w.WriteHeader(http.StatusForbidden)
	}, kind: failure.KindInsufficientScope},

	// Too much.
	{name: "endless JSON", peer: func(w http.ResponseWriter, r *request) {
		w.Header().Set("Content-Type", "application/json")
		endless(w, r)
	}, kind: failure.KindMcpResponseTooLarge, ran: true},
	{name: "endless JSON, compressed", peer: func(w http.ResponseWriter, r *request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		endless(packed, r)
	}, kind: failure.KindMcpResponseTooLarge, ran: true},
	{name: "an announced size", peer: func(w http.ResponseWriter, r *request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000000000")
		_, _ = io.WriteString(w, "{")
		_ = http.NewResponseController(w).Flush()
		hangs(w, r)
	}, kind: failure.KindMcpResponseTooLarge, ran: true},
	{name: "an endless event", peer: func(w http.ResponseWriter, r *request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: ")
		endless(w, r)
	}, kind: failure.KindMcpResponseTooLarge, ran: true},
	{name: "endless events", peer: func(w http.ResponseWriter, r *request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"); err != nil {
				return
			}
		}
	}, kind: failure.KindMcpResponseTooLarge, ran: true},

	// Silence.
	{name: "no answer", peer: hangs, kind: failure.KindDeadlineExceeded, ran: true, deadline: true},
	{name: "half an answer", peer: func(w http.ResponseWriter, r *request) {
		raw(200, "application/json", `{"jsonrpc":`)(w, r)
		hangs(w, r)
	}, kind: failure.KindDeadlineExceeded, ran: true, deadline: true},
	{name: "half a stream", peer: func(w http.ResponseWriter, r *request) {
		events(": here\n\n")(w, r)
		hangs(w, r)
	}, kind: failure.KindDeadlineExceeded, ran: true, deadline: true},
	{name: "a byte now and then", peer: func(w http.ResponseWriter, r *request) {
		for w.Header().Set("Content-Type", "application/json"); r.Context().Err() == nil; time.Sleep(time.Millisecond) {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
		}
	}, kind: failure.KindDeadlineExceeded, ran: true, deadline: true},

	// Broken connections, after the tool has run.
	{name: "reset before the header", peer: func(w http.ResponseWriter, _ *request) { cut(w, "") }, kind: failure.KindMcpServerUnreachable, ran: true},
	{name: "reset within the body", peer: func(w http.ResponseWriter, _ *request) {
		cut(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\"")
	}, kind: failure.KindMcpServerUnreachable, ran: true},
	{name: "no HTTP", peer: func(w http.ResponseWriter, _ *request) { cut(w, "SSH-2.0-OpenSSH\r\n\r\n") }, kind: failure.KindMcpServerUnreachable, ran: true},
	{name: "a broken encoding", peer: func(w http.ResponseWriter, r *request) {
		w.Header().Set("Content-Encoding", "gzip")
		raw(200, "application/json", "$REPLY")(w, r)
	}, kind: failure.KindMcpServerUnreachable, ran: true},
}

func endless(w io.Writer, r *request) {
	block := []byte(strings.Repeat(" ", 32<<10))
	for r.Context().Err() == nil {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// cut writes a text on the bare connection and resets it.
func cut(w http.ResponseWriter, text string) {
	conn, out, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = out.WriteString(text)
	_ = out.Flush()
	if tcp, ok := conn.(*net.TCPConn); ok && text == "" {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// What goes wrong with one call is that call's own affair: its neighbours that are
// in flight get their answers, and so does the next call on the session.
func TestAFaultCostsItsOwnCall(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			for _, f := range faults {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					p := newPeer(t, version)
					p.does("bad", f.peer)
					s := connect(t, p, func(o *mcpwire.Options) {
						o.MaxResponseBytes = func() int64 { return ceiling }
					})
					settle := neighbours(t, p, s)
					patience := 20 * time.Second
					if f.deadline {
						patience = 50 * time.Millisecond
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					text, err := call(ctx, s, "bad")
					judge(t, f, text, err)
					settle()
					if text, err = call(t.Context(), s, "echo"); err != nil || text != "ok" {
						t.Errorf("the next call: %q, %v", text, err)
					}
					if ran := len(p.seen("bad")); ran != 1 {
						t.Errorf("the call was sent %d times", ran)
					}
				})
			}
		})
	}
}

func judge(t *testing.T, f fault, text string, err error) {
	t.Helper()
	if f.kind == "" {
		if err != nil || text != f.text {
			t.Errorf("got %q, %v; want %q", text, err, f.text)
		}
		return
	}
	if err == nil {
		t.Fatalf("no error, but %q", text)
	}
	if kind := failure.KindOf(err); kind != f.kind {
		t.Errorf("it failed as %s (%v), want %s", kind, err, f.kind)
	}
	if maybeRan(err) != f.ran {
		t.Errorf("it may have run: %v (%v)", maybeRan(err), err)
	}
	speaksWell(t, err)
}

// speaksWell holds every sentence to what a person may be shown.
func speaksWell(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if !strings.HasPrefix(text, `the server "peer" `) || strings.HasSuffix(text, ":") || strings.TrimSpace(text) != text ||
		strings.ContainsAny(text, "\n\t") || strings.Contains(text, "127.0.0.1") || len(text) > 500 {
		t.Errorf("not a sentence to show: %q", text)
	}
}

// A caller without a deadline does not wait for ever: not for an answer that does
// not begin, not for one that stops, not for one that never ends.
func TestWaitingHasAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		peer          behaviour
		request, idle time.Duration
	}{
		"no answer":      {hangs, 50 * time.Millisecond, time.Hour},
		"half an answer": {func(w http.ResponseWriter, r *request) { raw(200, "application/json", "{")(w, r); hangs(w, r) }, time.Hour, 50 * time.Millisecond},
		"half a stream":  {func(w http.ResponseWriter, r *request) { events(": hi\n\n")(w, r); hangs(w, r) }, time.Hour, 50 * time.Millisecond},
		"half an error":  {func(w http.ResponseWriter, r *request) { raw(500, "text/plain", "oo")(w, r); hangs(w, r) }, time.Hour, 50 * time.Millisecond},
		"a drip": {func(w http.ResponseWriter, r *request) {
			for w.Header().Set("Content-Type", "application/json"); r.Context().Err() == nil; time.Sleep(time.Millisecond) {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		}, 50 * time.Millisecond, time.Hour},
	} {
		for _, version := range []string{modern, legacy} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				p := newPeer(t, version)
				p.does("bad", c.peer)
				s := connect(t, p, func(o *mcpwire.Options) { o.RequestTimeout, o.IdleTimeout = c.request, c.idle })
				_, err := s.CallTool(t.Context(), &messages.CallTool{Tool: "bad"})
				judge(t, fault{kind: failure.KindMcpServerUnreachable, ran: true}, "", err)
				if name != "half an error" && !strings.Contains(err.Error(), "the connection timed out") {
					t.Error(err)
				}
			})
		}
	}
}

// Closing a session ends what is in flight on it, and leaves nothing behind.
func TestCloseEndsEverything(t *testing.T) {
	for _, version := range []string{modern, legacy} {
		p := newPeer(t, version)
		p.does("bad", hangs)
		p.does(stream(version), func(w http.ResponseWriter, r *request) { events(acknowledged)(w, r); hangs(w, r) })
		s := connect(t, p)
		ended := make(chan error, 2)
		opened := make(chan struct{})
		go func() { _, err := call(t.Context(), s, "bad"); ended <- err }()
		go func() {
			_, err := s.Watch(t.Context(), "", func() { close(opened) }, func() {})
			ended <- err
		}()
		soon(t, "the stream is opened", opened)
		eventually(t, "the call is in flight", func() bool { return len(p.seen("bad")) == 1 })
		s.Close()
		for range 2 {
			if err := <-ended; failure.KindOf(err) != failure.KindCancelled {
				t.Error(err)
			}
		}
		if _, err := call(t.Context(), s, "echo"); failure.KindOf(err) != failure.KindCancelled || maybeRan(err) {
			t.Errorf("a call after the end: %v", err)
		}
	}
}
