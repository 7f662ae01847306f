package connection

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// holder is where a slot's current session is read by its catalog and its calls,
// in this process. The actor alone writes it.
type holder struct {
	breaker *breaker
	// tokens gets tokens for the catalog's requests, and listLimit bounds a fetch
	// without the time that they take.
	tokens    authorizer
	listLimit time.Duration
	current   atomic.Pointer[held]
	// target is by which the slot was last asked for: the credential's name may
	// change while its identity does not.
	target atomic.Pointer[messages.Target]
	// listing counts the fetches in flight.
	listing atomic.Int64
	// dead says that a fetch met a credential which is another by now.
	dead atomic.Bool
}

// held is one session of a slot.
type held struct {
	epoch   uint64
	session Session
}

// lost reports whether the session is, also before the actor has been told.
func (h *held) lost() bool {
	select {
	case <-h.session.Closed():
		return true
	default:
		return false
	}
}

var _ Source = (*holder)(nil)

var (
	errNotOpen = failure.New(failure.KindMcpServerUnreachable, "the connection is not open", nil)
	// errUnfinished is what a request that panicked is to the breaker.
	errUnfinished = failure.New(failure.KindInternal, "an internal error ended this work", nil)
)

// Epoch implements [Source].
func (h *holder) Epoch() (epoch uint64, open bool) {
	current := h.current.Load()
	if current == nil {
		return 0, false
	}
	return current.epoch, true
}

// ListTools implements [Source]. It passes the breaker, as calls do.
func (h *holder) ListTools(ctx context.Context, previousEtag string, wanted bool) (*messages.Listing, error) {
	h.listing.Add(1)
	defer h.listing.Add(-1)
	current := h.current.Load()
	if current == nil {
		return nil, errNotOpen
	}
	report, err := h.breaker.allow()
	if err != nil {
		return nil, err
	}
	outcome := error(errUnfinished)
	defer func() { report(outcome) }()
	target := h.target.Load()
	listing, err := authorized(ctx, h.tokens, operation{name: "tools/list", background: !wanted}, h.listLimit,
		func(ctx context.Context) (*messages.Listing, error) {
			return current.session.ListTools(ctx, target.GetCredential(), previousEtag)
		})
	outcome = err
	switch {
	case errors.Is(err, messages.ErrStaleKey):
		h.dead.Store(true)
		return nil, readable(err)
	case failure.KindOf(err) == failure.KindDeadlineExceeded:
		return nil, failure.New(failure.KindMcpServerUnreachable,
			fmt.Sprintf("the tools of the server %q could not be listed: the connection timed out", target.GetServer()), err)
	}
	return listing, err
}

// Watch implements [Source].
func (h *holder) Watch(ctx context.Context, opened, changed func()) (again bool, err error) {
	current := h.current.Load()
	if current == nil {
		return false, errNotOpen
	}
	return authorized(ctx, h.tokens, operation{name: "listen", background: true}, 0, func(ctx context.Context) (bool, error) {
		return current.session.Watch(ctx, h.target.Load().GetCredential(), opened, changed)
	})
}

// Awaits implements [Source].
func (h *holder) Awaits() error {
	if awaited := h.tokens.awaited.Load(); awaited != nil {
		return *awaited
	}
	return nil
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
