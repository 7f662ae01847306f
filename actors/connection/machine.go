package connection

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// State is where a slot stands.
type State int

// The states of a slot; see the package's documentation.
const (
	Idle State = iota
	Connecting
	Ready
	BackingOff
	Closed
)

func (s State) String() string {
	return [...]string{"idle", "connecting", "ready", "backing-off", "closed"}[s]
}

// machine is a connection without its surroundings: messages in, effects out.
type machine struct {
	limits limits
	slots  map[string]*slot
	// epochs counts the attempts to connect, of all slots: no two have one number,
	// also when a slot was given up and made again.
	epochs uint64

	calls map[supervision.Asked]*call
	// queue is the calls of ready slots that are not running, in order. One that was
	// settled meanwhile is skipped.
	queue []supervision.Asked
	// running is how many calls are handed to a session; never more than limits.calls.
	running int
	// waiting is how many calls are not running; never more than limits.waiting.
	waiting int

	// lastError is the last failure of connecting, listing or transport; nil once
	// that has succeeded again.
	lastError error
	// dead says that the credential does not resolve to the key any more.
	dead bool
	// awaited is why the key's grant waits for a person; nil when it does not.
	awaited error
}

// limits is what a connection admits.
type limits struct {
	calls, waiting int
	// callTime is how long a call may take whose asker brought no deadline.
	callTime time.Duration
}

// slot is one session and those who wait for it.
type slot struct {
	name  string
	state State
	// epoch is the number of the slot's last attempt to connect; the result of an
	// older one is let go of.
	epoch  uint64
	target *messages.Target
	// used is when it was last asked for.
	used time.Time
	// failures counts the attempts in a row that failed, why is the last one's
	// reason.
	failures int
	why      error
	// catalogues and calls wait for the session.
	catalogues, calls []supervision.Asked
}

func newMachine(admitted limits) *machine {
	return &machine{limits: admitted, slots: map[string]*slot{}, calls: map[supervision.Asked]*call{}}
}

// slotOf returns the slot of a target's session, made where it is new.
func (m *machine) slotOf(target *messages.Target, now time.Time) *slot {
	s, known := m.slots[target.GetSession()]
	if !known {
		s = &slot{name: target.GetSession()}
		m.slots[s.name] = s
	}
	s.target, s.used = target, now
	return s
}

// onGetCatalogue hands the question to the slot's catalog, once there is a
// session.
func (m *machine) onGetCatalogue(asked supervision.Asked, question *messages.GetCatalogue, now time.Time) []effect {
	s := m.slotOf(question.GetTarget(), now)
	switch {
	case s.state == Ready:
		return []effect{forwardCatalogue{s.name, asked}}
	case s.state == BackingOff:
		return []effect{failCatalogue{asked, readable(s.why)}}
	case len(s.catalogues) >= m.limits.waiting:
		return []effect{failCatalogue{asked, failure.New(failure.KindBusy, fmt.Sprintf(
			"%d wait for the server %q already", len(s.catalogues), s.target.GetServer()), nil)}}
	}
	s.catalogues = append(s.catalogues, asked)
	effects := m.becomeConnecting(s)
	if deadline := question.GetDeadlineUnixMs(); deadline > 0 {
		effects = append(effects, waitUntil{asked, time.UnixMilli(deadline)})
	}
	return effects
}

func (m *machine) becomeConnecting(s *slot) []effect {
	if s.state != Idle {
		return nil
	}
	m.epochs++
	s.state, s.epoch = Connecting, m.epochs
	return []effect{connect{s.name, s.epoch, s.target}}
}

// onDialed takes the result of an attempt to connect.
func (m *machine) onDialed(name string, epoch uint64, err error, now time.Time) []effect {
	s, known := m.slots[name]
	if !known || s.epoch != epoch || s.state != Connecting {
		return []effect{closeSlot{slot: name, epoch: epoch}}
	}
	if err != nil {
		return m.becomeBackingOff(s, err)
	}
	return m.becomeReady(s, now)
}

func (m *machine) becomeReady(s *slot, now time.Time) []effect {
	s.state, s.failures, s.why = Ready, 0, nil
	m.lastError, m.dead = nil, false
	effects := []effect{openSlot{s.name, s.epoch}}
	for _, asked := range s.catalogues {
		effects = append(effects, forwardCatalogue{s.name, asked})
	}
	m.queue = append(m.queue, s.calls...)
	s.catalogues, s.calls = nil, nil
	return append(effects, m.admit(now)...)
}

// becomeBackingOff tells all who wait why, and everyone who asks before the next
// attempt may begin. Where the reason lies on our side, no server needs to be
// spared, and the next asker may try at once.
func (m *machine) becomeBackingOff(s *slot, why error) []effect {
	s.state, s.why = BackingOff, why
	s.failures++
	m.lastError = readable(why)
	m.dead = errors.Is(why, messages.ErrStaleKey)
	effects := m.failWaiting(s, why)
	if m.dead || isLocal(why) {
		s.state = Idle
		return effects
	}
	return append(effects, retryAfter{s.name, s.epoch, s.failures})
}

