package mcpwire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/psych-systems/psych-go/mcpwire"
	"github.com/psych-systems/psych-go/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// request is one request as a peer saw it.
type request struct {
	*http.Request
	Method string // JSON-RPC; "" when the body is none
	ID     json.RawMessage
	Params params
	Body   string
}

type params struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Cursor    string          `json:"cursor"`
	Meta      json.RawMessage `json:"_meta"`
}

// key names what a request is about: its HTTP method where that is not POST, a
// tool's name for a call, else the JSON-RPC method.
func (r *request) key() string {
	switch {
	case r.Request.Method != http.MethodPost:
		return r.Request.Method
	case r.Method == "tools/call":
		return r.Params.Name
	default:
		return r.Method
	}
}

type behaviour func(w http.ResponseWriter, r *request)

// peer is an MCP server on loopback that does what it is told. Sessions of older
// revisions are named s1, s2 and so on; only the newest one is alive.
type peer struct {
	*httptest.Server
	version string
	release chan struct{} // closed: the tool "slow" answers

	mu       sync.Mutex
	on       map[string]behaviour
	log      []*request
	sessions int
}

func newPeer(t *testing.T, version string) *peer {
	t.Helper()
	p := &peer{version: version, release: make(chan struct{}), on: make(map[string]behaviour)}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Server.Close)
	t.Cleanup(func() { p.Server.CloseClientConnections() })
	return p
}

// does replaces what the peer does about a key.
func (p *peer) does(key string, b behaviour) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on[key] = b
}

// seen are the requests about a key, in order; "" for all.
func (p *peer) seen(key string) []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.log), func(r *request) bool { return key != "" && r.key() != key })
}

func (p *peer) session() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("s%d", p.sessions)
}

func (p *peer) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	body, _ := io.ReadAll(hr.Body)
	r := &request{Request: hr, Body: string(body)}
	var wire struct {
		Method string          `json:"method"`
		ID     json.RawMessage `json:"id"`
		Params params          `json:"params"`
	}
	_ = json.Unmarshal(body, &wire)
	r.Method, r.ID, r.Params = wire.Method, wire.ID, wire.Params
	p.mu.Lock()
	p.log = append(p.log, r)
	b := p.on[r.key()]
	p.mu.Unlock()
	if b == nil {
		b = p.standard
	}
	b(w, r)
}

// standard is a server that does nothing wrong.
func (p *peer) standard(w http.ResponseWriter, r *request) {
	p.mu.Lock()
	old := p.version != modern
	p.mu.Unlock()
	switch key := r.key(); {
	case key == "server/discover" && !old:
		answer(w, r, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"instructions":"Use it well."}`)
	case key == "initialize" && old:
		p.mu.Lock()
		p.sessions++
		p.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", p.session())
		answer(w, r, `{"protocolVersion":"`+p.version+`","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"peer","version":"1"},"instructions":"Use it well."}`)
	case key == "server/discover":
		http.Error(w, "no session", http.StatusBadRequest)
	case old && r.Header.Get("Mcp-Session-Id") != p.session():
		w.WriteHeader(http.StatusNotFound)
	case strings.HasPrefix(key, "notifications/"), r.Method == "" && r.Request.Method == http.MethodPost:
		w.WriteHeader(http.StatusAccepted)
	case key == "ping":
		answer(w, r, `{}`)
	case key == "tools/list":
		answer(w, r, `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	case key == "slow":
		select {
		case <-p.release:
		case <-r.Context().Done():
			return
		}
		answer(w, r, `{"content":[{"type":"text","text":"slow `+id(r)+`"}]}`)
	case r.Method == "tools/call":
		answer(w, r, `{"content":[{"type":"text","text":"ok"}]}`)
	case key == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func id(r *request) string { return string(r.ID) }

// answer is an ordinary reply with a result.
func answer(w http.ResponseWriter, r *request, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id(r), result)
}

const okResult = `{"content":[{"type":"text","text":"ok"}]}`

// raw answers with a status, a content type ("-" for none) and a text in which
// $ID stands for the request's id and $REPLY for a good reply.
func raw(status int, contentType, text string) behaviour {
	return func(w http.ResponseWriter, r *request) {
		w.Header()["Content-Type"] = []string{contentType}
		if contentType == "-" {
			w.Header()["Content-Type"] = nil
		}
		w.WriteHeader(status)
		reply := `{"jsonrpc":"2.0","id":` + id(r) + `,"result":` + okResult + `}`
		_, _ = io.WriteString(w, strings.NewReplacer("$REPLY", reply, "$ID", id(r)).Replace(text))
		_ = http.NewResponseController(w).Flush()
	}
}

func events(text string) behaviour { return raw(http.StatusOK, "text/event-stream", text) }

// hangs does nothing until the client gives up.
func hangs(_ http.ResponseWriter, r *request) { <-r.Context().Done() }

// newClient is a client whose connections end with the test.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func options(t *testing.T, url string) mcpwire.Options {
	return mcpwire.Options{URL: url, Client: newClient(t), Server: "peer", CourtesyTimeout: time.Second}
}

func connect(t *testing.T, p *peer, change ...func(*mcpwire.Options)) *mcpwire.Session {
	t.Helper()
	o := options(t, p.URL)
	for _, c := range change {
		c(&o)
	}
	s, err := mcpwire.Connect(t.Context(), o, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if s.ProtocolVersion() != p.version {
		t.Fatalf("negotiated %s with a peer of %s", s.ProtocolVersion(), p.version)
	}
	return s
}

func call(ctx context.Context, s *mcpwire.Session, tool string) (string, error) {
	result, err := s.CallTool(ctx, &messages.CallTool{Tool: tool})
	return result.GetText(), err
}

// neighbours starts calls that are in flight until the returned function is
// called, which fails the test when one of them did not get its own answer.
func neighbours(t *testing.T, p *peer, s *mcpwire.Session) (settle func()) {
	t.Helper()
	const many = 8
	before := len(p.seen("slow"))
	type outcome struct {
		text string
		err  error
	}
	outcomes := make(chan outcome, many)
	for range many {
		go func() {
			text, err := call(t.Context(), s, "slow")
			outcomes <- outcome{text, err}
		}()
	}
	eventually(t, "the neighbours are in flight", func() bool { return len(p.seen("slow")) == before+many })
	return func() {
		t.Helper()
		close(p.release)
		texts := make(map[string]bool)
		for range many {
			o := <-outcomes
			if o.err != nil {
				t.Errorf("a neighbour's call failed: %v", o.err)
			}
			texts[o.text] = true
		}
		if len(texts) != many {
			t.Errorf("%d neighbours got %d different answers", many, len(texts))
		}
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// soon waits for a channel to be closed.
func soon(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("not in time: %s", what)
	}
}

// maybeRan is what a failed call says about whether it may have run.
func maybeRan(err error) bool {
	var fault interface{ Sent() bool }
	return errors.As(err, &fault) && fault.Sent()
}
