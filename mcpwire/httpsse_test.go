package mcpwire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
)

// ssePeer is a server of 2024-11-05. What it says on the stream is what is put
// into say; nil ends the stream.
type ssePeer struct {
	*httptest.Server
	endpoint string
	preface  string // ahead of the endpoint
	say      chan *string
	on       map[string]func(id string) string // by tool: what to say; "" is nothing
	post     func(w http.ResponseWriter, method string) bool

	mu   sync.Mutex
	seen []string // POSTed methods and tools
}

func newSSEPeer(t *testing.T) *ssePeer {
	p := &ssePeer{endpoint: "/messages?session=1", say: make(chan *string, 100), on: make(map[string]func(string) string)}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Server.Close)
	t.Cleanup(p.Server.CloseClientConnections)
	return p
}

func (p *ssePeer) tell(text string) { p.say <- &text }

func (p *ssePeer) result(id, result string) {
	p.tell(`event: message` + "\n" + `data: {"jsonrpc":"2.0","id":` + id + `,"result":` + result + "}\n\n")
}

func (p *ssePeer) heard(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, s := range p.seen {
		if s == what {
			n++
		}
	}
	return n
}

func (p *ssePeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "%sevent: endpoint\ndata: %s\n\n", p.preface, p.endpoint)
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case text := <-p.say:
				if text == nil {
					return
				}
				_, _ = io.WriteString(w, *text)
			case <-r.Context().Done():
				return
			}
		}
	}
	var m struct {
		Method string
		ID     json.RawMessage
		Params params
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &m)
	what := m.Method + m.Params.Name
	if m.Method == "" {
		what = string(body)
	}
	p.mu.Lock()
	p.seen = append(p.seen, what)
	on := p.on[m.Params.Name]
	p.mu.Unlock()
	if p.post != nil && p.post(w, what) {
		return
	}
	w.WriteHeader(http.StatusAccepted)
	switch {
	case m.Method == "initialize":
		p.result(string(m.ID), `{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"old","version":"1"}}`)
	case m.Method == "tools/list":
		p.result(string(m.ID), `{"tools":[{"name":"echo",`+object+`}]}`)
	case on != nil:
		if text := on(string(m.ID)); text != "" {
			p.tell(text)
		}
	case m.Method == "tools/call":
		p.result(string(m.ID), okResult)
	}
}