// isLocal reports whether an attempt to connect ended before it reached out.
func isLocal(why error) bool {
	switch failure.KindOf(why) {
	case failure.KindCredentialNotFound, failure.KindEgressDenied, failure.KindAccessDenied, failure.KindSpecInvalid:
		return true
	default:
		return false
	}
}

// failWaiting answers those who wait for a slot's session.
func (m *machine) failWaiting(s *slot, why error) []effect {
	var effects []effect
	for _, asked := range s.catalogues {
		effects = append(effects, failCatalogue{asked, readable(why)})
	}
	for _, asked := range s.calls {
		if open, owed := m.calls[asked]; owed && !open.running {
			effects = append(effects, m.settle(asked, answerOf(asked, open, nil, why)))
		}
	}
	s.catalogues, s.calls = nil, nil
	return effects
}

// onRetry lets the next asker have another attempt made.
func (m *machine) onRetry(name string, epoch uint64) {
	if s, known := m.slots[name]; known && s.epoch == epoch && s.state == BackingOff {
		s.state = Idle
	}
}

// onSessionLost goes back to having none: the next asker has one made.
func (m *machine) onSessionLost(name string, epoch uint64) []effect {
	s, known := m.slots[name]
	if !known || s.epoch != epoch || s.state != Ready {
		return nil
	}
	s.state = Idle
	m.lastError = failure.New(failure.KindMcpServerUnreachable,
		fmt.Sprintf("the server %q ended the session", s.target.GetServer()), nil)
	return []effect{closeSlot{slot: name, epoch: epoch, why: m.lastError}}
}

// onRelease gives up a Run's own session. The shared one stays.
func (m *machine) onRelease(name string) []effect {
	s, known := m.slots[name]
	if !known || name == "" {
		return nil
	}
	return m.becomeClosed(s)
}

func (m *machine) becomeClosed(s *slot) []effect {
	delete(m.slots, s.name)
	s.state = Closed
	why := failure.New(failure.KindCancelled, "the session was released", nil)
	effects := m.failWaiting(s, why)
	for asked, open := range m.calls {
		if open.slot == s.name {
			effects = append(effects, m.onCancel(asked)...)
		}
	}
	return append(effects, closeSlot{slot: s.name, epoch: s.epoch, why: why}, dropSlot{s.name})
}

// onUnused gives up the Runs' own sessions that nobody has used since a time:
// their Runs have ended without a word.
func (m *machine) onUnused(since time.Time) []effect {
	var effects []effect
	for _, s := range m.slots {
		if s.name != "" && s.used.Before(since) && s.state != Connecting && !m.calling(s.name) {
			effects = append(effects, m.becomeClosed(s)...)
		}
	}
	return effects
}

// onOverdue ends the waiting of a question whose deadline has passed.
func (m *machine) onOverdue(asked supervision.Asked) []effect {
	if open, owed := m.calls[asked]; owed {
		if open.running {
			return nil
		}
		return []effect{m.settle(asked, answerOf(asked, open, nil, m.overdue(errOverdueCall)))}
	}
	for _, s := range m.slots {
		if at := slices.Index(s.catalogues, asked); at >= 0 {
			s.catalogues = slices.Delete(s.catalogues, at, at+1)
			return []effect{failCatalogue{asked, m.overdue(errOverdueCatalogue)}}
		}
	}
	return nil
}

// overdue is why a question waited too long: the grant, where that waits as well.
func (m *machine) overdue(why error) error {
	if m.awaited != nil {
		return m.awaited
	}
	return why
}

var (
	errOverdueCall = failure.New(failure.KindDeadlineExceeded, "the call's deadline passed while it waited", nil)
	// errOverdueCatalogue is of the kind of a server that cannot be reached, because
	// that is what one is which does not answer in time.
	errOverdueCatalogue = failure.New(failure.KindMcpServerUnreachable, "the connection timed out", nil)
)

// busy reports whether anybody waits for anything, or has a session of their own
// that was not released.
func (m *machine) busy() bool {
	if len(m.calls) > 0 {
		return true
	}
	for _, s := range m.slots {
		if s.state == Connecting || s.name != "" {
			return true
		}
	}
	return false
}

// state is what is told of the whole connection: its shared session's state, or
// the first of the others that is ready.
func (m *machine) state() State {
	if s, known := m.slots[""]; known {
		return s.state
	}
	state := Idle
	for _, s := range m.slots {
		if s.state == Ready || state == Idle {
			state = s.state
		}
	}
	return state
}
