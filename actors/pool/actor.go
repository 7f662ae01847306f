package pool

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/messages"
)

// Props makes the pool. The props serve for one actor.
func Props(deps Deps) *actor.Props {
	if deps.MaxConnections <= 0 {
		deps.MaxConnections = defaultMaxConnections
	}
	return supervision.Answering(deps.Logger, func(ledger *supervision.Ledger) supervision.Answerer {
		return &pool{deps: deps, ledger: ledger}
	}, actor.WithGuardian(supervision.Guardian(deps.Logger)), actor.WithReceiverMiddleware(deps.Middleware...))
}

// pool is the actor.
type pool struct {
	supervision.Restarts

	deps    Deps
	ledger  *supervision.Ledger
	machine *machine
	work    *async.Group
	// children finds connections by the digest of their keys, names the reverse.
	children map[string]*actor.PID
	names    map[*actor.PID]string
}

// Receive implements [actor.Actor].
func (p *pool) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		p.start(ctx)
	case *messages.GetCatalogue:
		p.question(ctx, message, message.GetTarget())
	case *messages.CallTool:
		p.question(ctx, message, message.GetTarget())
	case *messages.CancelCall:
		p.notice(ctx, message, message.GetTarget())
	case *messages.ReleaseSession:
		p.notice(ctx, message, message.GetTarget())
	case *messages.ListConnections:
		p.ledger.Answer(ctx, supervision.NameOf(ctx.Sender(), message), &messages.Connections{
			RequestId: message.GetRequestId(), Connections: p.machine.list(message.GetTenant()),
		})
	case *messages.Disconnect:
		p.do(ctx, p.machine.onDisconnect(supervision.NameOf(ctx.Sender(), message), message))
	case *messages.ConnectionStatus:
		p.machine.onStatus(message)
	case *messages.ConnectionIdle:
		p.do(ctx, p.machine.onIdle(message.GetId(), message.GetReceived()))
	case *actor.Terminated:
		p.onTerminated(ctx, message.GetWho())
	case *async.Done:
		if own, current := p.work.Take(message); current {
			p.restart(ctx, own.(supervision.RestartDue))
		}
	}
}

func (p *pool) start(ctx actor.Context) {
	p.machine = newMachine(p.deps.MaxConnections)
	p.work = async.NewGroup(ctx, 1)
	p.children = map[string]*actor.PID{}
	p.names = map[*actor.PID]string{}
	p.Supervise(p.deps.Logger, p.work.After, p.gaveUp)
}

// End implements [supervision.Answerer]. The library stops the connections.
func (p *pool) End(actor.Context) {
	if p.work != nil {
		p.work.Close()
	}
}

// question routes a message whose asker waits.
func (p *pool) question(ctx actor.Context, message messages.Question, target *messages.Target) {
	asked := supervision.NameOf(ctx.Sender(), message)
	key, err := messages.PoolKeyOf(target.GetKey())
	if err != nil {
		p.ledger.Fail(ctx, asked, err)
		return
	}
	p.do(ctx, p.machine.onRouted(key, held{asked, true, message, target}, time.Now()))
}

// notice routes a message that nobody waits for.
func (p *pool) notice(ctx actor.Context, message any, target *messages.Target) {
	key, err := messages.PoolKeyOf(target.GetKey())
	if err != nil {
		p.deps.Logger.Warn("a message with a bad key was dropped", zap.Error(err))
		return
	}
	asked := supervision.Asked{Address: ctx.Sender().GetAddress(), Asker: ctx.Sender().GetId()}
	p.do(ctx, p.machine.onRouted(key, held{asked, false, message, target}, time.Now()))
}

func (p *pool) do(ctx actor.Context, effects []effect) {
	for _, one := range effects {
		switch e := one.(type) {
		case spawn:
			p.spawn(ctx, e.key)
		case stop:
			p.Stop(ctx, p.children[e.id])
		case route:
			p.route(ctx, e)
		case refuse:
			p.ledger.Fail(ctx, e.asked, e.why)
		case answer:
			p.ledger.Answer(ctx, e.asked, e.answer)
		}
	}
}

func (p *pool) spawn(ctx actor.Context, key messages.PoolKey) {
	id := key.Digest()
	child, err := ctx.SpawnNamed(p.deps.Connection(key), "connection/"+id)
	if err != nil {
		// The name is free: the pool makes no second connection of a key before the
		// first has ended.
		panic(fmt.Errorf("connection %s could not be made: %w", id, err))
	}
	p.children[id], p.names[child] = child, id
}

func (p *pool) route(ctx actor.Context, e route) {
	to := p.children[e.id]
	if e.question {
		p.ledger.Forward(ctx, e.asked, to)
		return
	}
	ctx.RequestWithCustomSender(to, e.message, actor.NewPID(e.asked.Address, e.asked.Asker))
}

func (p *pool) gaveUp(child *actor.PID, _ any) { p.machine.onGaveUp(p.names[child]) }

func (p *pool) restart(ctx actor.Context, due supervision.RestartDue) {
	p.machine.onRestarted(p.names[due.Child])
	p.Restart(ctx, due)
}

func (p *pool) onTerminated(ctx actor.Context, who *actor.PID) {
	p.Ended(who)
	if id, known := p.names[who]; known {
		delete(p.names, who)
		delete(p.children, id)
		p.do(ctx, p.machine.onEnded(id, time.Now()))
	}
}
