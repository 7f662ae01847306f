package catalog

import (
	"time"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/messages"
)

// effect is something that the machine wants done.
type effect interface{ isEffect() }

type (
	answerSnapshot struct {
		asked    supervision.Asked
		snapshot *messages.Snapshot
	}
	answerFailure struct {
		asked supervision.Asked
		why   error
	}
	// fetch begins a fetch; etag is the list that is known, and wanted says that
	// somebody waits for it.
	fetch struct {
		number uint64
		etag   string
		wanted bool
	}
	// abandon calls off the fetch in flight.
	abandon struct{}
	// fetchAfter has onDue called later.
	fetchAfter   struct{ wait time.Duration }
	publish      struct{ snapshot *messages.Snapshot }
	reportFailed struct{ why error }
	// sweepAfter has onSweep called when the list's time is nearly over.
	sweepAfter struct {
		number uint64
		lives  time.Duration
	}
	// openWatch opens the watcher's stream, after a backoff where it broke before.
	openWatch struct {
		epoch  uint64
		breaks int
	}
	closeWatch struct{}
)

func (answerSnapshot) isEffect() {}
func (answerFailure) isEffect()  {}
func (fetch) isEffect()          {}
func (abandon) isEffect()        {}
func (fetchAfter) isEffect()     {}
func (publish) isEffect()        {}
func (reportFailed) isEffect()   {}
func (sweepAfter) isEffect()     {}
func (openWatch) isEffect()      {}
func (closeWatch) isEffect()     {}
