package mcpwire

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// clientInfo is how this client calls itself.
var clientInfo = &mcp.Implementation{Name: "psych-go", Version: "0.1.0"}

// requestMeta is the metadata of each request in a modern revision (2026-07-28,
// "Per-request protocol fields"): the revision, who asks, and that no optional
// capability is there.
func requestMeta(version string) []byte {
	meta, err := json.Marshal(map[string]any{
		mcp.MetaKeyProtocolVersion:    version,
		mcp.MetaKeyClientInfo:         clientInfo,
		mcp.MetaKeyClientCapabilities: struct{}{},
	})
	if err != nil {
		panic(err) // of constants only
	}
	return meta
}

// Session is a negotiated connection with one server. Its methods are safe for
// concurrent use.
type Session struct {
	options   *Options
	exchanger Exchanger
	version   string
	modern    bool
	// meta is requestMeta in a modern revision, else nil.
	meta         []byte
	instructions string
	tools        bool // the server says that it has tools
	listChanged  bool // and that it tells when they change
	params       paramTable
	watched      atomic.Bool // a stream of changes was opened before
	listing      sync.Mutex  // one refresh of params at a time
}

// Connect negotiates with a server, within ctx and ConnectTimeout, and returns
// the session. The credential is the NAME of the one to send along, "" for none.
// It fails with failure.McpServerUnreachable, with
// failure.McpUnsupportedProtocolVersionError where no revision is shared, with
// failure.McpProtocolError where an answer makes no sense, or with what
// Options.Authorize or the egress policy says.
func Connect(ctx context.Context, options Options, credential string) (*Session, error) {
	o, target, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.ConnectTimeout)
	defer cancel()
	if o.Transport == messages.TransportSSE {
		return connectSSE(ctx, o, target, credential)
	}
	first := o.KnownVersion
	if !speaks(first) || first >= version20260728 {
		return connectStreamable(ctx, o, target, credential, "")
	}
	session, err := connectStreamable(ctx, o, target, credential, version20251125)
	if fault, ok := errors.AsType[*Fault](err); ok && fault.Class != ClassUnsent && ctx.Err() == nil {
		return connectStreamable(ctx, o, target, credential, "")
	}
	return session, err
}

func connectStreamable(ctx context.Context, o Options, target *url.URL, credential, version string) (*Session, error) {
	session, err := negotiate(ctx, newStreamable(o, target), &o, credential, version, false)
	if errors.Is(err, errHasty) {
		return negotiate(ctx, newStreamable(o, target), &o, credential, version, true)
	}
	return session, err
}

// errHasty says that the probe is worth being asked again, with more time.
var errHasty = errors.New("the probe was given up too early")

func connectSSE(ctx context.Context, o Options, target *url.URL, credential string) (*Session, error) {
	exchanger, fault := openHTTPSSE(ctx, o, target, credential)
	if fault != nil {
		return nil, connecting(&o, fault)
	}
	return negotiate(ctx, exchanger, &o, credential, version20251125, false)
}

// negotiate lets go-sdk's client find the revision, and lets go of the client:
// no goroutine and no cache of it outlives the negotiation.
func negotiate(ctx context.Context, exchanger handshaker, o *Options, credential, version string, patient bool) (*Session, error) {
	t := newTransport(ctx, exchanger, o, credential)
	t.patient = patient
	client := mcp.NewClient(clientInfo, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	negotiated, err := client.Connect(context.WithoutCancel(ctx), t, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil || t.refuse != nil {
		_ = t.Close()
		if negotiated != nil {
			_ = negotiated.Close()
		}
		exchanger.Close()
		if t.hasty() && !patient && ctx.Err() == nil {
			return nil, errHasty
		}
		fault := t.verdict()
		if fault == nil {
			fault = o.malformed("answered initialize with what is no result of it", err)
		}
		return nil, connecting(o, fault)
	}
	result := negotiated.InitializeResult()
	_ = negotiated.Close()
	s := &Session{
		options: o, exchanger: exchanger,
		version: result.ProtocolVersion, modern: result.ProtocolVersion >= version20260728,
		instructions: result.Instructions,
	}
	if s.modern {
		s.meta = requestMeta(s.version)
		exchanger.settle(s.version, t.discovery)
	}
	if caps := result.Capabilities; caps != nil && caps.Tools != nil {
		s.tools, s.listChanged = true, caps.Tools.ListChanged
	}
	return s, nil
}

// connecting is a fault of a connection that was not made: where time ran out, the
// server could not be reached.
func connecting(o *Options, fault *Fault) error {
	if fault.kind() == failure.KindDeadlineExceeded {
		fault = o.timeout(fault.sent, "the connection timed out", fault)
	}
	return fault
}

// ProtocolVersion is the revision that was negotiated.
func (s *Session) ProtocolVersion() string { return s.version }

// Instructions are the server's own words on how to use it, whole; "" for none.
func (s *Session) Instructions() string { return s.instructions }

// Closed is closed when the session cannot go on and another has to be connected:
// when an HTTP+SSE stream is gone, and when a server is seen to speak another era
// of the protocol than it did. No fault of a request closes a session.
func (s *Session) Closed() <-chan struct{} { return s.exchanger.Closed() }

// Close ends everything in flight and waits for it, for about
// Options.CourtesyTimeout at most: an older server is told that its session is
// over. It may be called more than once.
func (s *Session) Close() { s.exchanger.Close() }

// isObject says that a JSON text is one valid object.
func isObject(text []byte) bool { return firstByte(text) == '{' && json.Valid(text) }

// versionOf is the revision that a request's metadata states.
func versionOf(params []byte) string {
	var wire struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &wire) != nil {
		return ""
	}
	version, _ := textOf(wire.Meta[mcp.MetaKeyProtocolVersion])
	return version
}
