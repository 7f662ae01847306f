package connection

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/psych-systems/psych-go/messages"
)

// statusDelay gathers the changes of a burst of calls into one message.
const statusDelay = 20 * time.Millisecond

// status is what the pool was told.
type status struct {
	due      bool
	snapshot *messages.Snapshot
}

func (c *connection) onPublished(snapshot *messages.Snapshot) {
	c.told.snapshot = snapshot
	c.machine.lastError = nil
	c.tellSoon()
}

// tellSoon has the pool told of the connection's state, once for many changes.
func (c *connection) tellSoon() {
	if !c.told.due {
		c.told.due = true
		c.work.After(statusDelay, statusDue{})
	}
}

func (c *connection) tell(ctx actor.Context) {
	c.told.due = false
	snapshot := c.told.snapshot
	message := &messages.ConnectionStatus{
		Id: c.id, Key: c.own, State: c.machine.state().String(), Breaker: c.breaker.state(),
		ToolCount: int64(len(snapshot.GetTools())), Etag: snapshot.GetEtag(),
		ProtocolVersion:        snapshot.GetProtocolVersion(),
		CatalogueVersion:       snapshot.GetVersion(),
		CatalogueFetchedUnixMs: snapshot.GetFetchedUnixMs(),
		CatalogueTtlMs:         snapshot.GetTtlMs(),
		CallsInFlight:          int64(c.machine.running),
		CallsWaiting:           int64(c.machine.waiting),
	}
	if c.machine.lastError != nil {
		message.LastError = c.machine.lastError.Error()
	}
	for _, s := range c.machine.slots {
		message.Server = s.target.GetServer()
		if version := c.slot(s.name).holder.ProtocolVersion(); version != "" {
			message.ProtocolVersion = version
		}
	}
	ctx.Send(ctx.Parent(), message)
}
