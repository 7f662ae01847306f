package pool

import (
	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/messages"
)

// effect is something that the machine wants done.
type effect interface{ isEffect() }

type (
	spawn struct{ key messages.PoolKey }
	stop  struct{ id string }
	route struct {
		id string
		held
	}
	refuse struct {
		asked supervision.Asked
		why   error
	}
	answer struct {
		asked  supervision.Asked
		answer any
	}
)

func (spawn) isEffect()  {}
func (stop) isEffect()   {}
func (route) isEffect()  {}
func (refuse) isEffect() {}
func (answer) isEffect() {}
