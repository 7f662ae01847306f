package tokenrefresh

import (
	"time"

	"github.com/psych-systems/psych-go/actors/supervision"
)

// effect is something that the machine wants done.
type effect interface{ isEffect() }

type (
	// fly begins a flight.
	fly struct{ flight flight }
	// flyAfter has onFlightDue called once the flight has backed off.
	flyAfter struct {
		number   uint64
		failures int
	}
	// calmAfter has onCalm called once askers may have another flight begun.
	calmAfter struct {
		number   uint64
		failures int
	}
	// refreshAt has onAhead called before a token ends, within spread after a time.
	refreshAt struct {
		version uint64
		at      time.Time
		spread  time.Duration
	}
	answerReady struct {
		asked   supervision.Asked
		version uint64
	}
	answerFailure struct {
		asked supervision.Asked
		why   error
	}
)

func (fly) isEffect()           {}
func (flyAfter) isEffect()      {}
func (calmAfter) isEffect()     {}
func (refreshAt) isEffect()     {}
func (answerReady) isEffect()   {}
func (answerFailure) isEffect() {}
