package mcpwire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/secret"
)

// Whatever an older server answers to the question for 2026-07-28, it is asked to
// initialize next, and connects.
func TestAnOddAnswerToTheProbeMeansAnOlderServer(t *testing.T) {
	probes := map[string]behaviour{
		"202":                      raw(202, "-", ""),
		"204":                      raw(204, "-", ""),
		"empty JSON":               raw(200, "application/json", ""),
		"a page":                   raw(200, "text/html", "<html>"),
		"an error without id":      raw(200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}`),
		"not JSON-RPC":             raw(400, "application/json", `{"error":{"code":"BAD","message":"x"}}`),
		"a text with JSON-RPC":     raw(400, "text/plain", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"x"}}`),
		"401":                      challenge,
		"no answer":                hangs,
		"half an answer":           func(w http.ResponseWriter, r *request) { raw(200, "application/json", "{")(w, r); hangs(w, r) },
		"404":                      raw(404, "text/plain", "404 page not found"),
		"405":                      raw(405, "-", ""),
		"500":                      raw(500, "text/plain", "oops"),
		"a reset":                  func(w http.ResponseWriter, _ *request) { cut(w, "") },
		"a stream without a reply": events(": nothing\n\n"),
		"an odd result":            raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":"hello"}`),
		"a result of another kind": raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{"supportedVersions":7}}`),
		"only older revisions":     raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{"supportedVersions":["2025-06-18"],"capabilities":{}}}`),
		"unsupported version":      raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"x","data":{"supported":["2025-11-25"]}}}`),
		"nested too deep":          raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":`+strings.Repeat(`{"a":`, 5000)),
		"endless": func(w http.ResponseWriter, r *request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, r)
		},
		"a redirect elsewhere": func(w http.ResponseWriter, _ *request) {
			w.Header().Set("Location", "https://elsewhere.invalid/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
	}
	for name, probe := range probes {
		for _, version := range []string{legacy, "2025-06-18", "2025-03-26"} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				p := newPeer(t, version)
				p.does("server/discover", probe)
				s := connect(t, p, func(o *mcpwire.Options) {
					o.ProbeTimeout = 100 * time.Millisecond
					o.MaxResponseBytes = func() int64 { return ceiling }
				})
				if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" {
					t.Fatalf("%q, %v", text, err)
				}
				if s.Instructions() != "Use it well." {
					t.Errorf("instructions %q", s.Instructions())
				}
				if got := p.seen("echo")[0].Header.Get("Mcp-Protocol-Version"); got != version {
					t.Errorf("a call of revision %q", got)
				}
			})
		}
	}
}

// A modern server whose first answer is lost, or is a gateway's, is not taken for one
// that speaks no revision of ours: it is asked again, and told of as it is.
func TestAModernServerWhoseAnswerToTheProbeIsLost(t *testing.T) {
	for name, fault := range map[string]behaviour{
		"a reset": func(w http.ResponseWriter, _ *request) { cut(w, "") },
		"502":     raw(502, "text/html", "<p>"), "503": raw(503, "-", ""), "429": raw(429, "-", ""), "404": raw(404, "-", ""),
		"garbage": raw(200, "application/json", "{"), "a page": raw(200, "text/html", "<html>"), "202": raw(202, "-", ""),
	} {
		for _, lasts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, for ever: %t", name, lasts), func(t *testing.T) {
				t.Parallel()
				p := newPeer(t, modern)
				p.does("initialize", raw(400, "application/json",
					`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"Unsupported","data":{"supported":["2026-07-28"]}}}`))
				p.does("server/discover", func(w http.ResponseWriter, r *request) {
					if lasts || len(p.seen("server/discover")) == 1 {
						fault(w, r)
						return
					}
					p.standard(w, r)
				})
				if !lasts {
					connect(t, p)
					return
				}
				_, err := mcpwire.Connect(t.Context(), options(t, p.URL), "")
				if kind := failure.KindOf(err); kind != failure.KindMcpServerUnreachable && kind != failure.KindMcpProtocolError {
					t.Errorf("%s: %v", kind, err)
				}
				if asked := len(p.seen("server/discover")); asked != 2 {
					t.Errorf("it was asked %d times", asked)
				}
			})
		}
	}
}

