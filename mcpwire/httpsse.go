package mcpwire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/mcpwire/eventstream"
)

// httpSSE is HTTP+SSE of 2024-11-05: one stream brings every reply, and requests
// are POSTs to the address that its first event names. When the stream is gone,
// so is the session, and what was under way is settled.
type httpSSE struct {
	*wire
	endpoint *url.URL
	stream   *span
	agreed   atomic.Pointer[agreement]
	answers  atomic.Int32 // under way
	gone     chan struct{}

	mu      sync.Mutex
	pending map[int64]chan found // what waits for a reply; each has room for one
	loss    *Fault               // why the stream is gone; set before gone is closed
	notify  func(method string, params []byte) bool
}

// openHTTPSSE opens the stream and waits for the address, within ctx.
func openHTTPSSE(ctx context.Context, options Options, target *url.URL, credential string) (*httpSSE, *Fault) {
	h := &httpSSE{wire: newWire(options, target), gone: make(chan struct{}), pending: make(map[int64]chan found)}
	h.stream = h.begin(h.life)
	h.stream.unlimit()
	h.stream.until = time.Time{}
	stop := context.AfterFunc(ctx, func() { h.stream.cancel(context.Cause(ctx)) })
	events, body, fault := h.open(credential)
	if !stop() && fault == nil {
		_ = body.Close()
		fault = h.ended(context.Cause(ctx), false)
	}
	if fault != nil {
		h.stream.finish()
		h.close()
		return nil, fault
	}
	h.spawn(func(context.Context) { h.serve(events, body, credential) })
	return h, nil
}

func (h *httpSSE) open(credential string) (*eventstream.Reader, io.Closer, *Fault) {
	response, fault := h.stream.send(http.MethodGet, h.target, h.agreed.Load().streamHeader(""), nil, credential)
	if fault != nil {
		return nil, nil, fault
	}
	media := mediaType(response.Header.Get(fieldContentType))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, nil, h.stream.own(h.stream.refusedStatus(response))
	}
	if media != mediaEventStream {
		_ = response.Body.Close()
		return nil, nil, h.stream.own(h.malformed(fmt.Sprintf("answered with %q, which is no event stream", excerpt(media)), nil))
	}
	events := eventstream.NewReader(response.Body, chunk, eventstream.Limits{Event: h.ceiling(), Changing: h.ceiling, SkipOversize: true})
	if fault := h.findEndpoint(events); fault != nil {
		_ = response.Body.Close()
		return nil, nil, fault
	}
	return events, response.Body, nil
}

// findEndpoint reads on to the event that names the address for messages; what a
// server sends ahead of it to keep the stream alive means nothing. The address has
// to be on the origin of the stream: the credential belongs to no other.
func (h *httpSSE) findEndpoint(events *eventstream.Reader) *Fault {
	var event eventstream.Event
	for event.Name != "endpoint" {
		var err error
		if event, err = events.Next(); err != nil {
			return h.stream.outage(err)
		}
		if event.Name == "" && len(event.Data) > 0 {
			return h.malformed("began its stream without naming an endpoint", nil)
		}
	}
	if event.Oversize {
		return h.malformed("began its stream without naming an endpoint", nil)
	}
	if len(bytes.TrimSpace(event.Data)) == 0 {
		return h.malformed("named an empty endpoint", nil)
	}
	endpoint, err := h.target.Parse(string(bytes.TrimSpace(event.Data)))
	if err != nil {
		return h.malformed("named an endpoint that is no address", nil)
	}
	if endpoint.User != nil || !sameOrigin(endpoint, h.target) {
		return h.malformed("named an endpoint on another origin, where the credential does not belong", nil)
	}
	endpoint.Fragment = ""
	h.endpoint = endpoint
	return nil
}

