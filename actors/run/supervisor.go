package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
)

// SupervisorProps makes the actor that starts and supervises all Runs of a
// process: [Admit], [Cancel] and [CancelAll].
func SupervisorProps(deps Deps) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &runs{deps: deps} },
		actor.WithGuardian(supervision.Guardian(deps.Logger)))
}

// runs is the supervisor.
type runs struct {
	supervision.Restarts

	deps    Deps
	work    *async.Group
	running map[string]*admitted
	names   map[*actor.PID]string
}

// admitted is a Run that has not ended.
type admitted struct {
	Admit
	pid      *actor.PID
	lastWord *lastWord
	sessions *sessions
	store    journal.Store
	// gaveUp says that its actor failed too often; the supervisor then writes the
	// Run's end itself.
	gaveUp bool
}

// closingDone says that the end of a Run that was given up has been written, or
// could not be.
type closingDone struct {
	runID   string
	records []journal.Record
	err     error
}

// Receive implements [actor.Actor].
func (r *runs) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		r.work = async.NewGroup(ctx, workers)
		r.running = map[string]*admitted{}
		r.names = map[*actor.PID]string{}
		r.Supervise(r.deps.Logger, r.work.After, r.onGaveUp)
	case *actor.Restarting, *actor.Stopping:
		r.end()
	case Admit:
		r.admit(ctx, message)
	case Cancel:
		if found, running := r.running[message.RunID]; running {
			ctx.Send(found.pid, message)
		}
	case CancelAll:
		for id, found := range r.running {
			ctx.Send(found.pid, Cancel{RunID: id})
		}
	case *actor.Terminated:
		r.onTerminated(ctx, message.GetWho())
	case *async.Done:
		if own, current := r.work.Take(message); current {
			r.receiveOwn(ctx, own)
		}
	}
}

func (r *runs) receiveOwn(ctx actor.Context, own any) {
	switch message := own.(type) {
	case supervision.RestartDue:
		r.Restart(ctx, message)
	case closingDone:
		r.onClosed(message)
	}
}

func (r *runs) admit(ctx actor.Context, admit Admit) {
	last := &lastWord{Follower: admit.Follower, logger: r.deps.Logger}
	admit.Follower = last
	own, deps := &sessions{}, r.deps
	deps.Store = newInTurn(r.deps.Store)
	pid, err := ctx.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return newRunActor(deps, admit, own) },
		actor.WithReceiverMiddleware(r.deps.Middleware...)), "run/"+admit.RunID)
	if err != nil {
		admit.Follower.Ended(failure.New(failure.KindInternal, "a run of this id is running already", err))
		return
	}
	r.running[admit.RunID] = &admitted{Admit: admit, pid: pid, lastWord: last, sessions: own, store: deps.Store}
	r.names[pid] = admit.RunID
}

// end tells the followers of Runs that end without their own word.
func (r *runs) end() {
	r.work.Close()
	for _, found := range r.running {
		found.Follower.Ended(errStopped)
	}
}

var errStopped = failure.New(failure.KindCancelled, "the runtime stopped before the run had ended", nil)

func (r *runs) onGaveUp(child *actor.PID, reason any) {
	if found, running := r.running[r.names[child]]; running {
		found.gaveUp = true
		r.deps.Logger.Error("a run failed too often", zap.String("run", found.RunID), zap.Any("reason", reason))
	}
}

// onTerminated takes note that a Run's actor has ended, however that came: nobody
// uses the Run's own sessions any more.
func (r *runs) onTerminated(ctx actor.Context, who *actor.PID) {
	id := r.names[who]
	delete(r.names, who)
	found, running := r.running[id]
	if !running {
		return
	}
	for _, target := range found.sessions.all() {
		ctx.Request(r.deps.Pool, &messages.ReleaseSession{Target: target})
	}
	switch {
	case found.gaveUp:
		r.closeJournal(found)
	default:
		delete(r.running, id)
		found.Follower.Ended(errStopped)
	}
}

// closeJournal writes the end of a Run whose actor failed too often, so that the
// Run has one and each of its calls has its outcome.
func (r *runs) closeJournal(found *admitted) {
	admit, store, now := found.Admit, found.store, r.deps.Clock()
	async.Go(r.work, storeTimeout,
		func(ctx context.Context) ([]journal.Record, error) {
			before, err := store.Read(ctx, admit.RunID, 0)
			if err != nil {
				return nil, err
			}
			state, err := journal.Fold(slices.Values(before))
			if err != nil || state.Finished != nil || state.Started == nil {
				return before, err
			}
			end := journal.RunFinished{State: journal.StateFailed, Error: &journal.Error{
				Kind: failure.KindInternal, Message: "the run failed too often and was given up",
			}}
			var closing []journal.Record
			for i, entry := range journal.Settle(state, end) {
				closing = append(closing, journal.Record{RunID: admit.RunID, Seq: state.Seq + int64(i) + 1, At: now, Entry: entry})
			}
			return append(before, closing...), store.Append(ctx, admit.RunID, state.Seq, closing)
		},
		func(records []journal.Record, err error) any { return closingDone{admit.RunID, records, err} })
}

func (r *runs) onClosed(done closingDone) {
	found, running := r.running[done.runID]
	if !running {
		return
	}
	delete(r.running, done.runID)
	if done.err != nil {
		found.Follower.Ended(failure.New(failure.KindInternal,
			fmt.Sprintf("the run failed too often, and its end could not be recorded: %v", done.err), done.err))
		return
	}
	found.lastWord.catchUp(done.records)
	found.Follower.Ended(nil)
}
