package tokenrefresh

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/messages"
)

// workers is a flight, and one with a person.
const workers = 2

// backoff is between two attempts to get a token.
var backoff = supervision.Backoff{Base: 200 * time.Millisecond, Cap: time.Minute}

// Props makes the owner of a grant. The props serve for one actor.
func Props(deps Deps) *actor.Props {
	deps = deps.withDefaults()
	return supervision.Answering(deps.Logger, func(ledger *supervision.Ledger) supervision.Answerer {
		return &tokenrefresh{deps: deps, ledger: ledger}
	}, actor.WithReceiverMiddleware(deps.Middleware...))
}

// tokenrefresh is the actor.
type tokenrefresh struct {
	deps    Deps
	ledger  *supervision.Ledger
	machine *machine
	work    *async.Group
	// overdue takes back the alarms of those who wait.
	overdue map[supervision.Asked]func()
	// ahead takes back the alarm before the present token's end.
	ahead func()
}

// What the actor tells itself.
type (
	landed struct {
		number uint64
		token  Token
		err    error
	}
	flightDue    struct{ number uint64 }
	calm         struct{ number uint64 }
	aheadDue     struct{ version uint64 }
	askerOverdue struct{ asked supervision.Asked }
)

// Receive implements [actor.Actor].
func (t *tokenrefresh) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		t.start(ctx)
	case *messages.NeedToken:
		t.needToken(ctx, message)
	case *async.Done:
		if own, current := t.work.Take(message); current {
			t.receiveOwn(ctx, own)
		}
	}
}

func (t *tokenrefresh) receiveOwn(ctx actor.Context, own any) {
	switch message := own.(type) {
	case landed:
		t.do(ctx, t.machine.onLanded(message.number, message.token, message.err, time.Now()))
	case flightDue:
		t.do(ctx, t.machine.onFlightDue(message.number))
	case calm:
		t.do(ctx, t.machine.onCalm(message.number))
	case aheadDue:
		t.do(ctx, t.machine.onAhead(message.version))
	case askerOverdue:
		t.do(ctx, t.machine.onOverdue(message.asked))
	}
}

func (t *tokenrefresh) start(ctx actor.Context) {
	t.machine = newMachine(rules{
		server: t.deps.Server, interactive: t.deps.Interactive, reachable: t.deps.Reachable,
		scopes: t.deps.Scopes, accepted: t.deps.Keeper.Accepted, used: t.deps.Keeper.Used,
	})
	t.work = async.NewGroup(ctx, workers)
	t.overdue = map[supervision.Asked]func(){}
	t.ahead = func() {}
	t.do(ctx, t.machine.onStart())
}

// End implements [supervision.Answerer].
func (t *tokenrefresh) End(actor.Context) {
	if t.work != nil {
		t.work.Close()
	}
}

func (t *tokenrefresh) needToken(ctx actor.Context, question *messages.NeedToken) {
	asked := supervision.NameOf(ctx.Sender(), question)
	if deadline := question.GetDeadlineUnixMs(); deadline > 0 {
		t.overdue[asked] = t.work.After(time.Until(time.UnixMilli(deadline)), askerOverdue{asked})
	}
	t.do(ctx, t.machine.onNeed(asked, need{
		have:      question.GetHave(),
		refusal:   Refusal{Status: int(question.GetStatus()), Challenge: question.GetChallenge()},
		operation: question.GetOperation(), background: question.GetBackground(),
	}, time.Now()))
}

func (t *tokenrefresh) do(ctx actor.Context, effects []effect) {
	for _, one := range effects {
		switch e := one.(type) {
		case fly:
			t.fly(e.flight)
		case flyAfter:
			t.work.After(backoff.Wait(e.failures), flightDue{e.number})
		case calmAfter:
			t.work.After(backoff.Wait(e.failures), calm{e.number})
		case refreshAt:
			t.ahead()
			// With jitter, so that tokens which came together are not refreshed together.
			wait := time.Until(e.at)
			t.ahead = t.work.After(max(wait, 0)+rand.N(max(e.spread, 1)), aheadDue{e.version})
		case answerReady:
			t.answered(e.asked)
			t.ledger.Answer(ctx, e.asked, &messages.TokenReady{RequestId: e.asked.ID, Version: e.version})
		case answerFailure:
			t.answered(e.asked)
			t.ledger.Fail(ctx, e.asked, e.why)
		}
	}
	ctx.Send(ctx.Parent(), t.machine.status())
}

func (t *tokenrefresh) answered(asked supervision.Asked) {
	if stop, set := t.overdue[asked]; set {
		stop()
		delete(t.overdue, asked)
	}
}

// fly is one attempt to get a token, away from the actor.
func (t *tokenrefresh) fly(f flight) {
	keeper, limit := t.deps.Keeper, t.deps.FlightTimeout
	if f.what == ask {
		limit = t.deps.ConsentTimeout
	}
	logger, server := t.deps.Logger, t.deps.Server
	async.Go(t.work, limit, func(ctx context.Context) (Token, error) {
		switch f.what {
		case restore:
			return keeper.Restore(ctx)
		case renew:
			return keeper.Renew(ctx, f.have, f.refusal)
		default:
			return keeper.Obtain(ctx, f.scopes, f.refusal, f.what == ask)
		}
	}, func(token Token, err error) any {
		if err != nil {
			logger.Info("no token was obtained", zap.String("server", server), zap.String("flight", f.what.String()), zap.Error(err))
		}
		return landed{f.number, token, err}
	})
}