// Every status with every kind of body is an answer that an older server may give
// to a question it does not know.
func TestAnyStatusWithAnyBodyMeansAnOlderServer(t *testing.T) {
	bodies := []mcptest.Behaviour{}
	for _, status := range []int{200, 202, 204, 400, 401, 403, 404, 405, 406, 409, 415, 422, 429, 500, 501, 502, 503, 504} {
		for _, body := range []struct{ media, text string }{
			{"", ""}, {"text/html", "<p>No.</p>"}, {"text/plain", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}`},
			{"application/json", ""}, {"application/json", `{"error":{"code":"BAD","message":"no"}}`}, {"application/json", `{"jsonrpc":"2.0",`},
			{"application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`},
			{"application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32600,"message":"no"}}`},
			{"text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n\n"},
		} {
			bodies = append(bodies, mcptest.Status(status, body.media, body.text).Named(fmt.Sprintf("%d %s %.60s", status, body.media, body.text)))
		}
	}
	server := mcptest.NewServer(t, mcptest.Legacy(legacy), mcptest.Tools(mcptest.Tool{Name: "echo"}))
	for _, odd := range bodies {
		server.On("server/discover", odd)
		s, err := mcpwire.Connect(t.Context(), options(t, server.URL()), "")
		if err != nil {
			t.Errorf("%s: %v", odd, err)
			continue
		}
		if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" || s.ProtocolVersion() != legacy {
			t.Errorf("%s: %q, %v", odd, text, err)
		}
		s.Close()
	}
}

func challenge(w http.ResponseWriter, _ *request) {
	w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://example.com/.well-known/oauth-protected-resource"`)
	w.WriteHeader(http.StatusUnauthorized)
}

