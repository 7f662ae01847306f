package connection

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/messages"
)

// statusDelay gathers the changes of a burst of calls into one message.
const statusDelay = 20 * time.Millisecond

// status is what the pool is told besides the machine's state.
type status struct {
	// due says that it will be told soon.
	due bool
	// server is the alias by which the connection was last asked for.
	server string
	// catalogue is the newest list of the session that was last told of, without its
	// tools.
	catalogue *messages.Snapshot
	tools     int
	// grant is what the owner of the grant told last; nil without one.
	grant *messages.GrantStatus
}

// onPublished takes a catalog's newest snapshot. Where there is a shared session,
// the Runs' own do not speak for the connection.
func (c *connection) onPublished(ctx actor.Context, snapshot *messages.Snapshot) {
	c.machine.lastError = nil
	if shared, known := c.slots[""]; !known || ctx.Sender().GetId() == shared.catalog.GetId() || c.status.catalogue == nil {
		c.status.tools = len(snapshot.GetTools())
		c.status.catalogue = &messages.Snapshot{
			Version: snapshot.GetVersion(), Etag: snapshot.GetEtag(), TtlMs: snapshot.GetTtlMs(),
			FetchedUnixMs: snapshot.GetFetchedUnixMs(), ProtocolVersion: snapshot.GetProtocolVersion(),
		}
	}
	c.tellSoon()
}

// onFailed takes why a catalog's fetch failed.
func (c *connection) onFailed(ctx actor.Context, why error) {
	c.machine.lastError = why
	for _, s := range c.slots {
		if s.holder.dead.CompareAndSwap(true, false) {
			c.machine.dead = true
		}
	}
	c.do(ctx, nil)
}

// tellSoon has the pool told of the connection's state, once for many changes.
func (c *connection) tellSoon() {
	if !c.status.due {
		c.status.due = true
		c.work.After(statusDelay, statusDue{})
	}
}

func (c *connection) tell(ctx actor.Context) {
	c.status.due = false
	catalogue := c.status.catalogue
	message := &messages.ConnectionStatus{
		Id: c.id, Key: c.own, Server: c.status.server,
		State: c.machine.state().String(), Breaker: c.breaker.state(),
		ProtocolVersion: catalogue.GetProtocolVersion(), ToolCount: int64(c.status.tools),
		Etag: catalogue.GetEtag(), CatalogueVersion: catalogue.GetVersion(),
		CatalogueFetchedUnixMs: catalogue.GetFetchedUnixMs(), CatalogueTtlMs: catalogue.GetTtlMs(),
		CallsInFlight: int64(c.machine.running), CallsWaiting: int64(c.machine.waiting), Grant: c.status.grant,
	}
	if c.machine.lastError != nil {
		message.LastError = c.machine.lastError.Error()
	}
	for _, s := range c.slots {
		if version := s.holder.ProtocolVersion(); version != "" {
			message.ProtocolVersion = version
		}
	}
	ctx.Send(ctx.Parent(), message)
}
