package supervision

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// Answering makes props whose actor leaves no question in its mailbox
// unanswered: what it had not received when it stopped, and what comes later, is
// answered by its failure. Without it the library drops both in silence. The
// props serve for one actor.
func Answering(producer actor.Producer, options ...actor.PropsOption) *actor.Props {
	in := &inbox{waiting: map[*actor.MessageEnvelope]messages.Question{}}
	return actor.PropsFromProducer(producer, append(options,
		actor.WithMailbox(actor.Unbounded(in)),
		actor.WithReceiverMiddleware(in.watch))...)
}

// inbox knows the questions that were posted to an actor and not received.
type inbox struct {
	mu      sync.Mutex
	waiting map[*actor.MessageEnvelope]messages.Question
	// root is set when the actor has stopped; what is posted from then on is
	// answered at once.
	root *actor.RootContext
}

var _ actor.MailboxMiddleware = (*inbox)(nil)

var errStopped = failure.New(failure.KindMcpServerUnreachable, "the connection was closed", nil)

// MailboxStarted implements [actor.MailboxMiddleware].
func (*inbox) MailboxStarted() {}

// MailboxEmpty implements [actor.MailboxMiddleware].
func (*inbox) MailboxEmpty() {}

// MessagePosted implements [actor.MailboxMiddleware].
func (in *inbox) MessagePosted(message any) {
	envelope, question := questionIn(message)
	if question == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.root != nil {
		fail(in.root, envelope, question)
		return
	}
	in.waiting[envelope] = question
}

// MessageReceived implements [actor.MailboxMiddleware].
func (in *inbox) MessageReceived(message any) {
	if envelope, question := questionIn(message); question != nil {
		in.mu.Lock()
		delete(in.waiting, envelope)
		in.mu.Unlock()
	}
}

// watch answers what is left once the actor has stopped.
func (in *inbox) watch(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		next(ctx, envelope)
		if _, stopped := envelope.Message.(*actor.Stopped); stopped {
			in.end(ctx.ActorSystem().Root)
		}
	}
}

func (in *inbox) end(root *actor.RootContext) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.root = root
	for envelope, question := range in.waiting {
		fail(root, envelope, question)
	}
	clear(in.waiting)
}

func questionIn(message any) (*actor.MessageEnvelope, messages.Question) {
	envelope, ok := message.(*actor.MessageEnvelope)
	if !ok || envelope.Sender == nil {
		return nil, nil
	}
	question, _ := envelope.Message.(messages.Question)
	return envelope, question
}

func fail(root *actor.RootContext, envelope *actor.MessageEnvelope, question messages.Question) {
	root.Send(envelope.Sender, question.Failed(messages.FailureOf(errStopped)))
}