func TestAModernServerIsAskedOnce(t *testing.T) {
	p := newPeer(t, modern)
	s := connect(t, p)
	if n := len(p.seen("")); n != 1 {
		t.Errorf("connecting took %d requests", n)
	}
	if _, err := call(t.Context(), s, "größe"); err != nil {
		t.Fatal(err)
	}
	r := p.seen("größe")[0]
	for field, want := range map[string]string{
		"Mcp-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?Z3LDtsOfZQ==?=",
		"Mcp-Session-Id": "", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
	} {
		if got := r.Header.Get(field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if !strings.Contains(string(r.Params.Meta), `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`) {
		t.Errorf("metadata %s", r.Params.Meta)
	}
	s.Close()
	if n := len(p.seen(http.MethodDelete)); n != 0 {
		t.Error("a session was ended that there is none of")
	}
}

func TestAnOlderServerKeepsItsSession(t *testing.T) {
	p := newPeer(t, legacy)
	s := connect(t, p)
	if _, err := call(t.Context(), s, "echo"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	for _, key := range []string{"notifications/initialized", "echo", http.MethodDelete} {
		seen := p.seen(key)
		if len(seen) != 1 || seen[0].Header.Get("Mcp-Session-Id") != "s1" || seen[0].Header.Get("Mcp-Protocol-Version") != legacy {
			t.Errorf("%s was seen as %v", key, seen)
		}
	}
	if got := p.seen("echo")[0]; got.Header.Get("Mcp-Method") != "" || got.Params.Meta != nil {
		t.Errorf("a call of an older revision has what is of a newer one: %v %s", got.Header, got.Body)
	}
}

func TestAKnownRevisionIsNotAskedFor(t *testing.T) {
	p := newPeer(t, legacy)
	connect(t, p, func(o *mcpwire.Options) { o.KnownVersion = "2025-06-18" })
	if len(p.seen("server/discover")) != 0 {
		t.Error("the probe was made all the same")
	}
	renewed := newPeer(t, modern)
	connect(t, renewed, func(o *mcpwire.Options) { o.KnownVersion = legacy })
}

func TestWhyThereIsNoConnection(t *testing.T) {
	refused := newPeer(t, modern)
	refused.Server.Close()
	both := func(b behaviour) func(*testing.T) string {
		return func(t *testing.T) string {
			p := newPeer(t, legacy)
			p.does("server/discover", b)
			p.does("initialize", b)
			return p.URL
		}
	}
	cases := []struct {
		name  string
		url   func(t *testing.T) string
		kind  failure.Kind
		words string
	}{
		{"nobody there", func(*testing.T) string { return refused.URL }, failure.KindMcpServerUnreachable, "the connection was refused"},
		{"no such host", func(*testing.T) string { return "http://nowhere.invalid/mcp?key=hush" }, failure.KindMcpServerUnreachable, "its host name"},
		{"no answer", both(hangs), failure.KindMcpServerUnreachable, "the connection timed out"},
		{"wants OAuth", both(challenge), failure.KindMcpServerUnreachable, "wants OAuth and none is configured"},
		{"not found", both(raw(404, "text/html", "<html>")), failure.KindMcpServerUnreachable, "404 Not Found"},
		{"down", both(raw(503, "text/html", "<html>")), failure.KindMcpServerUnreachable, "503 Service Unavailable"},
		{"a page", both(raw(200, "text/html", "<html>")), failure.KindMcpProtocolError, "text/html"},
		{"a future revision", both(raw(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2031-01-01","capabilities":{}}}`)), failure.KindMcpUnsupportedProtocolVersion, "2031-01-01"},
		{"only future revisions", both(raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"x","data":{"supported":["2031-01-01"]}}}`)), failure.KindMcpUnsupportedProtocolVersion, "2031-01-01"},
		{"a capability is missing", both(raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32021,"message":"x","data":{"requiredCapabilities":{"roots":{}}}}}`)), failure.KindMcpMissingClientCapabilityError, "roots"},
		{"too large", both(func(w http.ResponseWriter, r *request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, r)
		}), failure.KindMcpResponseTooLarge, "bytes allowed"},
		{"a redirect elsewhere", both(func(w http.ResponseWriter, _ *request) {
			w.Header().Set("Location", "https://elsewhere.invalid/")
			w.WriteHeader(http.StatusPermanentRedirect)
		}), failure.KindMcpProtocolError, "elsewhere"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := options(t, c.url(t))
			o.ConnectTimeout = 400 * time.Millisecond
			o.MaxResponseBytes = func() int64 { return ceiling }
			if c.name == "no such host" {
				o.ConnectTimeout = 5 * time.Second
			}
			_, err := mcpwire.Connect(t.Context(), o, "")
			if failure.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.words) {
				t.Fatalf("%s: %v", failure.KindOf(err), err)
			}
			if strings.Contains(err.Error(), "hush") {
				t.Error("the sentence holds a query")
			}
			speaksWell(t, err)
		})
	}
}

func TestConnectKeepsItsDeadline(t *testing.T) {
	p := newPeer(t, legacy)
	p.does("server/discover", hangs)
	p.does("initialize", hangs)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := mcpwire.Connect(ctx, options(t, p.URL), "")
	if _, ok := errors.AsType[*failure.McpServerUnreachable](err); !ok || !strings.Contains(err.Error(), "the connection timed out") {
		t.Fatal(err)
	}
	if len(p.seen("initialize")) != 1 {
		t.Error("the probe left no time for the older era")
	}
}

