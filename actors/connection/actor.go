package connection

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// Props makes the connection of a key. The props serve for one actor.
func Props(key messages.PoolKey, deps Deps) *actor.Props {
	deps = deps.withDefaults()
	own, id, received := key.Message(), key.Digest(), &atomic.Uint64{}
	return supervision.Answering(deps.Logger, func(ledger *supervision.Ledger) supervision.Answerer {
		return &connection{deps: deps, own: own, id: id, granted: key.IsGranted(), received: received, ledger: ledger}
	}, actor.WithReceiverMiddleware(counting(received)), actor.WithReceiverMiddleware(deps.Middleware...))
}

// counting counts the routed messages, whatever becomes of them: the pool
// compares the count with its own.
func counting(received *atomic.Uint64) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			if _, routed := envelope.Message.(interface{ GetTarget() *messages.Target }); routed {
				received.Add(1)
			}
			next(ctx, envelope)
		}
	}
}

// connection is the actor.
type connection struct {
	supervision.Restarts

	deps Deps
	own  *messages.Key
	id   string
	// granted says that the key's credential is an OAuth grant.
	granted bool
	// received counts the routed messages of all incarnations.
	received *atomic.Uint64
	ledger   *supervision.Ledger

	machine  *machine
	work     *async.Group
	breaker  *breaker
	sessions *sessions
	// authorizer gets tokens for what is sent.
	authorizer authorizer
	// slots is what the machine's slots hold in this process.
	slots map[string]*openedSlot
	// cancels ends the work of a call that runs, overdue takes back the alarm of a
	// question that waits.
	cancels, overdue map[supervision.Asked]func()
	// active is when a message was last routed here, an attempt to connect ended, or
	// a call did.
	active time.Time
	status status
	// grant is the owner of the key's OAuth grant; nil without one.
	grant *actor.PID
}

// openedSlot is a slot's session and catalog.
type openedSlot struct {
	holder  holder
	catalog *actor.PID
	// leave ends the attempt to connect, or the wait for the session's loss.
	leave func()
}

// What the connection tells itself.
type (
	dialed struct {
		slot  string
		epoch uint64
		err   error
	}
	callFinished struct {
		asked   supervision.Asked
		attempt int
		result  *messages.ToolResult
		err     error
	}
	retryDue struct {
		slot  string
		epoch uint64
	}
	sessionLost struct {
		slot  string
		epoch uint64
	}
	askerOverdue struct{ asked supervision.Asked }
	idleDue      struct{}
	statusDue    struct{}
)

// Receive implements [actor.Actor].
func (c *connection) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		c.start(ctx)
	case *messages.GetCatalogue:
		c.getCatalogue(ctx, message)
	case *messages.CallTool:
		c.callTool(ctx, message)
	case *messages.CancelCall:
		c.cancelCall(ctx, message)
	case *messages.ReleaseSession:
		c.releaseSession(ctx, message)
	case *messages.NeedToken:
		c.needToken(ctx, message)
	case *messages.GrantStatus:
		c.onGrantStatus(ctx, message)
	case *messages.CataloguePublished:
		c.onPublished(ctx, message.GetSnapshot())
	case *messages.CatalogueFailed:
		c.onFailed(ctx, message.GetFailure().Err())
	case *actor.Terminated:
		c.Ended(message.GetWho())
	case *async.Done:
		if own, current := c.work.Take(message); current {
			c.receiveOwn(ctx, own)
		}
	}
}

func (c *connection) receiveOwn(ctx actor.Context, own any) {
	switch message := own.(type) {
	case dialed:
		c.active = time.Now()
		c.do(ctx, c.machine.onDialed(message.slot, message.epoch, message.err, c.active))
	case callFinished:
		delete(c.cancels, message.asked)
		c.active = time.Now()
		c.do(ctx, c.machine.onCallFinished(message.asked, message.attempt, message.result, message.err, wasSent(message.err), c.active))
	case retryDue:
		c.machine.onRetry(message.slot, message.epoch)
		c.tellSoon()
	case sessionLost:
		c.do(ctx, c.machine.onSessionLost(message.slot, message.epoch))
	case askerOverdue:
		c.do(ctx, c.machine.onOverdue(message.asked))
	case supervision.RestartDue:
		c.Restart(ctx, message)
	case idleDue:
		c.onIdleDue(ctx)
	case statusDue:
		c.tell(ctx)
	}
}

func (c *connection) start(ctx actor.Context) {
	c.machine = newMachine(limits{calls: c.deps.MaxCalls, waiting: c.deps.MaxWaiting, callTime: c.deps.CallTimeout})
	c.work = async.NewGroup(ctx, unlimited)
	c.breaker = newBreaker()
	c.sessions = newSessions(c.deps.Logger)
	c.authorizer = authorizer{
		root: ctx.ActorSystem().Root, self: ctx.Self(), granted: c.granted, awaited: &atomic.Pointer[error]{},
	}
	c.slots = map[string]*openedSlot{}
	c.cancels = map[supervision.Asked]func(){}
	c.overdue = map[supervision.Asked]func(){}
	c.active = time.Now()
	c.grant = nil
	c.Supervise(c.deps.Logger, c.work.After, c.childGaveUp)
	c.watchIdleness(c.deps.IdleClose)
}

