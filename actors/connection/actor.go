package connection

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

var connectBackoff = supervision.Backoff{Base: 200 * time.Millisecond, Cap: 30 * time.Second}

// Props makes the connection of a key. The props serve for one actor.
func Props(key messages.PoolKey, deps Deps) *actor.Props {
	deps = deps.withDefaults()
	own := key.Message()
	return supervision.Answering(func() actor.Actor {
		return &connection{deps: deps, own: own, id: key.Digest()}
	})
}

// connection is the actor.
type connection struct {
	supervision.Restarts

	deps Deps
	own  *messages.Key
	id   string

	machine *machine
	ledger  *supervision.Ledger
	work    *async.Group
	breaker *breaker
	// slots is what the machine's slots hold in this process.
	slots    map[string]*openedSlot
	sessions *sessions
	// cancels ends the work of a call.
	cancels map[supervision.Asked]func()
	// received counts routed messages, for the pool's decision over idleness.
	received uint64
	lastUsed time.Time
	told     status
}

// openedSlot is a slot's session and catalog.
type openedSlot struct {
	holder  holder
	catalog *actor.PID
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
	callOverdue struct{ asked supervision.Asked }
	idleDue     struct{}
	statusDue   struct{}
)

// Receive implements [actor.Actor].
func (c *connection) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		c.start(ctx)
	case *actor.Restarting, *actor.Stopping:
		c.end(ctx)
	case *messages.GetCatalogue:
		c.getCatalogue(ctx, message)
	case *messages.CallTool:
		c.callTool(ctx, message)
	case *messages.CancelCall:
		c.cancelCall(ctx, message)
	case *messages.ReleaseSession:
		c.routed()
		c.do(ctx, c.machine.onRelease(message.GetTarget().GetSession()))
	case *messages.CataloguePublished:
		c.onPublished(message.GetSnapshot())
	case *messages.CatalogueFailed:
		c.machine.lastError = message.GetFailure().Err()
		c.tellSoon()
	case *async.Done:
		if own, current := c.work.Take(message); current {
			c.receiveOwn(ctx, own)
		}
	}
}

