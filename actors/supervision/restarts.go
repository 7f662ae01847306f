package supervision

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
)

const (
	// window is the time in which failures count as being in a row.
	window = time.Minute
	// tolerated is after how many failures in a row a child is given up.
	tolerated = 8
)

var patience = Backoff{Base: 50 * time.Millisecond, Cap: 10 * time.Second}

// Restarts is the supervision of an actor's children. The actor embeds it,
// calls [Restarts.Supervise] when it starts, and hands it [RestartDue] messages.
type Restarts struct {
	logger *zap.Logger
	// gaveUp is called, in the actor's own context, for a child that is being
	// stopped for good; its Terminated follows.
	gaveUp func(child *actor.PID, reason any)
	// after sends a message to the actor later; the actor's alarms end with it.
	after func(wait time.Duration, message any) (stop func())
}

var _ actor.SupervisorStrategy = (*Restarts)(nil)

// RestartDue is the actor's own reminder that a child's backoff is over.
type RestartDue struct{ Child *actor.PID }

// Supervise sets the supervision up for one incarnation of the actor.
func (r *Restarts) Supervise(logger *zap.Logger, after func(time.Duration, any) func(), gaveUp func(child *actor.PID, reason any)) {
	r.logger, r.after, r.gaveUp = logger, after, gaveUp
}

// HandleFailure implements [actor.SupervisorStrategy].
func (r *Restarts) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, _ any) {
	if stats.NumberOfFailures(window) == 0 {
		stats.Reset()
	}
	stats.Fail()
	failures := stats.FailureCount()
	if failures > tolerated {
		r.logger.Error("actor given up", zap.String("actor", child.GetId()), zap.Int("failures", failures), zap.Any("reason", reason))
		supervisor.StopChildren(child)
		r.gaveUp(child, reason)
		return
	}
	wait := patience.Wait(failures)
	r.logger.Warn("actor failed and will be restarted", zap.String("actor", child.GetId()),
		zap.Int("failures", failures), zap.Duration("after", wait), zap.Any("reason", reason), zap.Stack("stack"))
	r.after(wait, RestartDue{Child: child})
}

// Restart restarts a child whose backoff is over, if it is still the same child:
// one that was stopped meanwhile, and another that has its name, are left alone.
func (r *Restarts) Restart(ctx actor.Context, due RestartDue) {
	for _, child := range ctx.Children() {
		if child == due.Child {
			ctx.(actor.Supervisor).RestartChildren(child)
			return
		}
	}
}

// Guardian is the supervision of actors that have no parent: they are restarted
// with patience, however often they fail.
func Guardian(logger *zap.Logger) actor.SupervisorStrategy { return guardian{logger} }

type guardian struct{ logger *zap.Logger }

func (g guardian) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, _ any) {
	if stats.NumberOfFailures(window) == 0 {
		stats.Reset()
	}
	stats.Fail()
	wait := patience.Wait(stats.FailureCount())
	g.logger.Error("top actor failed and will be restarted", zap.String("actor", child.GetId()),
		zap.Duration("after", wait), zap.Any("reason", reason))
	time.AfterFunc(wait, func() { supervisor.RestartChildren(child) })
}
