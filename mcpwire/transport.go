package mcpwire

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// handshaker is an [Exchanger] that can take note of what was negotiated.
type handshaker interface {
	Exchanger
	// shake sends the request that opens a session and takes note of its result.
	shake(ctx context.Context, m *Message) (Reply, *Fault)
	// settle takes note that the server speaks a modern revision, and of the params
	// with which it was asked.
	settle(version string, discover []byte)
}

// transport is what go-sdk negotiates through. It gives its client every answer
// as a JSON-RPC one, whatever the server did: so a server that answers the probe
// in its own odd way is asked in the older era next, instead of being given up.
type transport struct {
	exchanger  handshaker
	options    *Options
	credential string
	// ctx bounds the negotiation. The client's own contexts have no end, so that
	// it never starts work of its own about a request that was called off.
	ctx      context.Context
	incoming chan jsonrpc.Message
	done     chan struct{}
	close    sync.Once

	// patient gives the probe all the time there is.
	patient   bool
	discovery []byte // the params of the probe
	probe     *Fault // what the question for 2026-07-28 met
	refuse    *Fault // what opening a session met
}

func newTransport(ctx context.Context, exchanger handshaker, options *Options, credential string) *transport {
	return &transport{
		exchanger: exchanger, options: options, credential: credential, ctx: ctx,
		incoming: make(chan jsonrpc.Message, 1), done: make(chan struct{}),
	}
}

// Connect is called once by go-sdk's client.
func (t *transport) Connect(context.Context) (mcp.Connection, error) { return t, nil }

// SessionID is not told: sessions are the exchanger's affair.
func (t *transport) SessionID() string { return "" }

// Read hands over the answers that Write brought.
func (t *transport) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-t.incoming:
		return m, nil
	case <-t.done:
		return nil, io.EOF
	}
}

// Close ends Read. The exchanger lives on.
func (t *transport) Close() error {
	t.close.Do(func() { close(t.done) })
	return nil
}

// Write runs one exchange on the caller's goroutine.
func (t *transport) Write(_ context.Context, message jsonrpc.Message) error {
	request, ok := message.(*jsonrpc.Request)
	if !ok {
		return nil // an answer to a request that the exchanger has answered
	}
	m := &Message{Method: request.Method, Params: request.Params, Credential: t.credential}
	if !request.IsCall() {
		if fault := t.exchanger.Notify(t.ctx, m); fault != nil && fault.Class != ClassStatus {
			t.refuse = fault
		}
		return nil
	}
	var reply Reply
	var fault *Fault
	switch request.Method {
	case methodDiscover:
		reply, fault = t.discover(m)
	case methodInitialize:
		reply, fault = t.initialize(m)
	default:
		fault = t.options.malformed("is asked for nothing but its revision here", errors.ErrUnsupported)
	}
	response := &jsonrpc.Response{ID: request.ID, Result: reply.Result}
	if fault != nil {
		response.Result, response.Error = nil, wireError(fault)
	}
	select {
	case t.incoming <- response:
	case <-t.done:
	}
	return nil
}

// discover asks whether the server speaks a modern revision, for no more than a
// small part of the time there is unless it is patient.
func (t *transport) discover(m *Message) (Reply, *Fault) {
	ctx, cancel := t.ctx, context.CancelFunc(func() {})
	if !t.patient {
		limit := t.options.ProbeTimeout
		if deadline, ok := t.ctx.Deadline(); ok {
			limit = min(limit, time.Until(deadline)/4)
		}
		ctx, cancel = context.WithTimeout(t.ctx, limit)
	}
	defer cancel()
	m.Version, t.discovery = versionOf(m.Params), m.Params
	reply, fault := t.exchanger.Exchange(ctx, m)
	if fault == nil && !isObject(reply.Result) {
		fault = t.options.malformed("answered server/discover with what is no result of it", nil)
	}
	t.probe = fault
	return reply, fault
}

// initialize opens a session in the older era, unless the probe has shown that
// there is nobody to open it with.
func (t *transport) initialize(m *Message) (Reply, *Fault) {
	if t.probe != nil && t.probe.Class == ClassUnsent {
		t.refuse = t.probe
		return Reply{}, t.probe
	}
	reply, fault := t.exchanger.shake(t.ctx, m)
	if fault == nil && !isObject(reply.Result) {
		fault = t.options.malformed("answered initialize with what is no result of it", nil)
	}
	t.refuse = fault
	return reply, fault
}

// hasty reports whether the probe was given up on a server which then refused to
// open a session: one of 2026-07-28 that was slow, or whose answer was lost or
// another's on the way.
func (t *transport) hasty() bool {
	if t.probe == nil || t.refuse == nil || t.refuse.Server == nil {
		return false
	}
	return t.probe.Class == ClassTimeout || t.probe.Server == nil && t.refuse.Server.asksForModern()
}

// verdict is why the negotiation failed, told by the fault that says most.
func (t *transport) verdict() *Fault {
	if t.hasty() {
		return t.probe
	}
	if t.probe != nil && t.probe.Server != nil && t.probe.Server.modernCode() != 0 {
		return t.probe // a modern server's own words; what initialize met follows from it
	}
	return t.refuse
}

// wireError is a fault as the client understands it. What is no recognized error
// of a modern server makes it fall back.
func wireError(fault *Fault) *jsonrpc.Error {
	told := fault.Server
	if told == nil {
		return &jsonrpc.Error{Code: codeMethodNotFound, Message: fault.Error()}
	}
	code := told.Code
	if modern := told.modernCode(); modern != 0 {
		code = modern
	}
	return &jsonrpc.Error{Code: code, Message: told.Message, Data: told.Data}
}