func TestACredentialIsResolvedForEachRequestAndNeverShown(t *testing.T) {
	const token = "tok-4711-secret"
	p := newPeer(t, legacy)
	p.does("leak", raw(400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"bad token `+token+`"}}`))
	p.does("refuse", challenge)
	var asked atomic.Int32
	o := options(t, p.URL)
	o.Authorize = func(_ context.Context, name string) (mcpwire.Token, error) {
		asked.Add(1)
		switch name {
		case "main":
			return mcpwire.Token{Value: secret.NewText(token)}, nil
		case "rotated":
			return mcpwire.Token{}, messages.ErrStaleKey
		case "odd":
			return mcpwire.Token{Value: secret.NewText("a\r\nX-Evil: 1")}, nil
		}
		return mcpwire.Token{}, failure.New(failure.KindCredentialNotFound, "there is no such credential", nil)
	}
	s, err := mcpwire.Connect(t.Context(), o, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	do := func(tool, credential string) error {
		_, err := s.CallTool(t.Context(), &messages.CallTool{Tool: tool, Target: &messages.Target{Credential: credential}})
		return err
	}
	if err := do("echo", "main"); err != nil {
		t.Fatal(err)
	}
	for _, r := range p.seen("") {
		if r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("%s came with %q", r.key(), r.Header.Get("Authorization"))
		}
	}
	if int(asked.Load()) != len(p.seen("")) {
		t.Errorf("%d requests resolved the credential %d times", len(p.seen("")), asked.Load())
	}
	if err := do("leak", "main"); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("the server's echo of the token: %v", err)
	}
	err = do("refuse", "main")
	if failure.KindOf(err) != failure.KindMcpServerUnreachable || !strings.Contains(err.Error(), "refused the credential") {
		t.Error(err)
	}
	if fault, ok := errors.AsType[*mcpwire.Fault](err); !ok || len(fault.Challenge) != 1 || fault.Status != 401 {
		t.Errorf("the challenge is lost: %+v", fault)
	}
	sentBefore := len(p.seen(""))
	if err := do("echo", "rotated"); !errors.Is(err, messages.ErrStaleKey) || maybeRan(err) {
		t.Errorf("a rotated credential: %v", err)
	}
	if err := do("echo", "gone"); failure.KindOf(err) != failure.KindCredentialNotFound || maybeRan(err) {
		t.Errorf("a missing credential: %v", err)
	}
	if err := do("echo", "odd"); err == nil || maybeRan(err) || strings.Contains(err.Error(), "Evil") {
		t.Errorf("a credential that is no header: %v", err)
	}
	if len(p.seen("")) != sentBefore {
		t.Error("something was sent without its credential")
	}
}

// A redirect is followed on the server's own origin only, and nothing of a
// request reaches any other.
func TestRedirectsStayAtHome(t *testing.T) {
	var strayed atomic.Int32
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		strayed.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(foreign.Close)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(foreign.URL, "http://"))
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, location := range map[string]string{
			"other host": "http://localhost:" + port + "/", "other port": foreign.URL, "https": "https://127.0.0.1:" + port,
		} {
			p := newPeer(t, modern)
			p.does("away", func(w http.ResponseWriter, _ *request) {
				w.Header().Set("Location", location)
				w.WriteHeader(status)
			})
			s := connect(t, p)
			_, err := call(t.Context(), s, "away")
			if failure.KindOf(err) != failure.KindMcpProtocolError || maybeRan(err) {
				t.Errorf("%d to %s: %v", status, name, err)
			}
		}
	}
	if strayed.Load() != 0 {
		t.Errorf("%d requests strayed", strayed.Load())
	}
	p := newPeer(t, modern)
	p.does("moved", func(w http.ResponseWriter, r *request) {
		if r.URL.Path == "/" {
			w.Header().Set("Location", "/new")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		answer(w, r, okResult)
	})
	if text, err := call(t.Context(), connect(t, p), "moved"); err != nil || text != "ok" {
		t.Errorf("a redirect at home: %q, %v", text, err)
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	for _, o := range []mcpwire.Options{
		{URL: "ftp://example.com"}, {URL: "/mcp"}, {URL: "http://"}, {URL: "http://%zz"},
		{URL: "http://example.com", Transport: "stdio"},
	} {
		if _, err := mcpwire.Connect(t.Context(), o, ""); failure.KindOf(err) != failure.KindSpecInvalid {
			t.Errorf("%+v: %v", o.URL, err)
		}
	}
}