func (c *connection) receiveOwn(ctx actor.Context, own any) {
	switch message := own.(type) {
	case dialed:
		c.onDialed(ctx, message)
	case callFinished:
		delete(c.cancels, message.asked)
		c.do(ctx, c.machine.onCallFinished(message.asked, message.attempt, message.result, message.err, wasSent(message.err)))
	case retryDue:
		c.machine.onRetry(message.slot, message.epoch)
		c.tellSoon()
	case sessionLost:
		c.do(ctx, c.machine.onSessionLost(message.slot, message.epoch))
	case callOverdue:
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
	c.machine = newMachine(c.deps.MaxCalls, c.deps.MaxWaiting)
	c.ledger = supervision.NewLedger()
	c.work = async.NewGroup(ctx, unlimited)
	c.breaker = newBreaker()
	c.slots = map[string]*openedSlot{}
	c.sessions = newSessions()
	c.cancels = map[supervision.Asked]func(){}
	c.lastUsed = time.Now()
	c.Supervise(c.deps.Logger, c.work.After, c.catalogGaveUp)
	c.watchIdleness()
}

// unlimited is the group's limit: the machine limits the calls itself, and the
// rest is one attempt to connect and one watcher a slot.
const unlimited = 1 << 30

// end settles what is owed and lets go of the sessions; their last courtesies to
// the server are their own, and bounded.
func (c *connection) end(ctx actor.Context) {
	c.work.Close()
	why := failure.New(failure.KindMcpServerUnreachable, "the connection was closed", nil)
	c.ledger.Settle(ctx, why, func(asked supervision.Asked) any {
		if open, owed := c.machine.calls[asked]; owed {
			return answerOf(asked, open.message, nil, why, open.running)
		}
		return nil
	})
	c.sessions.end()
}

// own reports whether a message is meant for this connection.
func (c *connection) isOwn(key *messages.Key) bool {
	return key.GetTenant() == c.own.GetTenant() && key.GetPrincipal() == c.own.GetPrincipal() &&
		key.GetUrl() == c.own.GetUrl() && key.GetTransport() == c.own.GetTransport() &&
		key.GetCredentialIdentity() == c.own.GetCredentialIdentity()
}

var errForeign = failure.New(failure.KindAccessDenied, "the message names another connection", nil)

func (c *connection) routed() {
	c.received++
	c.lastUsed = time.Now()
}

func (c *connection) getCatalogue(ctx actor.Context, question *messages.GetCatalogue) {
	c.routed()
	asked, ok := c.ledger.Enter(ctx, question)
	switch {
	case !ok:
	case !c.isOwn(question.GetTarget().GetKey()):
		c.ledger.Fail(ctx, asked, errForeign)
	default:
		c.do(ctx, c.machine.onGetCatalogue(asked, question.GetTarget()))
	}
}

func (c *connection) callTool(ctx actor.Context, question *messages.CallTool) {
	c.routed()
	asked, ok := c.ledger.Enter(ctx, question)
	switch {
	case !ok:
	case !c.isOwn(question.GetTarget().GetKey()):
		c.ledger.Fail(ctx, asked, errForeign)
	default:
		c.do(ctx, c.machine.onCallTool(asked, question))
		if open, owed := c.machine.calls[asked]; owed && !open.running {
			c.work.After(time.Until(c.deadline(question)), callOverdue{asked})
		}
	}
}

func (c *connection) cancelCall(ctx actor.Context, message *messages.CancelCall) {
	c.routed()
	if asker := ctx.Sender(); asker != nil && c.isOwn(message.GetTarget().GetKey()) {
		c.do(ctx, c.machine.onCancel(supervision.Asked{
			Address: asker.GetAddress(), Asker: asker.GetId(), ID: message.GetCallId(),
		}))
	}
}

// deadline is when a call's asker stops waiting.
func (c *connection) deadline(question *messages.CallTool) time.Time {
	if at := question.GetDeadlineUnixMs(); at > 0 {
		return time.UnixMilli(at)
	}
	return time.Now().Add(c.deps.CallTimeout)
}

func (c *connection) do(ctx actor.Context, effects []effect) {
	for _, one := range effects {
		switch e := one.(type) {
		case connect:
			c.connect(e)
		case openSlot:
			c.openSlot(ctx, e)
		case closeSlot:
			c.closeSlot(ctx, e)
		case retryAfter:
			c.work.After(connectBackoff.Wait(e.failures), retryDue{e.slot, e.epoch})
		case forwardCatalogue:
			c.ledger.Forward(ctx, e.asked, c.catalog(ctx, e.slot))
		case failCatalogue:
			c.ledger.Fail(ctx, e.asked, e.why)
		case startCall:
			c.startCall(ctx, e)
		case cancelWork:
			if cancel, running := c.cancels[e.asked]; running {
				cancel()
			}
		case answerCall:
			c.ledger.Answer(ctx, e.asked, e.done)
		case refreshCatalog:
			ctx.Send(c.catalog(ctx, e.slot), &messages.CatalogueWanted{Reason: "the server found a header that the list does not ask for"})
		}
	}
	c.tellSoon()
}

func (c *connection) slot(name string) *openedSlot {
	s, known := c.slots[name]
	if !known {
		s = &openedSlot{}
		c.slots[name] = s
	}
	return s
}

func (c *connection) connect(wanted connect) {
	dialer, kept := c.deps.Dialer, c.sessions
	async.Go(c.work, c.deps.ConnectTimeout,
		func(ctx context.Context) (struct{}, error) {
			session, err := dialer.Dial(ctx, wanted.target)
			if err == nil {
				kept.keep(wanted.slot, wanted.epoch, session)
			}
			return struct{}{}, err
		},
		func(_ struct{}, err error) any {
			return dialed{wanted.slot, wanted.epoch, connectFailure(wanted.target, err)}
		})
}

// connectFailure gives an attempt that ended with its time a sentence.
func connectFailure(target *messages.Target, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		if _, typed := errors.AsType[failure.Failure](err); !typed {
			return failure.New(failure.KindMcpServerUnreachable,
				fmt.Sprintf("the server %q could not be reached: the connection timed out", target.GetServer()), err)
		}
	}
	return err
}

