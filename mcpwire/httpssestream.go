package mcpwire

import (
	"context"
	"io"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/mcpwire/eventstream"
)

// serve reads the stream to its end and then settles what is under way.
func (h *httpSSE) serve(events *eventstream.Reader, body io.Closer, credential string) {
	defer h.stream.finish()
	defer body.Close() //nolint:errcheck // nothing was written to it
	for {
		event, err := events.Next()
		if err != nil {
			h.settleAll(h.lossOf(err))
			return
		}
		switch {
		case event.Oversize:
			h.deliverTooLarge(event)
		case event.Name == "endpoint" || len(event.Data) == 0:
			// The address was settled once.
		default:
			err := decodeEvent(events.Take(), func(m *inbound) { h.meet(m, credential) })
			if err != nil {
				h.Logger.Debug("an event that is no message was skipped", zap.String("server", h.Server), zap.Error(err))
			}
		}
	}
}

// lossOf is what the end of the stream means to a request that was written.
func (h *httpSSE) lossOf(err error) *Fault {
	if h.stream.ctx.Err() != nil {
		return h.ended(context.Cause(h.stream.ctx), true)
	}
	return h.broken(err)
}

// meet takes one message of the stream.
func (h *httpSSE) meet(m *inbound, credential string) {
	switch {
	case m.request():
		h.answer(m, credential)
	case m.method != "":
		h.mu.Lock()
		notify := h.notify
		h.mu.Unlock()
		if notify != nil {
			notify(m.method, m.params)
		}
	case m.reply() && m.addressed():
		f := found{reply: &Reply{Result: m.result}}
		if m.fault != nil {
			f = found{fault: h.stream.refused(m.fault)}
		}
		h.deliver(m, f)
	default:
		h.Logger.Debug("a message that is addressed to nobody was skipped", zap.String("server", h.Server))
	}
}

// deliver hands a reply to the request that waits for it, if one does.
func (h *httpSSE) deliver(m *inbound, f found) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, waiting := range h.pending {
		if m.answers(id) {
			delete(h.pending, id)
			waiting <- f
			return
		}
	}
}

// deliverTooLarge fails the request whose reply was read past. The id stands at the
// beginning of the reply or at its end, as servers write it; of a reply without, or
// for a request that nobody waits for any more, nobody is told, and the others go on.
func (h *httpSSE) deliverTooLarge(event eventstream.Event) {
	var m inbound
	ours := true
	_ = eachMember(event.Data, func(name, value []byte) {
		switch string(name) {
		case "id":
			m.id = value
		case "method":
			ours = false // the server's own request or notification
		}
	})
	if !m.addressed() {
		eachLastMember(event.End, func(name, value []byte) {
			if string(name) == "id" {
				m.id = value
			}
		})
	}
	h.Logger.Debug("a message beyond the ceiling was read past", zap.String("server", h.Server))
	if ours && m.addressed() {
		h.deliver(&m, found{fault: h.tooLarge(h.ceiling(), nil)})
	}
}

// settleAll ends the session: every request under way gets the fault.
func (h *httpSSE) settleAll(loss *Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loss = loss
	close(h.gone)
}

func (h *httpSSE) answer(m *inbound, credential string) {
	body := answerTo(m)
	if body == nil || h.answers.Add(1) > mostAnswers {
		h.answers.Add(-1)
		return
	}
	if !h.courtesy("answer", func(ctx context.Context) *Fault {
		defer h.answers.Add(-1)
		return h.post(ctx, &Message{Credential: credential}, body)
	}) {
		h.answers.Add(-1)
	}
}
