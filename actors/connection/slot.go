package connection

import (
	"context"
	"sync/atomic"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// holder is where a slot's current session is read by its catalog and its calls,
// in this process. The actor alone writes it.
type holder struct{ current atomic.Pointer[held] }

// held is one session of a slot.
type held struct {
	epoch      uint64
	session    Session
	credential string
}

var _ Source = (*holder)(nil)

var errNotOpen = failure.New(failure.KindMcpServerUnreachable, "the connection is not open", nil)

// Epoch implements [Source].
func (h *holder) Epoch() (epoch uint64, open bool) {
	current := h.current.Load()
	if current == nil {
		return 0, false
	}
	return current.epoch, true
}

// ListTools implements [Source].
func (h *holder) ListTools(ctx context.Context, previousEtag string) (*messages.Listing, error) {
	current := h.current.Load()
	if current == nil {
		return nil, errNotOpen
	}
	return current.session.ListTools(ctx, current.credential, previousEtag)
}

// Watch implements [Source].
func (h *holder) Watch(ctx context.Context, opened, changed func()) (again bool, err error) {
	current := h.current.Load()
	if current == nil {
		return false, errNotOpen
	}
	return current.session.Watch(ctx, current.credential, opened, changed)
}

// ProtocolVersion implements [Source].
func (h *holder) ProtocolVersion() string {
	if current := h.current.Load(); current != nil {
		return current.session.ProtocolVersion()
	}
	return ""
}

// Instructions implements [Source].
func (h *holder) Instructions() string {
	if current := h.current.Load(); current != nil {
		return current.session.Instructions()
	}
	return ""
}
