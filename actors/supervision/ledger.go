package supervision

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/messages"
)

// Asked names a question: ids are unique for one asker only.
type Asked struct {
	Address, Asker, ID string
}

// Ledger is the questions that an actor owes an answer. Each is answered once.
type Ledger struct{ owed map[Asked]debt }

type debt struct {
	asker    *actor.PID
	question messages.Question
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{owed: map[Asked]debt{}} }

// Enter notes the question that the actor is receiving and returns its name. A
// question without an asker, or one that its asker has asked already and still
// waits for, is not entered (ok is false) and gets no answer of its own.
func (l *Ledger) Enter(ctx actor.Context, question messages.Question) (asked Asked, ok bool) {
	asker := ctx.Sender()
	if asker == nil {
		return Asked{}, false
	}
	asked = NameOf(asker, question)
	if _, twice := l.owed[asked]; twice {
		return asked, false
	}
	l.owed[asked] = debt{asker, question}
	return asked, true
}

// NameOf is the name of an asker's question.
func NameOf(asker *actor.PID, question messages.Question) Asked {
	return Asked{Address: asker.GetAddress(), Asker: asker.GetId(), ID: question.QuestionID()}
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
	for asked, owed := range l.owed {
		var answer any
		if settled != nil {
			answer = settled(asked)
		}
		if answer == nil {
			answer = owed.question.Failed(messages.FailureOf(why))
		}
		l.Answer(ctx, asked, answer)
	}
}

// Owed is how many questions wait for their answers.
func (l *Ledger) Owed() int { return len(l.owed) }
