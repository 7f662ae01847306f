package connection

import (
	"time"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/messages"
)

// effect is something that the machine wants done.
type effect interface{ isEffect() }

type (
	// connect dials a slot's target.
	connect struct {
		slot   string
		epoch  uint64
		target *messages.Target
	}
	// openSlot takes the dialed session into use.
	openSlot struct {
		slot  string
		epoch uint64
	}
	// closeSlot lets go of a slot's session, or of the attempt to get one.
	closeSlot struct {
		slot  string
		epoch uint64
		why   error
	}
	// dropSlot gives up a slot and its catalog.
	dropSlot struct{ slot string }
	// retryAfter has onRetry called once the slot has backed off.
	retryAfter struct {
		slot     string
		epoch    uint64
		failures int
	}
	// waitUntil has onOverdue called at a question's deadline, if it still waits.
	waitUntil struct {
		asked    supervision.Asked
		deadline time.Time
	}
	forwardCatalogue struct {
		slot  string
		asked supervision.Asked
	}
	failCatalogue struct {
		asked supervision.Asked
		why   error
	}
	startCall struct {
		asked    supervision.Asked
		attempt  int
		slot     string
		message  *messages.CallTool
		deadline time.Time
	}
	cancelWork struct{ asked supervision.Asked }
	answerCall struct {
		asked supervision.Asked
		done  *messages.CallDone
	}
	refreshCatalog struct{ slot string }
)

func (connect) isEffect()          {}
func (openSlot) isEffect()         {}
func (closeSlot) isEffect()        {}
func (dropSlot) isEffect()         {}
func (retryAfter) isEffect()       {}
func (waitUntil) isEffect()        {}
func (forwardCatalogue) isEffect() {}
func (failCatalogue) isEffect()    {}
func (startCall) isEffect()        {}
func (cancelWork) isEffect()       {}
func (answerCall) isEffect()       {}
func (refreshCatalog) isEffect()   {}
