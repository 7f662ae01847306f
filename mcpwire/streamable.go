package mcpwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/mcpwire/eventstream"
)

// streamable is Streamable HTTP: each message is a POST of its own, answered with
// one JSON text or with a stream that ends in the reply.
type streamable struct {
	*wire
	// agreed is what was negotiated; nil until then.
	agreed atomic.Pointer[agreement]
	// initialize are the params with which a session is opened, set before agreed.
	initialize []byte
	// credential is the name of the one that the session was opened with.
	credential string
	renewals   renewals
	doubt      doubt
	answering  atomic.Int32

	// changed is told of notifications that come with the answers to calls, as
	// servers before 2026-07-28 may send them; nil until someone listens.
	changed atomic.Pointer[func(method string)]
	// listened says that the server has opened a stream of changes before.
	listened atomic.Bool
}

func newStreamable(options Options, target *url.URL) *streamable {
	return &streamable{wire: newWire(options, target), doubt: doubt{gone: make(chan struct{})}}
}

// chunk is how much of a reply's stream is read at once, in bytes.
const chunk = 4 << 10

// Exchange sends one request. Where its session turns out to be gone, it opens a
// new one and sends again what was certainly not carried out.
func (s *streamable) Exchange(ctx context.Context, m *Message) (Reply, *Fault) {
	agreed := s.agreed.Load()
	reply, fault := s.once(ctx, m, agreed)
	if fault == nil {
		s.renewals.proved()
		return reply, nil
	}
	s.wonder(agreed, fault, m.Credential)
	renewed := s.renew(ctx, agreed, s.renewals.read(agreed, fault), m.Credential)
	if renewed == nil || fault.sent || ctx.Err() != nil {
		return reply, fault
	}
	reply, again := s.once(ctx, m, renewed)
	switch {
	case again == nil:
		s.renewals.confirm(fault.Status)
	case again.Status == fault.Status:
		s.renewals.refute(fault.Status)
	}
	return reply, again
}

// once sends the request once.
func (s *streamable) once(ctx context.Context, m *Message, agreed *agreement) (Reply, *Fault) {
	id := s.ids.Add(1)
	x := s.begin(ctx)
	reply, open, fault := s.ask(x, m, agreed, id)
	fault = x.own(fault)
	if open != nil {
		x.drain(open.Body)
	} else {
		x.finish()
	}
	if fault != nil && fault.sent && m.Method != methodInitialize {
		s.cancelled(fault, agreed, id, m.Credential)
	}
	return reply, fault
}

// ask writes the request and reads to its reply. The response is returned when
// its answer is not read to the end.
func (s *streamable) ask(x *span, m *Message, agreed *agreement, id int64) (Reply, *http.Response, *Fault) {
	response, fault := x.send(http.MethodPost, s.target, agreed.postHeader(m), m.encode(id), m.Credential)
	if fault != nil {
		return Reply{}, nil, fault
	}
	session := response.Header.Get(fieldSession)
	reply, open, fault := s.read(x, response, m, agreed, id)
	if fault != nil {
		return Reply{}, open, fault
	}
	reply.session = session
	return reply, open, nil
}

func (s *streamable) read(x *span, response *http.Response, m *Message, agreed *agreement, id int64) (Reply, *http.Response, *Fault) {
	switch media := mediaType(response.Header.Get(fieldContentType)); {
	case response.StatusCode < 200 || response.StatusCode > 299:
		return Reply{}, nil, x.refusedStatus(response)
	case media == mediaEventStream && response.StatusCode == http.StatusOK:
		return s.follow(x, response, m, agreed, id)
	case response.StatusCode == http.StatusAccepted || response.StatusCode == http.StatusNoContent:
		return Reply{}, response, s.malformed("accepted the request and gave no answer", nil)
	case media == mediaJSON || media == "":
		reply, fault := s.single(x, response, agreed, id, m.Credential)
		return reply, nil, fault
	default:
		return Reply{}, response, s.malformed(
			fmt.Sprintf("answered with %s, which is neither JSON nor an event stream", excerpt(media)), nil)
	}
}

// byteOrderMark may come before a JSON text and means nothing (RFC 8259 section 8.1).
var byteOrderMark = []byte("\uFEFF")

