package run

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/offer"
	"github.com/psych-systems/psych-go/spec"
)

// effect is something that the machine wants done; the actor does it.
type effect interface{ isEffect() }

type (
	// appendEntries writes to the journal.
	appendEntries struct {
		expected int64
		entries  []journal.Entry
	}
	// published tells those who follow the Run of a record in the journal.
	published struct{ record journal.Record }
	// armDeadline sets the Run's alarm.
	armDeadline struct{ at time.Time }
	// findTarget makes a server's key, which resolves its credential.
	findTarget struct {
		purpose purpose
		server  spec.Server
	}
	// getCatalogue asks the pool.
	getCatalogue struct {
		requestID string
		target    *messages.Target
	}
	// askModel sends the turn's request.
	askModel struct {
		asked   int
		request model.Request
	}
	// prepareCall checks a call's arguments against the tool's schema and makes its
	// server's key; server is nil for a host tool.
	prepareCall struct {
		purpose   purpose
		tool      offer.Tool
		arguments json.RawMessage
		server    *spec.Server
	}
	// sendCall asks the pool.
	sendCall struct {
		callID     string
		target     *messages.Target
		tool       string
		arguments  json.RawMessage
		repeatable bool
	}
	// runHostTool runs a tool of the embedding program.
	runHostTool struct {
		callID, name string
		arguments    json.RawMessage
	}
	// cancelCall tells the pool that nobody waits any more.
	cancelCall struct {
		callID string
		target *messages.Target
	}
	// stopWork cancels the Run's own work: model, host tools, preparations.
	stopWork struct{}
	// giveUp stops without an end in the journal, because the journal refused.
	giveUp struct{ err error }
	// stop stops the actor.
	stop struct{}
)

func (appendEntries) isEffect() {}
func (published) isEffect()     {}
func (armDeadline) isEffect()   {}
func (findTarget) isEffect()    {}
func (getCatalogue) isEffect()  {}
func (askModel) isEffect()      {}
func (prepareCall) isEffect()   {}
func (sendCall) isEffect()      {}
func (runHostTool) isEffect()   {}
func (cancelCall) isEffect()    {}
func (stopWork) isEffect()      {}
func (giveUp) isEffect()        {}
func (stop) isEffect()          {}

// purpose says what a target is wanted for.
type purpose struct {
	// turn and index name a server in a turn's resolution.
	turn, index int
	// callID names a call; "" for a resolution.
	callID string
}

func forCatalogue(turn, index int) purpose { return purpose{turn: turn, index: index} }

func forCall(callID string) purpose { return purpose{callID: callID} }

func (p purpose) String() string {
	if p.callID != "" {
		return "call " + p.callID
	}
	return fmt.Sprintf("turn %d server %d", p.turn, p.index)
}
