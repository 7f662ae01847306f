package run

import (
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/journal"
)

// Follower is told what becomes of one Run, on the actor's goroutine; it must
// not block.
type Follower interface {
	// Recorded is told of each record once it is in the journal, in order. After
	// a restart it is told of earlier ones again.
	Recorded(record journal.Record)
	// Said is told each piece of the model's text as it arrives, on the goroutine
	// of the model call.
	Said(piece string)
	// Ended is told once that nothing more will be recorded here: nil when the
	// end is in the journal, else why not.
	Ended(err error)
}

// lastWord is a Run's follower as its supervisor tells it: the end is told once,
// by whoever knows it first, and a follower that panics costs its own Run only.
type lastWord struct {
	Follower
	once   sync.Once
	logger *zap.Logger
}

// Ended implements [Follower].
func (l *lastWord) Ended(err error) {
	l.once.Do(func() { l.protect(func() { l.Follower.Ended(err) }) })
}

// catchUp tells the records that the Run's actor did not live to tell.
func (l *lastWord) catchUp(records []journal.Record) {
	for _, record := range records {
		l.protect(func() { l.Follower.Recorded(record) })
	}
}

func (l *lastWord) protect(tell func()) {
	defer func() {
		if reason := recover(); reason != nil {
			l.logger.Error("a follower panicked", zap.String("reason", fmt.Sprint(reason)), zap.Stack("stack"))
		}
	}()
	tell()
}