// Exchange sends one request and waits for its reply on the stream.
func (h *httpSSE) Exchange(ctx context.Context, m *Message) (Reply, *Fault) {
	id := h.ids.Add(1)
	waiting := make(chan found, 1)
	if loss := h.expect(id, waiting); loss != nil {
		return Reply{}, h.lost(loss, false)
	}
	defer h.forget(id)
	x := h.begin(ctx)
	defer x.finish()
	// The POST has a span of its own: it may be answered after the reply has come,
	// or never.
	post := h.begin(x.ctx)
	posted := make(chan *Fault, 1)
	if !h.spawn(func(context.Context) {
		defer post.finish()
		posted <- h.deposit(post, m, m.encode(id))
	}) {
		post.finish()
		return Reply{}, h.ended(errClosed, false)
	}
	reply, fault := h.await(x.ctx, &post.sent, waiting, posted)
	if fault != nil && fault.sent && m.Method != methodInitialize &&
		(fault.Class == ClassCancelled || fault.Class == ClassTimeout) {
		cancel := cancellation(id, m.Credential)
		h.courtesy("cancellation", func(ctx context.Context) *Fault { return h.post(ctx, cancel, cancel.encode(0)) })
	}
	return reply, fault
}

// await waits for what comes first; sent says whether the request was written.
func (h *httpSSE) await(ctx context.Context, sent *atomic.Bool, waiting <-chan found, posted <-chan *Fault) (Reply, *Fault) {
	for {
		select {
		case f := <-waiting:
			if posted != nil {
				h.outlast(posted)
			}
			if f.fault != nil {
				return Reply{}, f.fault
			}
			return *f.reply, nil
		case fault := <-posted:
			if fault != nil {
				return Reply{}, fault
			}
			posted = nil
		case <-ctx.Done():
			return Reply{}, h.ended(context.Cause(ctx), sent.Load())
		case <-h.gone:
			return Reply{}, h.lost(h.loss, sent.Load())
		}
	}
}

// outlast lets a POST end whose reply has come, so that its connection can serve
// again.
func (h *httpSSE) outlast(posted <-chan *Fault) {
	select {
	case late := <-posted:
		if late != nil {
			h.Logger.Debug("a message was refused after its reply had come", zap.String("server", h.Server), zap.Error(late))
		}
	case <-time.After(linger):
	}
}

// lost is the end of the stream as the fault of one request.
func (h *httpSSE) lost(loss *Fault, sent bool) *Fault {
	own := *loss
	own.sent = sent
	if !sent && own.Class == ClassBroken {
		own = *h.fault(ClassUnsent, own.kind(), "could not be reached: its stream is closed", false, loss)
	}
	return &own
}

func (h *httpSSE) expect(id int64, waiting chan found) *Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.loss == nil {
		h.pending[id] = waiting
	}
	return h.loss
}

func (h *httpSSE) forget(id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pending, id)
}

// deposit POSTs a message and reads the answer to its end, which says nothing.
func (h *httpSSE) deposit(x *span, m *Message, body []byte) *Fault {
	response, fault := x.send(http.MethodPost, h.endpoint, h.agreed.Load().postHeader(m), body, m.Credential)
	if fault != nil {
		return fault
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return x.own(x.refusedStatus(response))
	}
	_, _ = io.CopyN(io.Discard, response.Body, chunk)
	_ = response.Body.Close()
	return nil
}

func (h *httpSSE) post(ctx context.Context, m *Message, body []byte) *Fault {
	x := h.begin(ctx)
	defer x.finish()
	return h.deposit(x, m, body)
}

// Notify sends a notification.
func (h *httpSSE) Notify(ctx context.Context, m *Message) *Fault {
	return h.post(ctx, m, m.encode(0))
}

// Listen hears the notifications of the one stream there is, until ctx or the
// stream ends.
func (h *httpSSE) Listen(ctx context.Context, _ *Message, l Listener) *Fault {
	h.mu.Lock()
	h.notify = l.Notified
	h.mu.Unlock()
	l.Opened()
	select {
	case <-ctx.Done():
		return h.ended(context.Cause(ctx), false)
	case <-h.gone:
		return h.lost(h.loss, false)
	}
}

// Closed is closed when the stream is gone.
func (h *httpSSE) Closed() <-chan struct{} { return h.gone }

// Close closes the stream and waits for what was begun.
func (h *httpSSE) Close() { h.close() }

func (h *httpSSE) shake(ctx context.Context, m *Message) (Reply, *Fault) {
	reply, fault := h.Exchange(ctx, m)
	if fault != nil {
		return reply, fault
	}
	agreed, fault := h.agree(reply)
	if fault != nil {
		return Reply{}, fault
	}
	h.agreed.Store(agreed)
	return reply, nil
}

func (h *httpSSE) settle(version string, _ []byte) {
	h.agreed.Store(&agreement{version: version, modern: true})
}
