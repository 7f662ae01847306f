package supervision

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
)

const (
	// window is the time within which failures are counted.
	window = time.Minute
	// tolerated is how many failures within the window a child may have; with one
	// more it is given up.
	tolerated = 8
)

var patience = Backoff{Base: 50 * time.Millisecond, Cap: 10 * time.Second}

// Restarts is the supervision of an actor's children. The actor embeds it,
// calls [Restarts.Supervise] when it starts, hands it [RestartDue] messages, and
// stops a child through [Restarts.Stop] only.
type Restarts struct {
	logger *zap.Logger
	// gaveUp is called, in the actor's own context, for a child that is being
	// stopped for good; its Terminated follows.
	gaveUp func(child *actor.PID, reason any)
	// after sends a message to the actor later; the actor's alarms end with it.
	after func(wait time.Duration, message any) (stop func())
	// stopping is the children that were told to stop and have not ended. The
	// library would revive one that is told to restart then.
	stopping map[*actor.PID]struct{}
}

var _ actor.SupervisorStrategy = (*Restarts)(nil)

// RestartDue is the actor's own reminder that a child's backoff is over.
type RestartDue struct{ Child *actor.PID }

// Supervise sets the supervision up for one incarnation of the actor.
func (r *Restarts) Supervise(logger *zap.Logger, after func(time.Duration, any) func(), gaveUp func(child *actor.PID, reason any)) {
	r.logger, r.after, r.gaveUp = logger, after, gaveUp
	r.stopping = map[*actor.PID]struct{}{}
}

// Stop stops a child, also one that waits to be restarted.
func (r *Restarts) Stop(ctx actor.Context, child *actor.PID) {
	r.stopping[child] = struct{}{}
	ctx.Stop(child)
}

// Ended forgets a child that was stopped: its Terminated has come.
func (r *Restarts) Ended(child *actor.PID) { delete(r.stopping, child) }

// HandleFailure implements [actor.SupervisorStrategy].
func (r *Restarts) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, _ any) {
	failures := count(stats)
	failed := []zap.Field{
		zap.String("actor", child.GetId()), zap.Int("failures", failures), zap.String("reason", fmt.Sprint(reason)),
	}
	if failures > tolerated {
		r.logger.Error("actor given up", failed...)
		supervisor.StopChildren(child)
		r.gaveUp(child, reason)
		return
	}
	wait := patience.Wait(failures)
	r.logger.Warn("actor failed and will be restarted", append(failed, zap.Duration("after", wait))...)
	r.after(wait, RestartDue{Child: child})
}

// count enters a failure and returns how many there were within the window.
func count(stats *actor.RestartStatistics) int {
	if stats.NumberOfFailures(window) == 0 {
		stats.Reset()
	}
	stats.Fail()
	return stats.NumberOfFailures(window)
}

// Restart restarts a child whose backoff is over, if it is still the same child:
// one that was stopped meanwhile, and another that has its name, are left alone.
func (r *Restarts) Restart(ctx actor.Context, due RestartDue) {
	if _, stopping := r.stopping[due.Child]; stopping {
		return
	}
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
	wait := patience.Wait(count(stats))
	g.logger.Error("top actor failed and will be restarted", zap.String("actor", child.GetId()),
		zap.Duration("after", wait), zap.String("reason", fmt.Sprint(reason)))
	time.AfterFunc(wait, func() { supervisor.RestartChildren(child) })
}
