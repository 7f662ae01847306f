package supervision

import (
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// Answerer is an actor that can end at any moment.
type Answerer interface {
	actor.Actor
	// End lets go of all that the incarnation holds, and settles what it owes where
	// the answer is not simply a failure. It is called before the actor stops, before
	// it is restarted, and at once when Receive has panicked. The incarnation then
	// receives nothing more, and End may be called once more.
	End(ctx actor.Context)
}

// Answering makes props whose actor leaves no question unanswered. The producer
// is given the ledger, which the actor's incarnations share. Each question is in
// the ledger before the actor receives it; what is left there when the actor
// panics or stops, what its mailbox holds when it has stopped, and what comes
// later, is answered by its failure. Without it the library drops all of these in
// silence. A question that nobody waits for is dropped.
//
// The logger gets the stack of a panic. Receiver middleware among the options is
// inside of this one. The props serve for one actor.
func Answering(logger *zap.Logger, producer func(ledger *Ledger) Answerer, options ...actor.PropsOption) *actor.Props {
	d := &desk{
		logger:  logger,
		ledger:  &Ledger{owed: map[Asked]debt{}},
		waiting: map[*actor.MessageEnvelope]messages.Question{},
	}
	own := []actor.PropsOption{actor.WithMailbox(actor.Unbounded(d)), actor.WithReceiverMiddleware(d.receive)}
	return actor.PropsFromProducer(func() actor.Actor { return producer(d.ledger) }, append(own, options...)...)
}

// desk is where the questions of one actor lie, from when they are posted until
// they are answered. It outlives the actor's incarnations.
type desk struct {
	logger *zap.Logger
	ledger *Ledger
	// ended says that the present incarnation receives nothing more.
	ended bool

	mu sync.Mutex
	// waiting is what was posted and not received.
	waiting map[*actor.MessageEnvelope]messages.Question
	// root is set when the actor has stopped; what is posted from then on is
	// answered at once.
	root *actor.RootContext
}

var _ actor.MailboxMiddleware = (*desk)(nil)

var errEnded = failure.New(failure.KindMcpServerUnreachable, "the connection was closed", nil)

// MailboxStarted implements [actor.MailboxMiddleware].
func (*desk) MailboxStarted() {}

// MailboxEmpty implements [actor.MailboxMiddleware].
func (*desk) MailboxEmpty() {}

// MessageReceived implements [actor.MailboxMiddleware]. The library does not call
// it for a message that made the actor panic.
func (*desk) MessageReceived(any) {}

// MessagePosted implements [actor.MailboxMiddleware].
func (d *desk) MessagePosted(message any) {
	envelope, ok := message.(*actor.MessageEnvelope)
	if !ok {
		return
	}
	question := questionIn(envelope)
	if question == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.root != nil {
		fail(d.root, envelope, question)
		return
	}
	d.waiting[envelope] = question
}

func questionIn(envelope *actor.MessageEnvelope) messages.Question {
	if envelope.Sender == nil {
		return nil
	}
	question, _ := envelope.Message.(messages.Question)
	return question
}

func fail(root *actor.RootContext, envelope *actor.MessageEnvelope, question messages.Question) {
	root.Send(envelope.Sender, question.Failed(messages.FailureOf(errEnded)))
}

// receive is the middleware around the actor's Receive.
func (d *desk) receive(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(receiver actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		ctx := receiver.(actor.Context)
		switch envelope.Message.(type) {
		case *actor.Started:
			d.ended = false
		case *actor.Restarting, *actor.Stopping:
			d.end(ctx)
			return
		case *actor.Stopped:
			d.close(ctx.ActorSystem().Root)
			return
		}
		question := questionIn(envelope)
		if question != nil {
			d.mu.Lock()
			delete(d.waiting, envelope)
			d.mu.Unlock()
		}
		switch {
		case d.ended && question != nil:
			fail(ctx.ActorSystem().Root, envelope, question)
			return
		case d.ended:
			return
		case question != nil:
			d.ledger.enter(envelope.Sender, question)
		default:
			if _, unasked := envelope.Message.(messages.Question); unasked {
				return
			}
		}
		defer d.afterPanic(ctx)
		next(receiver, envelope)
	}
}

// afterPanic answers what the actor owes at once, and not only when its supervisor
// has it restarted; then it lets the supervisor act.
func (d *desk) afterPanic(ctx actor.Context) {
	reason := recover()
	if reason == nil {
		return
	}
	d.logger.Error("actor panicked", zap.String("actor", ctx.Self().GetId()),
		zap.String("reason", fmt.Sprint(reason)), zap.Stack("stack"))
	d.end(ctx)
	panic(reason)
}

// end has the incarnation let go, and answers what it left. A panic in a stopping
// actor would have the library restart it, so none gets out of here.
func (d *desk) end(ctx actor.Context) {
	d.ended = true
	defer d.ledger.Settle(ctx, errEnded, func(Asked) any { return nil })
	defer func() {
		if reason := recover(); reason != nil {
			d.logger.Error("actor panicked while it ended", zap.String("actor", ctx.Self().GetId()),
				zap.String("reason", fmt.Sprint(reason)), zap.Stack("stack"))
		}
	}()
	ctx.Actor().(Answerer).End(ctx)
}

// close answers what the mailbox still holds: the library drops it.
func (d *desk) close(root *actor.RootContext) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.root = root
	for envelope, question := range d.waiting {
		fail(root, envelope, question)
	}
	clear(d.waiting)
}
