package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/actors/async"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
)

const (
	// workers is how much of a Run's own work runs at once.
	workers = 64
	// storeTimeout bounds one read or append.
	storeTimeout = 30 * time.Second
	// prepareTimeout bounds the resolution of a credential.
	prepareTimeout = 30 * time.Second
	// catalogueTimeout is how long a Run waits for a server's tools, and
	// catalogueGrace how much longer for the connection's word that there are none.
	catalogueTimeout = time.Minute
	catalogueGrace   = 5 * time.Second
)

// run is the actor.
type run struct {
	deps  Deps
	admit Admit
	// sessions are shared with the supervisor, which gives them up.
	sessions *sessions
	machine  *machine
	work     *async.Group
	// journal is the reads and appends, which no tool that hangs may hold up.
	journal *async.Group
	schemas *schemas
	// stopActing ends the model call, the host tools and the preparations. They
	// end with the Run's end, before the actor does.
	stopActing []func()
	deadline   time.Time
	// overdue takes back the alarms of catalogues that have come.
	overdue map[string]func()
}

func newRunActor(deps Deps, admit Admit, own *sessions) *run {
	return &run{deps: deps, admit: admit, sessions: own}
}

// Receive implements [actor.Actor].
func (r *run) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		r.start(ctx)
	case *actor.Restarting, *actor.Stopping:
		r.end()
	case *messages.Catalogue:
		r.onCatalogue(ctx, message.GetRequestId(), message.GetSnapshot(), message.GetFailure().Err())
	case *messages.CallDone:
		r.do(ctx, r.machine.onCallDone(message, r.deps.Clock()))
	case Cancel:
		r.do(ctx, r.machine.onCancel())
	case *async.Done:
		own, current := r.work.Take(message)
		if !current {
			own, current = r.journal.Take(message)
		}
		if current {
			r.receiveOwn(ctx, own)
		}
	}
}

func (r *run) receiveOwn(ctx actor.Context, own any) {
	switch message := own.(type) {
	case loadDone:
		if message.err != nil {
			r.giveUp(ctx, message.err)
			return
		}
		r.do(ctx, r.machine.onLoaded(message.records))
	case appendDone:
		if message.err != nil {
			r.do(ctx, r.machine.onAppendFailed(message.err))
			return
		}
		r.do(ctx, r.machine.onAppended(message.records))
	case targetDone:
		r.onTarget(ctx, message)
	case modelDone:
		r.do(ctx, r.machine.onModelDone(message.asked, message.response, message.err, message.took))
	case hostToolDone:
		r.do(ctx, r.machine.onHostToolDone(message.callID, message.result, message.err, r.deps.Clock()))
	case deadlinePassed:
		r.do(ctx, r.machine.onDeadline())
	case catalogueOverdue:
		r.onCatalogue(ctx, message.requestID, nil, errOverdue)
	}
}

var errOverdue = failure.New(failure.KindMcpServerUnreachable, "the connection timed out", nil)

func (r *run) start(ctx actor.Context) {
	definition := r.admit.Version.Spec()
	r.machine = newMachine(r.admit.RunID, definition, journal.RunStarted{
		Spec: definition.Name, Version: r.admit.Version.Hash(), Scope: r.admit.Scope, Input: r.admit.Input,
	}, r.deps.rules(r.admit.Scope, definition))
	r.work = async.NewGroup(ctx, workers)
	r.journal = async.NewGroup(ctx, 1)
	r.schemas = newSchemas()
	r.overdue = map[string]func(){}
	store, id := r.deps.Store, r.admit.RunID
	async.Go(r.journal, storeTimeout,
		func(ctx context.Context) ([]journal.Record, error) { return store.Read(ctx, id, 0) },
		func(records []journal.Record, err error) any { return loadDone{records, err} })
}

// end lets go of all work; there is none where the start did not come that far.
func (r *run) end() {
	for _, group := range []*async.Group{r.work, r.journal} {
		if group != nil {
			group.Close()
		}
	}
}

func (r *run) onTarget(ctx actor.Context, done targetDone) {
	if done.purpose.callID != "" {
		r.do(ctx, r.machine.onPrepared(done.purpose.callID, done.target, done.err))
		return
	}
	r.do(ctx, r.machine.onCatalogueTarget(done.purpose.turn, done.purpose.index, done.target, done.err))
}

func (r *run) onCatalogue(ctx actor.Context, requestID string, snapshot *messages.Snapshot, err error) {
	if stop, waits := r.overdue[requestID]; waits {
		stop()
		delete(r.overdue, requestID)
	}
	r.do(ctx, r.machine.onCatalogue(requestID, snapshot, err))
}

