package run

import (
	"time"

	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/spec"
)

// Admit has the supervisor start a Run.
type Admit struct {
	RunID    string
	Version  spec.Version
	Scope    messages.Scope
	Input    string
	Follower Follower
}

// Cancel ends a Run as aborted.
type Cancel struct{ RunID string }

// CancelAll ends every Run as aborted.
type CancelAll struct{}

// The results of a Run's own work.
type (
	loadDone struct {
		records []journal.Record
		err     error
	}
	appendDone struct {
		records []journal.Record
		err     error
	}
	targetDone struct {
		purpose purpose
		target  *messages.Target
		err     error
	}
	modelDone struct {
		asked    int
		response model.Response
		err      error
		took     time.Duration
	}
	hostToolDone struct {
		callID string
		result HostResult
		err    error
	}
)

// The alarms of a Run.
type (
	deadlinePassed struct{}
	// catalogueOverdue says that a connection did not even report a failure.
	catalogueOverdue struct{ requestID string }
)