func connectSSE(t *testing.T, p *ssePeer, change ...func(*mcpwire.Options)) *mcpwire.Session {
	t.Helper()
	o := options(t, p.URL+"/sse?key=hush")
	o.Transport = messages.TransportSSE
	for _, c := range change {
		c(&o)
	}
	s, err := mcpwire.Connect(t.Context(), o, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestTheOlderTransport(t *testing.T) {
	p := newSSEPeer(t)
	s := connectSSE(t, p)
	if s.ProtocolVersion() != "2024-11-05" || p.heard("server/discover") != 0 || p.heard("notifications/initialized") != 1 {
		t.Errorf("%s: %q", s.ProtocolVersion(), p.seen)
	}
	if l := list(t, s, ""); names(l) != "echo" {
		t.Error(l)
	}
	if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" {
		t.Errorf("%q, %v", text, err)
	}
	select {
	case <-s.Closed():
		t.Error("closed")
	default:
	}
}

// What goes wrong with one reply on the stream is its own call's affair.
func TestAFaultOnTheStreamCostsItsOwnCall(t *testing.T) {
	reply := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + okResult + `}` }
	cases := []struct {
		fault
		on func(id string) string
	}{
		{fault{name: "odd events first", text: "ok"}, func(id string) string {
			return "data: ping\n\ndata: {}\n\n: hi\n\nevent: endpoint\ndata: http://elsewhere.invalid/\n\ndata: [" + reply(id) + "]\r\n\r\n"
		}},
		{fault{name: "another event name", text: "ok"}, func(id string) string { return "event: other\ndata: " + reply(id) + "\n\n" }},
		{fault{name: "an error without id is nobody's", text: "ok"}, func(id string) string {
			return `data: {"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"x"}}` + "\n\ndata: " + reply(id) + "\n\n"
		}},
		{fault{name: "twice", text: "ok"}, func(id string) string { return strings.Repeat("data: "+reply(id)+"\n\n", 2) }},
		{fault{name: "an error", kind: failure.KindMcpProtocolError}, func(id string) string {
			return `data: {"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"x"}}` + "\n\n"
		}},
		{fault{name: "too large", kind: failure.KindMcpResponseTooLarge, ran: true}, func(id string) string {
			return `data: {"jsonrpc":"2.0","id":` + id + `,"result":{"content":"` + strings.Repeat("x", ceiling+10) + `"}}` + "\n\n"
		}},
		{fault{name: "too large, its id last", kind: failure.KindMcpResponseTooLarge, ran: true}, func(id string) string {
			return `data: {"result":{"content":"` + strings.Repeat("x", ceiling+10) + `"},"jsonrpc":"2.0","id":` + id + "}\n\n"
		}},
		{fault{name: "too large, when nobody waits any more", text: "ok"}, func(id string) string {
			return `data: {"jsonrpc":"2.0","id":999,"result":{"content":"` + strings.Repeat("x", ceiling+10) + `"}}` + "\n\ndata: " + reply(id) + "\n\n"
		}},
		{fault{name: "too large a request of the server's own", text: "ok"}, func(id string) string {
			return `data: {"jsonrpc":"2.0","id":` + id + `,"method":"ping","params":{"x":"` + strings.Repeat("x", ceiling+10) + `"}}` + "\n\ndata: " + reply(id) + "\n\n"
		}},
		{fault{name: "too large, of no known id", text: "ok"}, func(id string) string {
			return `data: {"result":"` + strings.Repeat("x", ceiling+10) + "\n\ndata: " + reply(id) + "\n\n"
		}},
		{fault{name: "too large a notification", text: "ok"}, func(id string) string {
			return `data: {"method":"notifications/message","params":{"data":"` + strings.Repeat("x", ceiling+10) + `"},"jsonrpc":"2.0"}` + "\n\ndata: " + reply(id) + "\n\n"
		}},
		{fault{name: "no answer", kind: failure.KindDeadlineExceeded, ran: true, deadline: true}, func(string) string { return "" }},
		{fault{name: "400", kind: failure.KindMcpProtocolError}, nil},
		{fault{name: "500", kind: failure.KindMcpServerUnreachable, ran: true}, nil},
		{fault{name: "a reset", kind: failure.KindMcpServerUnreachable, ran: true}, nil},
		{fault{name: "a POST that is answered late", text: "ok"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newSSEPeer(t)
			release := make(chan struct{})
			p.on["bad"] = c.on
			p.on["slow"] = func(id string) string {
				go func() { <-release; p.result(id, `{"content":[{"type":"text","text":"`+id+`"}]}`) }()
				return ""
			}
			p.post = func(w http.ResponseWriter, what string) bool {
				if what != "tools/callbad" || c.on != nil {
					return false
				}
				switch c.name {
				case "400":
					w.WriteHeader(http.StatusBadRequest)
				case "500":
					w.WriteHeader(http.StatusInternalServerError)
				case "a reset":
					cut(w, "")
				default:
					time.Sleep(400 * time.Millisecond)
				}
				return c.name != "a POST that is answered late"
			}
			s := connectSSE(t, p, func(o *mcpwire.Options) { o.MaxResponseBytes = func() int64 { return ceiling } })
			results := make(chan error, 8)
			for range cap(results) {
				go func() { _, err := call(t.Context(), s, "slow"); results <- err }()
			}
			eventually(t, "the neighbours are in flight", func() bool { return p.heard("tools/callslow") == cap(results) })
			patience := 10 * time.Second
			if c.deadline {
				patience = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			text, err := call(ctx, s, "bad")
			judge(t, c.fault, text, err)
			close(release)
			for range cap(results) {
				if err := <-results; err != nil {
					t.Errorf("a neighbour's call failed: %v", err)
				}
			}
			if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" {
				t.Errorf("the next call: %q, %v", text, err)
			}
			if c.deadline {
				eventually(t, "the server is told", func() bool { return p.heard("notifications/cancelled") == 1 })
			}
			if n := p.heard("tools/callbad"); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

// A ceiling that changes holds for the stream that stands, from the next answer on.
func TestTheCeilingOfAStandingStreamChanges(t *testing.T) {
	p := newSSEPeer(t)
	p.on["big"] = func(id string) string {
		return `data: {"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 2*ceiling) + `"}]}}` + "\n\n"
	}
	var limit atomic.Int64
	s := connectSSE(t, p, func(o *mcpwire.Options) { o.MaxResponseBytes = limit.Load })
	for _, c := range []struct {
		limit int64
		kind  failure.Kind
	}{{ceiling, failure.KindMcpResponseTooLarge}, {8 * ceiling, ""}, {ceiling, failure.KindMcpResponseTooLarge}} {
		limit.Store(c.limit)
		if _, err := call(t.Context(), s, "big"); err == nil && c.kind != "" || err != nil && failure.KindOf(err) != c.kind {
			t.Errorf("under a ceiling of %d: %v", c.limit, err)
		}
	}
}

// When the stream is gone, the session is: what was under way is settled, and
// what comes later is refused unsent.
func TestTheEndOfTheStreamSettlesEverything(t *testing.T) {
	p := newSSEPeer(t)
	p.on["slow"] = func(string) string { return "" }
	s := connectSSE(t, p)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() { _, err := call(t.Context(), s, "slow"); errs <- err }()
	}
	watched := make(chan bool)
	var opened atomic.Bool
	go func() {
		again, err := s.Watch(t.Context(), "", func() { opened.Store(true) }, func() {})
		watched <- again && err != nil
	}()
	eventually(t, "all is under way", func() bool { return p.heard("tools/callslow") == cap(errs) && opened.Load() })
	p.say <- nil
	for range cap(errs) {
		if err := <-errs; failure.KindOf(err) != failure.KindMcpServerUnreachable || !maybeRan(err) {
			t.Error(err)
		}
	}
	<-s.Closed()
	if !<-watched {
		t.Error("the watcher was not told")
	}
	if _, err := call(t.Context(), s, "echo"); failure.KindOf(err) != failure.KindMcpServerUnreachable || maybeRan(err) {
		t.Error(err)
	}
	if p.heard("tools/callecho") != 0 {
		t.Error("something was sent")
	}
}

func TestTheOneStreamTellsOfChangesAndAsks(t *testing.T) {
	p := newSSEPeer(t)
	s := connectSSE(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	changed, done := make(chan struct{}), make(chan struct{})
	opened := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Watch(ctx, "", func() { close(opened) }, func() { close(changed) })
	}()
	<-opened
	p.tell("data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"ping\"}\n\n" + changedOnce)
	<-changed
	eventually(t, "the question is answered", func() bool { return p.heard(`{"jsonrpc":"2.0","id":"q","result":{}}`) == 1 })
	cancel()
	<-done
}

// What keeps a stream alive may come ahead of the endpoint.
func TestAStreamMayBeginWithPings(t *testing.T) {
	p := newSSEPeer(t)
	p.preface = ": hi\n\nretry: 100\n\nevent: ping\ndata: 1\n\nid: 0\ndata\n\n"
	if text, err := call(t.Context(), connectSSE(t, p), "echo"); err != nil || text != "ok" {
		t.Errorf("%q, %v", text, err)
	}
}

// An answer is handed over when it comes: nothing is waited for once the POST it
// belongs to has ended, which it mostly does before.
func TestAnAnswerOnTheStreamIsNotHeldBack(t *testing.T) {
	p := newSSEPeer(t)
	release := make(chan string)
	p.on["late"] = func(id string) string { go func() { p.result(<-release, okResult) }(); release <- id; return "" }
	s := connectSSE(t, p)
	begun := time.Now()
	const calls = 40
	for range calls {
		time.Sleep(time.Millisecond)
		if _, err := call(t.Context(), s, "late"); err != nil {
			t.Fatal(err)
		}
	}
	if waited := time.Since(begun); waited > calls*100*time.Millisecond {
		t.Errorf("%d calls took %s", calls, waited)
	}
}

// The endpoint is on the stream's own origin, or there is no connection: no
// request, and no credential, goes anywhere else.
func TestTheEndpointStaysAtHome(t *testing.T) {
	var strayed atomic.Int32
	foreign := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(foreign.Close)
	for name, endpoint := range map[string]string{
		"another port": foreign.URL + "/messages", "another host": "http://elsewhere.invalid/", "https": "https://127.0.0.1/",
		"without a scheme": "//elsewhere.invalid/m", "a user": "", "no address": "http://%zz", "a script": "javascript:alert(1)",
		"nothing": " ", "a file": "file:///etc/passwd", "data": "data:,x",
	} {
		t.Run(name, func(t *testing.T) {
			p := newSSEPeer(t)
			p.endpoint = endpoint
			if endpoint == "" {
				p.endpoint = strings.Replace(p.URL, "http://", "http://user@", 1)
			}
			o := options(t, p.URL)
			o.Transport = messages.TransportSSE
			_, err := mcpwire.Connect(t.Context(), o, "")
			if failure.KindOf(err) != failure.KindMcpProtocolError {
				t.Error(err)
			}
			if len(p.seen) != 0 {
				t.Error("something was sent")
			}
		})
	}
	p := newSSEPeer(t)
	p.endpoint = p.URL + "/absolute"
	connectSSE(t, p)
	if strayed.Load() != 0 {
		t.Error("a request strayed")
	}
}

func TestWhyThereIsNoStream(t *testing.T) {
	for name, c := range map[string]struct {
		serve behaviour
		kind  failure.Kind
		words string
	}{
		"401":           {challenge, failure.KindMcpServerUnreachable, "wants OAuth"},
		"404":           {raw(404, "-", ""), failure.KindMcpServerUnreachable, "404"},
		"a page":        {raw(200, "text/html", "<html>"), failure.KindMcpProtocolError, "text/html"},
		"only pings":    {events("event: ping\ndata: 1\n\nid: 1\nretry: 3\ndata\n\n"), failure.KindMcpServerUnreachable, "closed"},
		"no endpoint":   {events("data: {}\n\n"), failure.KindMcpProtocolError, "endpoint"},
		"an early end":  {events(""), failure.KindMcpServerUnreachable, "closed"},
		"silence":       {func(w http.ResponseWriter, r *request) { events(": hi\n\n")(w, r); hangs(w, r) }, failure.KindMcpServerUnreachable, "the connection timed out"},
		"no header":     {hangs, failure.KindMcpServerUnreachable, "the connection timed out"},
		"endless event": {func(w http.ResponseWriter, r *request) { events("data: ")(w, r); endless(w, r) }, failure.KindMcpResponseTooLarge, "bytes allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, legacy)
			p.does(http.MethodGet, c.serve)
			o := options(t, p.URL)
			o.Transport, o.ConnectTimeout = messages.TransportSSE, 300*time.Millisecond
			o.MaxResponseBytes = func() int64 { return ceiling }
			_, err := mcpwire.Connect(t.Context(), o, "")
			if failure.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.words) {
				t.Fatalf("%s: %v", failure.KindOf(err), err)
			}
			speaksWell(t, err)
		})
	}
}

// A reply to a call that was given up is nobody's, whatever it looks like.
func TestALateReplyOnTheStreamIsNobodys(t *testing.T) {
	huge := strings.Repeat("x", ceiling+10)
	for name, late := range map[string]func(id string) string{
		"whole": func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + okResult + `}` },
		"an error": func(id string) string {
			return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"x"}}`
		},
		"too large": func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":"` + huge + `"}}` },
		"too large, a text id": func(id string) string {
			return `{"jsonrpc":"2.0","id":"` + id + `","result":{"content":"` + huge + `"}}`
		},
		"too large, a fraction": func(id string) string {
			return `{"jsonrpc":"2.0","id":` + id + `.0,"result":{"content":"` + huge + `"}}`
		},
		"a too large error": func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"error":{"message":"` + huge + `"}}` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newSSEPeer(t)
			ids := make(chan string, 1)
			p.on["bad"] = func(id string) string { ids <- id; return "" }
			s := connectSSE(t, p, func(o *mcpwire.Options) { o.MaxResponseBytes = func() int64 { return ceiling } })
			ctx, cancel := context.WithCancel(t.Context())
			givenUp := make(chan error, 1)
			go func() { _, err := call(ctx, s, "bad"); givenUp <- err }()
			id := <-ids
			cancel()
			if err := <-givenUp; failure.KindOf(err) != failure.KindCancelled {
				t.Error(err)
			}
			p.tell("data: " + late(id) + "\n\n")
			if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" {
				t.Errorf("the next call: %q, %v", text, err)
			}
			select {
			case <-s.Closed():
				t.Error("the session is closed")
			default:
			}
		})
	}
}
