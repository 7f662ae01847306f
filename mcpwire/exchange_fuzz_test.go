package mcpwire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/secret"
)

const plantedToken = "planted-token-hunter2"

// canned answers every request with the same bytes, in pieces.
type canned struct {
	status      int
	contentType string
	body        []byte
	piece       int
	read        int // bytes of the answer that was read furthest
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	header := http.Header{"Content-Type": {c.contentType}, "Www-Authenticate": {c.contentType}, "Mcp-Session-Id": {c.contentType}}
	return &http.Response{
		StatusCode: c.status, Header: header, Request: r, ContentLength: -1,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: &pieces{of: c, rest: c.body},
	}, nil
}

type pieces struct {
	of   *canned
	rest []byte
	read int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.of.piece)], p.rest)
	p.rest = p.rest[n:]
	p.read += n
	p.of.read = max(p.of.read, p.read)
	return n, nil
}

func (*pieces) Close() error { return nil }

// ask makes one exchange against an answer, in a time of its own.
func ask(t *testing.T, c *canned, era uint8) (reply Reply, fault *Fault) {
	synctest.Test(t, func(t *testing.T) {
		o, target, err := Options{
			URL: "http://peer.example/mcp", Client: &http.Client{Transport: c}, MaxResponseBytes: func() int64 { return fuzzCeiling },
			Authorize: func(context.Context, string) (Token, error) { return Token{Value: secret.NewText(plantedToken)}, nil },
		}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		s := newStreamable(o, target)
		switch era % 3 {
		case 1:
			s.settle(version20260728, []byte(`{}`))
		case 2:
			s.initialize = []byte(`{}`)
			s.agreed.Store(&agreement{version: version20251125, session: "s1"})
		}
		reply, fault = s.Exchange(t.Context(), &Message{Method: methodCallTool, Params: []byte(`{}`), Name: "größe"})
		s.Close()
	})
	return reply, fault
}

const fuzzCeiling = 2048

// Whatever a server answers, and however it is cut, a request has one reply or
// one fault of its own type, the same each time; no more is read than is allowed,
// and no sentence shows the credential.
func FuzzExchange(f *testing.F) {
	const reply = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	add := func(status uint16, media, body string) {
		for era := range uint8(3) {
			f.Add(status, media, []byte(body), uint8(3), era)
		}
	}
	for _, body := range []string{
		reply, "\uFEFF" + reply, "[" + reply + "]", "", "null", `{"error":"` + plantedToken + `"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"` + plantedToken + `"}}`,
		`{"id":1,"error":{"code":-32022,"message":"x","data":{"supported":["` + plantedToken + `"]}}}`, `{"id":"1","result":null}`, `{"id":1.0,"result":{}}`,
		strings.Repeat("[", 1500), `{"id":1,"method":"ping"}`, reply[:30],
	} {
		add(200, "application/json; charset=utf-8", body)
		add(400, "text/plain", body)
	}
	for _, stream := range []string{
		": hi\n\ndata: " + reply + "\n\n", "ping\ndata\ndata: ping\n\ndata: {}\n\ndata: " + reply + "\r\n\r\n", "\uFEFFid: 1\rdata\r\rdata: " + reply + "\r\r",
		"event: x\nid: 7\nretry: 0\ndata:\n\n", "id: 1\nretry: 549755813887\ndata\n\n", "data: {\"id\":1,\ndata: \"result\":{}}\n\n", "data: " + strings.Repeat("x", 3000), "data: " + reply,
	} {
		add(200, "text/event-stream", stream)
	}
	add(202, "", "")
	add(401, `Bearer error="insufficient_scope"`, "")
	add(403, `Bearer error=insufficient_scope, scope="`+plantedToken+`"`, "{}")
	add(307, "text/html", "<p>")
	add(200, "text/"+plantedToken, "<p>")
	f.Fuzz(func(t *testing.T, status uint16, contentType string, body []byte, piece, era uint8) {
		status = 200 + status%400
		if len(body) > 16<<10 {
			return
		}
		cut := &canned{status: int(status), contentType: contentType, body: body, piece: int(piece) + 1}
		reply, fault := ask(t, cut, era)
		whole := &canned{status: int(status), contentType: contentType, body: body, piece: 1 << 20}
		same, sameFault := ask(t, whole, era)
		if !bytes.Equal(reply.Result, same.Result) || (fault == nil) != (sameFault == nil) ||
			fault != nil && (fault.Class != sameFault.Class || fault.Error() != sameFault.Error() || fault.Sent() != sameFault.Sent()) {
			t.Fatalf("in pieces %q, %v; whole %q, %v", reply.Result, fault, same.Result, sameFault)
		}
		if limit := max(fuzzCeiling, longestErrorBody); cut.read > limit+chunk || whole.read > limit+chunk {
			t.Fatalf("%d bytes were read", max(cut.read, whole.read))
		}
		if fault == nil {
			if len(reply.Result) == 0 || !bytes.Contains(body, bytes.TrimSpace(reply.Result)) && !bytes.Contains(body, []byte("data")) {
				t.Fatalf("a reply %q that was not sent", reply.Result)
			}
			return
		}
		wantSentence(t, fault)
		if reply.Result != nil {
			t.Fatalf("%v, and a result", fault)
		}
	})
}

