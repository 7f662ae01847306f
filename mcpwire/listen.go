package mcpwire

import (
	"context"
	"errors"
	"io"
	"net/http"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/mcpwire/eventstream"
)

const (
	// listenChunk is how much of a stream of changes is read at once, in bytes. It
	// is silent nearly always and there are many of them.
	listenChunk = 512
	// longestNotice bounds one event of a stream of changes, in bytes.
	longestNotice = 1 << 20
)

// Listen opens the stream of changes: the answer to a request of 2026-07-28, or
// the answer to a GET before it. The server has WatchHeaderTimeout to open it;
// from then on it may be silent.
func (s *streamable) Listen(ctx context.Context, m *Message, l Listener) *Fault {
	agreed := s.agreed.Load()
	heard := func(method string) {
		if method == methodListChanged {
			l.Notified(method, nil)
		}
	}
	s.changed.Store(&heard)
	x := s.begin(ctx)
	defer x.finish()
	defer s.bind(x, agreed)()
	x.limit(s.WatchHeaderTimeout)
	id := s.ids.Add(1)
	var response *http.Response
	var fault *Fault
	if agreed.modern {
		response, fault = x.send(http.MethodPost, s.target, agreed.postHeader(m), m.encode(id), m.Credential)
	} else {
		response, fault = x.send(http.MethodGet, s.target, agreed.streamHeader(""), nil, m.Credential)
	}
	if fault != nil {
		return fault
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written to it
	if response.StatusCode != http.StatusOK || mediaType(response.Header.Get(fieldContentType)) != mediaEventStream {
		return s.unopened(ctx, x, response, m, agreed, id)
	}
	x.unlimit()
	s.listened.Store(true)
	l.Opened()
	return s.notices(x, response.Body, m, l, agreed, id)
}

// unopened explains why there is no stream.
func (s *streamable) unopened(ctx context.Context, x *span, response *http.Response, m *Message, agreed *agreement, id int64) *Fault {
	_, _, fault := s.read(x, response, m, agreed, id)
	fault = x.own(fault)
	if fault == nil {
		return s.malformed("ended its stream of changes before it began", nil)
	}
	if fault.Status == http.StatusNotFound && s.listened.Load() {
		s.renew(ctx, agreed, s.renewals.read(agreed, fault), m.Credential)
	}
	return fault
}

// notices reads the stream to its end; nil when the server ended it in order.
func (s *streamable) notices(x *span, body io.Reader, m *Message, l Listener, agreed *agreement, id int64) *Fault {
	stream := eventstream.NewReader(body, listenChunk, eventstream.Limits{Event: min(longestNotice, s.ceiling())})
	ended := false
	meet := func(met *inbound) {
		if met.request() {
			s.meet(met, agreed, m.Credential)
			return
		}
		ended = ended || !l.Notified(met.method, met.params)
	}
	for !ended {
		event, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return x.outage(err)
		}
		if len(event.Data) == 0 {
			continue
		}
		f, err := x.find(event.Data, id, meet)
		if f.done() {
			return f.fault
		}
		if err != nil {
			s.Logger.Debug("an event that is no message was skipped", zap.String("server", s.Server), zap.Error(err))
		}
	}
	return nil
}
