package supervision

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/messages"
)

// Asked names a question: ids are unique for one asker only.
type Asked struct {
	Address, Asker, ID string
}

// NameOf is the name of an asker's question.
func NameOf(asker *actor.PID, question messages.Question) Asked {
	return Asked{Address: asker.GetAddress(), Asker: asker.GetId(), ID: question.QuestionID()}
}

// Ledger is the questions that an actor owes an answer. Each is answered once.
type Ledger struct{ owed map[Asked]debt }

type debt struct {
	asker    *actor.PID
	question messages.Question
}

// enter notes a question that the actor is about to receive. One that its asker
// has asked already, and still waits for, gets no second answer.
func (l *Ledger) enter(asker *actor.PID, question messages.Question) {
	asked := NameOf(asker, question)
	if _, twice := l.owed[asked]; !twice {
		l.owed[asked] = debt{asker, question}
	}
}

// Answer sends the one answer to a question; one that is not owed, because it
// has been answered, is not answered again.
func (l *Ledger) Answer(ctx actor.Context, asked Asked, answer any) {
	if owed, ok := l.owed[asked]; ok {
		delete(l.owed, asked)
		ctx.Send(owed.asker, answer)
	}
}

// Forward hands a question on to another actor, which then owes the answer.
func (l *Ledger) Forward(ctx actor.Context, asked Asked, to *actor.PID) {
	if owed, ok := l.owed[asked]; ok {
		delete(l.owed, asked)
		ctx.RequestWithCustomSender(to, owed.question, owed.asker)
	}
}

// Fail answers a question by its failure.
func (l *Ledger) Fail(ctx actor.Context, asked Asked, why error) {
	if owed, ok := l.owed[asked]; ok {
		l.Answer(ctx, asked, owed.question.Failed(messages.FailureOf(why)))
	}
}

// Settle answers all that is owed: by the answer that settled returns for a
// question, or by the question's failure where it returns nil.
func (l *Ledger) Settle(ctx actor.Context, why error, settled func(Asked) any) {
	for asked := range l.owed {
		if answer := settled(asked); answer != nil {
			l.Answer(ctx, asked, answer)
			continue
		}
		l.Fail(ctx, asked, why)
	}
}