// unlimited is the group's limit: the machine limits the calls itself, and the
// rest is one attempt to connect and one wait for its loss a slot.
const unlimited = 1 << 30

// End implements [supervision.Answerer]. The sessions' last courtesies to the
// server are their own, and bounded.
func (c *connection) End(ctx actor.Context) {
	if c.work == nil {
		return
	}
	c.work.Close()
	why := failure.New(failure.KindMcpServerUnreachable, "the connection was closed", nil)
	c.ledger.Settle(ctx, why, func(asked supervision.Asked) any {
		if done := c.machine.onEnd(asked, why); done != nil {
			return done
		}
		return nil
	})
	c.sessions.end()
}

// isOwn reports whether a message is meant for this connection.
func (c *connection) isOwn(key *messages.Key) bool {
	return key.GetTenant() == c.own.GetTenant() && key.GetPrincipal() == c.own.GetPrincipal() &&
		key.GetUrl() == c.own.GetUrl() && key.GetTransport() == c.own.GetTransport() &&
		key.GetCredentialIdentity() == c.own.GetCredentialIdentity()
}

var errForeign = failure.New(failure.KindAccessDenied, "the message names another connection", nil)

// routed notes a message's target; false says that it is none of this
// connection's.
func (c *connection) routed(ctx actor.Context, target *messages.Target) bool {
	c.active = time.Now()
	if !c.isOwn(target.GetKey()) || !target.Fits() {
		return false
	}
	c.status.server = target.GetServer()
	c.ownGrant(ctx, target)
	return true
}

func (c *connection) getCatalogue(ctx actor.Context, question *messages.GetCatalogue) {
	asked := supervision.NameOf(ctx.Sender(), question)
	if !c.routed(ctx, question.GetTarget()) {
		c.ledger.Fail(ctx, asked, errForeign)
		return
	}
	c.slot(question.GetTarget().GetSession()).holder.target.Store(question.GetTarget())
	c.do(ctx, c.machine.onGetCatalogue(asked, question, c.active))
}

func (c *connection) callTool(ctx actor.Context, question *messages.CallTool) {
	asked := supervision.NameOf(ctx.Sender(), question)
	if !c.routed(ctx, question.GetTarget()) {
		c.ledger.Fail(ctx, asked, errForeign)
		return
	}
	c.slot(question.GetTarget().GetSession()).holder.target.Store(question.GetTarget())
	c.do(ctx, c.machine.onCallTool(asked, question, c.active))
}

func (c *connection) cancelCall(ctx actor.Context, message *messages.CancelCall) {
	if asker := ctx.Sender(); c.routed(ctx, message.GetTarget()) && asker != nil {
		c.do(ctx, c.machine.onCancel(supervision.Asked{
			Address: asker.GetAddress(), Asker: asker.GetId(), ID: message.GetCallId(),
		}))
	}
}

func (c *connection) releaseSession(ctx actor.Context, message *messages.ReleaseSession) {
	if c.routed(ctx, message.GetTarget()) {
		c.do(ctx, c.machine.onRelease(message.GetTarget().GetSession()))
	}
}

// childGaveUp forgets a child that failed too often; the next asker gets a new one.
func (c *connection) childGaveUp(child *actor.PID, _ any) {
	if c.grant == child {
		c.grant = nil
	}
	for _, s := range c.slots {
		if s.catalog == child {
			s.catalog = nil
		}
	}
}

// watchIdleness sets the next look at whether the connection is used; with
// jitter, so that connections which were made together do not end together.
func (c *connection) watchIdleness(wait time.Duration) {
	c.work.After(wait+rand.N(c.deps.IdleClose/10+1), idleDue{})
}

// abandoned is after how long without use a Run's own session is given up. It is
// longer than any Run, because a session that is closed under its Run loses the
// state for which the Run has it: it ends a session whose Run died without a
// word.
const abandoned = 25 * time.Hour

func (c *connection) onIdleDue(ctx actor.Context) {
	now := time.Now()
	c.do(ctx, c.machine.onUnused(now.Add(-abandoned)))
	if unused := now.Sub(c.active); unused < c.deps.IdleClose {
		c.watchIdleness(c.deps.IdleClose - unused)
		return
	}
	c.offerClose(ctx)
	c.watchIdleness(c.deps.IdleClose)
}

// offerClose has the pool close the connection, if nobody waits for anything. The
// pool does not, when more was routed here than has been received.
func (c *connection) offerClose(ctx actor.Context) {
	for _, s := range c.slots {
		if s.holder.listing.Load() > 0 {
			return
		}
	}
	if !c.machine.busy() {
		ctx.Send(ctx.Parent(), &messages.ConnectionIdle{Id: c.id, Received: c.received.Load()})
	}
}