// single reads an answer that is one JSON text.
func (s *streamable) single(x *span, response *http.Response, agreed *agreement, id int64, credential string) (Reply, *Fault) {
	defer response.Body.Close() //nolint:errcheck // nothing was written to it
	body, fault := x.answering(response.Body).readAll(response.ContentLength)
	if fault != nil {
		return Reply{}, fault
	}
	f, err := x.find(bytes.TrimPrefix(body, byteOrderMark), id, func(met *inbound) { s.meet(met, agreed, credential) })
	switch {
	case f.reply != nil:
		return *f.reply, nil
	case f.fault != nil:
		return Reply{}, f.fault
	case f.foreign:
		fault := s.malformed("answered with an error that is not JSON-RPC", nil)
		fault.foreign = true
		return Reply{}, fault
	case errors.Is(err, errTooDeep):
		return Reply{}, s.malformed("answered with JSON that is nested too deep", err)
	case err != nil:
		return Reply{}, s.malformed("answered with what is not JSON", err)
	default:
		return Reply{}, s.malformed("answered with JSON that is no reply to the request", nil)
	}
}

// follow reads a stream to the reply, over as many connections as an older server
// takes for it.
func (s *streamable) follow(x *span, response *http.Response, m *Message, agreed *agreement, id int64) (Reply, *http.Response, *Fault) {
	var resumption resumption
	foreign := false
	for {
		limit := s.ceiling()
		stream := eventstream.NewReader(x.answering(response.Body), chunk, eventstream.Limits{Event: limit, Total: limit})
		f, err := s.await(x, stream, agreed, id, m.Credential)
		if f.done() {
			if f.fault != nil {
				return Reply{}, response, f.fault
			}
			return *f.reply, response, nil
		}
		_ = response.Body.Close()
		foreign = foreign || f.foreign
		fault := x.outage(err)
		fault.foreign = foreign
		if agreed == nil || agreed.modern || fault.Class != ClassBroken || !resumption.after(stream) {
			return Reply{}, nil, fault
		}
		if response = s.resume(x, &resumption, agreed, m.Credential); response == nil {
			if x.ctx.Err() != nil {
				fault = s.ended(context.Cause(x.ctx), true) // nobody waits any more; nothing broke
			}
			return Reply{}, nil, fault
		}
	}
}

// await reads events until one answers the request. Its error is why none did.
func (s *streamable) await(x *span, stream *eventstream.Reader, agreed *agreement, id int64, credential string) (found, error) {
	var all found
	for {
		event, err := stream.Next()
		if err != nil {
			return all, err
		}
		if len(event.Data) == 0 {
			continue
		}
		f, err := x.find(event.Data, id, func(met *inbound) { s.meet(met, agreed, credential) })
		if f.done() {
			return f, nil
		}
		all.foreign = all.foreign || f.foreign
		if err != nil {
			s.Logger.Debug("an event that is no message was skipped", zap.String("server", s.Server), zap.Error(err))
		}
	}
}

// Notify sends a notification.
func (s *streamable) Notify(ctx context.Context, m *Message) *Fault {
	return s.post(ctx, s.agreed.Load(), m, m.encode(0))
}

// post sends what has no answer: a notification, or our answer to a request.
func (s *streamable) post(ctx context.Context, agreed *agreement, m *Message, body []byte) *Fault {
	x := s.begin(ctx)
	response, fault := x.send(http.MethodPost, s.target, agreed.postHeader(m), body, m.Credential)
	if fault != nil {
		x.finish()
		return fault
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer x.finish()
		return x.own(x.refusedStatus(response))
	}
	x.drain(response.Body)
	return nil
}

// Closed is closed when the server is seen to be another one than was negotiated
// with. No fault of a request closes it.
func (s *streamable) Closed() <-chan struct{} { return s.doubt.gone }

// Close ends every exchange, and the server's session where there is one.
func (s *streamable) Close() {
	s.farewell()
	s.close()
}

// shake opens the first session.
func (s *streamable) shake(ctx context.Context, m *Message) (Reply, *Fault) {
	reply, fault := s.once(ctx, m, nil)
	if fault != nil {
		return reply, fault
	}
	agreed, fault := s.agree(reply)
	if fault != nil {
		return Reply{}, fault
	}
	s.initialize, s.credential = m.Params, m.Credential
	s.agreed.Store(agreed)
	return reply, nil
}

// settle takes note of a modern revision.
func (s *streamable) settle(version string, discover []byte) {
	s.doubt.discover = discover
	s.agreed.Store(&agreement{version: version, modern: true})
}
