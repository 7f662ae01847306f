package mcpwire

import (
	"bytes"
	"context"
	"strings"

	"github.com/psych-systems/psych-go/failure"
)

// Exchanger speaks to one server. Its methods are safe for concurrent use, and
// what goes wrong in one call of them is that call's own affair.
type Exchanger interface {
	// Exchange sends one request and returns its one reply, or its own fault. The
	// context bounds it; ending it cancels the request at the server too.
	Exchange(ctx context.Context, m *Message) (Reply, *Fault)
	// Notify sends a notification.
	Notify(ctx context.Context, m *Message) *Fault
	// Listen opens the stream on which the server tells of changes and returns
	// when it has ended; see [Listener].
	Listen(ctx context.Context, m *Message, l Listener) *Fault
	// Closed is closed when the connection is gone for good.
	Closed() <-chan struct{}
	// Close ends every exchange and waits for what it began.
	Close()
}

// Reply is a request's result.
type Reply struct {
	// Result is the raw result as it came: checked for structure and depth, not
	// yet for validity. It belongs to the caller.
	Result []byte
	// session is the Mcp-Session-Id that came along.
	session string
}

// Listener is what a stream of changes reports to.
type Listener struct {
	// Opened is called when the server has opened the stream.
	Opened func()
	// Notified is called for each notification, Opened or not. It must not keep
	// params. The stream ends when it returns false.
	Notified func(method string, params []byte) bool
}

// found is what a text of the server held for a request.
type found struct {
	reply *Reply
	fault *Fault
	// foreign says that it held an error that is not JSON-RPC.
	foreign bool
}

// done says that the request is answered.
func (f *found) done() bool { return f.reply != nil || f.fault != nil }

// find looks among the messages of a text for the reply to the span's request,
// and hands the server's own messages to meet. The reply keeps the text.
func (x *span) find(text []byte, id int64, meet func(*inbound)) (found, error) {
	var f found
	err := decodeEvent(text, func(m *inbound) {
		switch {
		case f.done():
		case m.method != "":
			meet(m)
		case m.foreign:
			f.foreign = true
		case !m.reply() || m.addressed() && !m.answers(id):
		case m.fault != nil:
			// An error without an id is ours too: nothing else was asked here.
			f.fault = x.refused(m.fault)
		case m.addressed():
			f.reply = &Reply{Result: m.result}
		}
	})
	return f, err
}

// refused is a JSON-RPC error as a fault, without our own credential in it, which
// a server may repeat.
func (x *span) refused(e *ServerError) *Fault {
	if x.token != "" {
		e.Message = conceal(e.Message, x.token)
		e.Data = bytes.ReplaceAll(e.Data, []byte(x.token), []byte(concealed))
	}
	return x.wire.refused(e)
}

// own is a fault of this span, nil for none, without our own credential in its
// sentence, wherever the server put it.
func (x *span) own(fault *Fault) *Fault {
	if fault == nil || x.token == "" {
		return fault
	}
	said := fault.Error()
	if clean := conceal(said, x.token); clean != said {
		fault.failure = failure.New(fault.kind(), clean, fault.failure.Unwrap())
	}
	return fault
}

const concealed = "[redacted]"

// conceal takes a token out of a text, also in letters of another case: media
// types are read in lower case. Both are compared as ASCII.
func conceal(text, token string) string {
	var clean strings.Builder
	rest := text
	for i := 0; i+len(token) <= len(rest); {
		if !strings.EqualFold(rest[i:i+len(token)], token) {
			i++
			continue
		}
		clean.WriteString(rest[:i] + concealed)
		rest, i = rest[i+len(token):], 0
	}
	return clean.String() + rest
}
