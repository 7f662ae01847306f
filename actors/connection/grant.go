package connection

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// ownGrant has the key's grant owned, from the first message that tells of it.
func (c *connection) ownGrant(ctx actor.Context, target *messages.Target) {
	if c.grant == nil && target.GetGrant() != nil && c.deps.Grant != nil {
		c.grant = ctx.SpawnPrefix(c.deps.Grant(target.GetGrant(), target.GetServer()), "tokenrefresh")
	}
}

var errNoGrant = failure.New(failure.KindAuthorizationRequired, "the connection has no grant that a token could come from", nil)

// needToken hands the question to the owner of the grant.
func (c *connection) needToken(ctx actor.Context, question *messages.NeedToken) {
	asked := supervision.NameOf(ctx.Sender(), question)
	if c.grant == nil {
		c.ledger.Fail(ctx, asked, errNoGrant)
		return
	}
	c.ledger.Forward(ctx, asked, c.grant)
}

// needsAuthorization is the state of a grant that waits for a person.
const needsAuthorization = "needs-authorization"

// onGrantStatus takes what the owner of the grant tells of it.
func (c *connection) onGrantStatus(_ actor.Context, status *messages.GrantStatus) {
	c.status.grant = status
	c.machine.awaited = nil
	if status.GetState() == needsAuthorization && status.GetWhy() != "" {
		c.machine.awaited = failure.New(failure.KindAuthorizationRequired, status.GetWhy(), nil)
	}
	awaited := c.machine.awaited
	c.authorizer.awaited.Store(&awaited)
	c.tellSoon()
}

// authorizer gets tokens for the connection's requests. It is used by the work of
// one incarnation.
type authorizer struct {
	root *actor.RootContext
	self *actor.PID
	// granted says that the key's credential is a grant.
	granted bool
	// awaited is why the grant waits for a person; nil, or a nil error, when it does
	// not. The actor alone writes it.
	awaited *atomic.Pointer[error]
}

const (
	// maxRefusals bounds how often one operation is sent again with another token: a
	// token that ran out, one that was revoked, a person's consent, more scopes.
	maxRefusals = 5
	// answerMargin is how long before its own deadline an asker is told why there is
	// no token.
	answerMargin = 50 * time.Millisecond
)

// operation is what a token is needed for.
type operation struct {
	name string
	// background says that nobody waits for its outcome.
	background bool
}

// authorized does work, and does it again with another token where the server
// refused the one that it had. Each attempt is bounded by limit, 0 for none; the
// time that a token takes is not counted.
func authorized[R any](ctx context.Context, a authorizer, what operation, limit time.Duration, work func(ctx context.Context) (R, error)) (R, error) {
	for refusals := 0; ; refusals++ {
		result, err := bounded(ctx, limit, work)
		refused, ok := errors.AsType[Refused](err)
		if !ok || !a.granted {
			return result, err
		}
		have, status, challenge, helps := refused.Refusal()
		if !helps || refusals == maxRefusals {
			return result, err
		}
		if why := a.need(ctx, &messages.NeedToken{
			Have: have, Status: int32(status), Challenge: challenge, //nolint:gosec // an HTTP status has three digits
			Operation: what.name, Background: what.background,
		}); why != nil {
			return result, why
		}
	}
}

func bounded[R any](ctx context.Context, limit time.Duration, work func(ctx context.Context) (R, error)) (R, error) {
	if limit <= 0 {
		return work(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return work(ctx)
}

// need waits until another token can be used; nil says so.
func (a authorizer) need(ctx context.Context, question *messages.NeedToken) error {
	if deadline, bounded := ctx.Deadline(); bounded {
		question.DeadlineUnixMs = deadline.Add(-min(answerMargin, time.Until(deadline)/10)).UnixMilli()
	}
	future := a.root.RequestFuture(a.self, question, -1)
	// The future is answered by the owner of the grant, or by the asker that gives up.
	stop := context.AfterFunc(ctx, func() { a.root.Send(future.PID(), ctx.Err()) })
	defer stop()
	answer, err := future.Result()
	switch ready, ok := answer.(*messages.TokenReady); {
	case ok && err == nil:
		return ready.GetFailure().Err()
	case ctx.Err() != nil:
		return gaveUp(ctx.Err())
	default:
		return failure.New(failure.KindInternal, "an internal error ended this work", err)
	}
}

func gaveUp(why error) error {
	if errors.Is(why, context.DeadlineExceeded) {
		return failure.New(failure.KindDeadlineExceeded, "no token came before the deadline", why)
	}
	return failure.New(failure.KindCancelled, "the wait for a token was cancelled", why)
}