func (c *connection) onDialed(ctx actor.Context, message dialed) {
	if message.err != nil {
		c.deps.Logger.Info("could not connect", zap.String("connection", c.id), zap.Error(message.err))
	}
	c.do(ctx, c.machine.onDialed(message.slot, message.epoch, message.err))
}

func (c *connection) openSlot(ctx actor.Context, e openSlot) {
	s := c.slot(e.slot)
	session := c.sessions.of(e.slot, e.epoch)
	s.holder.current.Store(&held{e.epoch, session, c.machine.slots[e.slot].target.GetCredential()})
	if lost := session.Closed(); lost != nil {
		async.Go(c.work, 0, func(ctx context.Context) (bool, error) {
			select {
			case <-lost:
			case <-ctx.Done():
			}
			return true, nil
		}, func(bool, error) any { return sessionLost{e.slot, e.epoch} })
	}
	ctx.Send(c.catalog(ctx, e.slot), &messages.SessionOpened{Epoch: e.epoch})
}

func (c *connection) closeSlot(ctx actor.Context, e closeSlot) {
	c.sessions.close(e.slot, e.epoch)
	s, known := c.slots[e.slot]
	if !known {
		return
	}
	if current := s.holder.current.Load(); current != nil && current.epoch == e.epoch {
		s.holder.current.Store(nil)
		if s.catalog != nil {
			ctx.Send(s.catalog, &messages.SessionClosed{Epoch: e.epoch, Failure: messages.FailureOf(e.why)})
		}
	}
	if e.gone {
		delete(c.slots, e.slot)
		if s.catalog != nil {
			ctx.Stop(s.catalog)
		}
	}
}

// catalog returns a slot's catalog, made where there is none.
func (c *connection) catalog(ctx actor.Context, name string) *actor.PID {
	s := c.slot(name)
	if s.catalog == nil {
		s.catalog = ctx.SpawnPrefix(c.deps.Catalog(&s.holder), "catalog")
	}
	return s.catalog
}

// catalogGaveUp forgets a catalog that failed too often; the next asker gets a
// new one.
func (c *connection) catalogGaveUp(child *actor.PID, _ any) {
	for _, s := range c.slots {
		if s.catalog == child {
			s.catalog = nil
		}
	}
}

// startCall hands a call to the session of its slot.
func (c *connection) startCall(ctx actor.Context, e startCall) {
	report, err := c.breaker.allow(c.machine.lastError)
	if err != nil {
		c.do(ctx, c.machine.onCallFinished(e.asked, e.attempt, nil, err, false))
		return
	}
	current := c.slot(e.slot).holder.current.Load()
	if current == nil {
		report(nil)
		c.do(ctx, c.machine.onCallFinished(e.asked, e.attempt, nil, errNotOpen, false))
		return
	}
	c.cancels[e.asked] = async.Go(c.work, time.Until(c.deadline(e.message)),
		func(ctx context.Context) (*messages.ToolResult, error) {
			return current.session.CallTool(ctx, e.message)
		},
		func(result *messages.ToolResult, err error) any {
			report(err)
			return callFinished{e.asked, e.attempt, result, err}
		})
}

// wasSent reports whether a call that failed may have run. Work that panicked
// may have sent its request.
func wasSent(err error) bool {
	if fault, ok := errors.AsType[interface {
		error
		Sent() bool
	}](err); ok {
		return fault.Sent()
	}
	return failure.KindOf(err) == failure.KindInternal
}

// watchIdleness sets the next look at whether the connection is used; with
// jitter, so that connections which were made together do not end together.
func (c *connection) watchIdleness() {
	c.work.After(c.deps.IdleClose+rand.N(c.deps.IdleClose/10+1), idleDue{})
}

func (c *connection) onIdleDue(ctx actor.Context) {
	if !c.machine.busy() && time.Since(c.lastUsed) >= c.deps.IdleClose {
		ctx.Send(ctx.Parent(), &messages.ConnectionIdle{Id: c.id, Received: c.received})
	}
	c.watchIdleness()
}
