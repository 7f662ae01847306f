package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// connectBackoff is between two attempts to connect.
var connectBackoff = supervision.Backoff{Base: 200 * time.Millisecond, Cap: 30 * time.Second}

// do has effects happen, and those that follow from them.
func (c *connection) do(ctx actor.Context, effects []effect) {
	for len(effects) > 0 {
		next := effects[0]
		effects = append(effects[1:], c.apply(ctx, next)...)
	}
	if c.machine.dead {
		c.offerClose(ctx)
	}
	c.tellSoon()
}

func (c *connection) apply(ctx actor.Context, one effect) (more []effect) {
	switch e := one.(type) {
	case connect:
		c.connect(e)
	case openSlot:
		c.openSlot(ctx, e)
	case closeSlot:
		c.closeSlot(ctx, e)
	case dropSlot:
		c.dropSlot(ctx, e)
	case retryAfter:
		c.work.After(connectBackoff.Wait(e.failures), retryDue{e.slot, e.epoch})
	case waitUntil:
		c.overdue[e.asked] = c.work.After(time.Until(e.deadline), askerOverdue{e.asked})
	case forwardCatalogue:
		c.waited(e.asked)
		c.ledger.Forward(ctx, e.asked, c.catalog(ctx, e.slot))
	case failCatalogue:
		c.waited(e.asked)
		c.ledger.Fail(ctx, e.asked, e.why)
	case startCall:
		c.waited(e.asked)
		return c.startCall(e)
	case cancelWork:
		if cancel, running := c.cancels[e.asked]; running {
			cancel()
		}
	case answerCall:
		c.waited(e.asked)
		c.ledger.Answer(ctx, e.asked, e.done)
	case refreshCatalog:
		ctx.Send(c.catalog(ctx, e.slot), &messages.CatalogueWanted{Reason: "the server found a header that the list does not ask for"})
	}
	return nil
}

// waited takes back the alarm of a question that waits no more.
func (c *connection) waited(asked supervision.Asked) {
	if stop, set := c.overdue[asked]; set {
		stop()
		delete(c.overdue, asked)
	}
}

func (c *connection) slot(name string) *openedSlot {
	s, known := c.slots[name]
	if !known {
		s = &openedSlot{leave: func() {}}
		s.holder.breaker, s.holder.tokens, s.holder.listLimit = c.breaker, c.authorizer, c.deps.ConnectTimeout
		c.slots[name] = s
	}
	return s
}

func (c *connection) connect(wanted connect) {
	dialer, kept, logger, id := c.deps.Dialer, c.sessions, c.deps.Logger, c.id
	tokens, limit := c.authorizer, c.deps.ConnectTimeout
	c.slot(wanted.slot).leave = async.Go(c.work, 0,
		func(ctx context.Context) (struct{}, error) {
			session, err := authorized(ctx, tokens, operation{name: "connect"}, limit, func(ctx context.Context) (Session, error) {
				return dialer.Dial(ctx, wanted.target)
			})
			if err != nil {
				logger.Info("could not connect", zap.String("connection", id), zap.Error(err))
				return struct{}{}, err
			}
			kept.keep(wanted.epoch, session)
			return struct{}{}, nil
		},
		func(_ struct{}, err error) any {
			return dialed{wanted.slot, wanted.epoch, connectFailure(wanted.target, err)}
		})
}

// connectFailure gives an attempt that ended with its time a sentence.
func connectFailure(target *messages.Target, err error) error {
	if _, typed := errors.AsType[failure.Failure](err); !typed && errors.Is(err, context.DeadlineExceeded) {
		return failure.New(failure.KindMcpServerUnreachable,
			fmt.Sprintf("the server %q could not be reached: the connection timed out", target.GetServer()), err)
	}
	return err
}

func (c *connection) openSlot(ctx actor.Context, e openSlot) {
	s := c.slot(e.slot)
	session := c.sessions.of(e.epoch)
	s.holder.current.Store(&held{e.epoch, session})
	if lost := session.Closed(); lost != nil {
		s.leave = async.Go(c.work, 0, func(ctx context.Context) (struct{}, error) {
			select {
			case <-lost:
			case <-ctx.Done():
			}
			return struct{}{}, nil
		}, func(struct{}, error) any { return sessionLost(e) })
	}
	ctx.Send(c.catalog(ctx, e.slot), &messages.SessionOpened{Epoch: e.epoch})
}

func (c *connection) closeSlot(ctx actor.Context, e closeSlot) {
	c.sessions.close(e.epoch)
	s, known := c.slots[e.slot]
	if !known {
		return
	}
	current := s.holder.current.Load()
	if current == nil || current.epoch != e.epoch {
		return
	}
	s.leave()
	s.holder.current.Store(nil)
	if s.catalog != nil {
		ctx.Send(s.catalog, &messages.SessionClosed{Epoch: e.epoch, Failure: messages.FailureOf(e.why)})
	}
}

func (c *connection) dropSlot(ctx actor.Context, e dropSlot) {
	s, known := c.slots[e.slot]
	if !known {
		return
	}
	delete(c.slots, e.slot)
	s.leave()
	if s.catalog != nil {
		c.Stop(ctx, s.catalog)
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

// startCall hands a call to the session of its slot, if the breaker lets it pass.
func (c *connection) startCall(e startCall) (more []effect) {
	var current *held
	if s, known := c.slots[e.slot]; known {
		current = s.holder.current.Load()
	}
	if current == nil || current.lost() {
		return c.machine.onNoSession(e.asked, e.attempt)
	}
	report, err := c.breaker.allow()
	if err != nil {
		return c.machine.onCallFinished(e.asked, e.attempt, nil, err, false, time.Now())
	}
	tokens := c.authorizer
	c.cancels[e.asked] = async.Go(c.work, max(time.Until(e.deadline), 1),
		func(ctx context.Context) (*messages.ToolResult, error) {
			return authorized(ctx, tokens, operation{name: "tools/call " + e.message.GetTool()}, 0, func(ctx context.Context) (*messages.ToolResult, error) {
				return current.session.CallTool(ctx, e.message)
			})
		},
		func(result *messages.ToolResult, err error) any {
			report(err)
			return callFinished{e.asked, e.attempt, result, err}
		})
	return nil
}