// wantSentence is what every fault says: one bounded line, its type beneath, and
// nothing of the credential.
func wantSentence(t *testing.T, fault *Fault) {
	t.Helper()
	said := fault.Error()
	if fault.Class == "" || fault.kind() == failure.KindInternal || len(said) > 4*longestServerText+200 || strings.ContainsAny(said, "\r\n") {
		t.Fatalf("%q, %s: %q", fault.Class, fault.kind(), said)
	}
	if strings.Contains(said, plantedToken) {
		t.Fatalf("the credential is shown: %s", said)
	}
}

// The address that a stream names is on the stream's own origin, or none.
func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{
		"/messages?session=1", "http://peer.example:80/m", "//other.example/m", "http://peer.example@other.example/", "http:foo", "HTTP://PEER.example/m#f",
		"https://peer.example/", "http://peer.example:8080/", "javascript:x", "http://u:p@peer.example/", "?x", "", "http://peer.example.:80/", "%zz", "http://peer.example:/m",
	} {
		f.Add("event: endpoint\ndata: " + seed + "\n\n")
	}
	f.Add("data: x\n\n")
	target, err := url.Parse("http://peer.example/sse?tenant=a")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		c := &canned{status: 200, contentType: "text/event-stream", body: []byte(stream), piece: 7}
		synctest.Test(t, func(t *testing.T) {
			o, _, err := Options{URL: target.String(), Client: &http.Client{Transport: c}, MaxResponseBytes: func() int64 { return 256 }}.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			h, fault := openHTTPSSE(t.Context(), o, target, "")
			if fault != nil {
				wantSentence(t, fault)
				return
			}
			defer h.Close()
			if at := h.endpoint; at.Scheme != "http" || !strings.EqualFold(at.Hostname(), "peer.example") || at.Port() != "" && at.Port() != "80" || at.User != nil || at.Opaque != "" {
				t.Fatalf("messages would go to %s", at)
			}
			if len(h.endpoint.String()) > 1024 {
				t.Fatalf("an address of %d bytes", len(h.endpoint.String()))
			}
		})
	})
}

// Whatever a stream says of resuming, the pause before it is a pause: it never
// shrinks while nothing comes and has an end.
func FuzzResumption(f *testing.F) {
	for _, wait := range []int64{0, 1, 50, 30_000, 549755813887, 1 << 39} {
		f.Add(wait)
	}
	f.Fuzz(func(t *testing.T, ms int64) {
		ms &= 1<<40 - 1
		r := resumption{wait: time.Duration(ms) * time.Millisecond, given: true}
		for before := time.Duration(0); r.fruitless <= fruitlessResumptions; r.fruitless++ {
			pause := r.pause()
			if pause < before || pause > longestResumeWait || ms > 0 && pause == 0 {
				t.Fatalf("%d ms: attempt %d waits %s after %s", ms, r.fruitless, pause, before)
			}
			before = pause
		}
	})
}

// Pages of any form become a listing or a fault, and a listing is told by its
// bytes alone.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		`{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"x","ttlMs":5,"cacheScope":"private"}`, `{"tools":null,"nextCursor":""}`, `{"tools":{}}`,
		`{"nextCursor":5}`, `{"ttlMs":-1,"cacheScope":[]}`, `{"tools":[],"ttlMs":1e3}`, `{}`,
	} {
		f.Add([]byte(seed), []byte(`{"tools":[],"ttlMs":7,"cacheScope":"public"}`))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		o := &Options{}
		one, other := newListing(), newListing()
		for _, page := range [][]byte{first, second} {
			next, fault := one.add(o, page)
			again, faultAgain := other.add(o, bytes.Clone(page))
			if !bytes.Equal(next, again) || (fault == nil) != (faultAgain == nil) {
				t.Fatalf("%q (%v), then %q (%v)", next, fault, again, faultAgain)
			}
			if fault != nil {
				wantSentence(t, fault)
				return
			}
			if next != nil && !json.Valid(next) {
				t.Fatalf("the cursor %q would be sent", next)
			}
		}
		if one.etag() != other.etag() || one.ttl != nil && *one.ttl < 0 || one.size != int64(len(first)+len(second)) {
			t.Fatalf("%+v", one)
		}
		switch one.cacheScope {
		case "", "public", "private":
		default:
			t.Fatalf("the scope %q", one.cacheScope)
		}
	})
}