func (r *run) do(ctx actor.Context, effects []effect) {
	for _, one := range effects {
		switch e := one.(type) {
		case appendEntries:
			r.append(e)
		case published:
			r.admit.Follower.Recorded(e.record)
		case armDeadline:
			r.deadline = e.at
			r.work.After(e.at.Sub(r.deps.Clock()), deadlinePassed{})
		case findTarget:
			r.findTarget(e)
		case getCatalogue:
			r.getCatalogue(ctx, e)
		case askModel:
			r.askModel(e)
		case prepareCall:
			r.prepareCall(e)
		case sendCall:
			r.sessions.note(e.target)
			ctx.Request(r.deps.Pool, &messages.CallTool{
				CallId: e.callID, Target: e.target, Tool: e.tool, Arguments: e.arguments,
				DeadlineUnixMs: r.callDeadline().UnixMilli(), Repeatable: e.repeatable,
			})
		case runHostTool:
			r.runHostTool(e)
		case cancelCall:
			ctx.Request(r.deps.Pool, &messages.CancelCall{CallId: e.callID, Target: e.target})
		case stopWork:
			for _, stop := range r.stopActing {
				stop()
			}
			r.stopActing = nil
		case giveUp:
			r.giveUp(ctx, e.err)
		case stop:
			r.admit.Follower.Ended(nil)
			ctx.Stop(ctx.Self())
		}
	}
}

// callDeadline is when a call that leaves now is no longer waited for.
func (r *run) callDeadline() time.Time {
	if limit := r.deps.CallTimeout; limit > 0 {
		if at := r.deps.Clock().Add(limit); at.Before(r.deadline) {
			return at
		}
	}
	return r.deadline
}

// giveUp stops without an end in the journal: another owner has the Run, or the
// journal cannot be used.
func (r *run) giveUp(ctx actor.Context, err error) {
	r.deps.Logger.Error("a run was given up", zap.String("run", r.admit.RunID), zap.Error(err))
	if _, typed := errors.AsType[failure.Failure](err); !typed {
		err = failure.New(failure.KindInternal, "the journal of the run cannot be used", err)
	}
	r.admit.Follower.Ended(err)
	ctx.Stop(ctx.Self())
}

func (r *run) append(e appendEntries) {
	now := r.deps.Clock()
	records := make([]journal.Record, len(e.entries))
	for i, entry := range e.entries {
		records[i] = journal.Record{RunID: r.admit.RunID, Seq: e.expected + int64(i) + 1, At: now, Entry: entry}
	}
	store, id := r.deps.Store, r.admit.RunID
	async.Go(r.journal, storeTimeout,
		func(ctx context.Context) ([]journal.Record, error) {
			return records, store.Append(ctx, id, e.expected, records)
		},
		func(records []journal.Record, err error) any { return appendDone{records, err} })
}

// acts notes work that ends with the Run's end.
func (r *run) acts(cancel func()) { r.stopActing = append(r.stopActing, cancel) }

func (r *run) findTarget(e findTarget) {
	targets, scope, id := r.deps.Targets, r.admit.Scope, r.admit.RunID
	r.acts(async.Go(r.work, prepareTimeout,
		func(ctx context.Context) (*messages.Target, error) { return targets.Target(ctx, scope, e.server, id) },
		func(target *messages.Target, err error) any { return targetDone{e.purpose, target, err} }))
}

func (r *run) getCatalogue(ctx actor.Context, e getCatalogue) {
	deadline := r.deps.Clock().Add(catalogueTimeout)
	r.overdue[e.requestID] = r.work.After(catalogueTimeout+catalogueGrace, catalogueOverdue{e.requestID})
	r.sessions.note(e.target)
	ctx.Request(r.deps.Pool, &messages.GetCatalogue{
		RequestId: e.requestID, Target: e.target, DeadlineUnixMs: deadline.UnixMilli(),
	})
}

func (r *run) askModel(e askModel) {
	port, said, clock := r.deps.Model, r.admit.Follower.Said, r.deps.Clock
	began := clock()
	r.acts(async.Go(r.work, 0,
		func(ctx context.Context) (model.Response, error) { return port.Generate(ctx, e.request, said) },
		func(response model.Response, err error) any {
			return modelDone{e.asked, response, modelFailure(err), clock().Sub(began)}
		}))
}

// modelFailure gives a port's own errors a kind.
func modelFailure(err error) error {
	if err == nil {
		return nil
	}
	if _, typed := errors.AsType[failure.Failure](err); typed {
		return err
	}
	return failure.New(failure.KindModelError, fmt.Sprintf("the model failed: %v", err), err)
}

func (r *run) prepareCall(e prepareCall) {
	targets, schemas, scope, id := r.deps.Targets, r.schemas, r.admit.Scope, r.admit.RunID
	r.acts(async.Go(r.work, prepareTimeout,
		func(ctx context.Context) (*messages.Target, error) {
			if err := schemas.check(e.tool, e.arguments); err != nil || e.server == nil {
				return nil, err
			}
			return targets.Target(ctx, scope, *e.server, id)
		},
		func(target *messages.Target, err error) any { return targetDone{e.purpose, target, err} }))
}

func (r *run) runHostTool(e runHostTool) {
	hosts, scope := r.deps.Hosts, r.admit.Scope
	r.acts(async.Go(r.work, 0,
		func(ctx context.Context) (HostResult, error) { return hosts.Call(ctx, scope, e.name, e.arguments) },
		func(result HostResult, err error) any { return hostToolDone{e.callID, result, err} }))
}
