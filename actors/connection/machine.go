package connection

import (
	"errors"
	"fmt"
	"maps"
	"slices"

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
	maxCalls, maxWaiting int
	slots                map[string]*slot
	calls                map[supervision.Asked]*call
	// running is how many calls are handed to a session; never more than maxCalls.
	running int
	// queue is the calls that wait for one of those to end, in order.
	queue []supervision.Asked
	// waiting is how many calls are not running; never more than maxWaiting.
	waiting int
	// lastError is the last failure of connecting, listing or transport; nil once
	// that has succeeded again.
	lastError error
}

// slot is one session and those who wait for it.
type slot struct {
	name  string
	state State
	// epoch counts the slot's attempts to connect; the result of an older one is
	// dropped.
	epoch  uint64
	target *messages.Target
	// failures counts the attempts in a row that failed, why is the last one's
	// reason.
	failures int
	why      error
	// catalogues and calls wait for the session.
	catalogues []supervision.Asked
	calls      []supervision.Asked
}

// call is a call that is owed its answer.
type call struct {
	slot    string
	message *messages.CallTool
	running bool
	// attempts counts how often it was handed to a session: at most twice.
	attempts  int
	cancelled bool
}

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
	// closeSlot lets go of a slot's session; gone gives up its catalog too.
	closeSlot struct {
		slot  string
		epoch uint64
		why   error
		gone  bool
	}
	// retryAfter ends a slot's backing off later.
	retryAfter struct {
		slot     string
		epoch    uint64
		failures int
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
		asked   supervision.Asked
		attempt int
		slot    string
		message *messages.CallTool
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
func (retryAfter) isEffect()       {}
func (forwardCatalogue) isEffect() {}
func (failCatalogue) isEffect()    {}
func (startCall) isEffect()        {}
func (cancelWork) isEffect()       {}
func (answerCall) isEffect()       {}
func (refreshCatalog) isEffect()   {}

func newMachine(maxCalls, maxWaiting int) *machine {
	return &machine{
		maxCalls: maxCalls, maxWaiting: maxWaiting,
		slots: map[string]*slot{}, calls: map[supervision.Asked]*call{},
	}
}

// slotOf returns the slot of a target's session, made where it is new.
func (m *machine) slotOf(target *messages.Target) *slot {
	s, known := m.slots[target.GetSession()]
	if !known {
		s = &slot{name: target.GetSession()}
		m.slots[s.name] = s
	}
	s.target = target
	return s
}

// onGetCatalogue hands the question to the slot's catalog, once there is a
// session.
func (m *machine) onGetCatalogue(asked supervision.Asked, target *messages.Target) []effect {
	s := m.slotOf(target)
	switch s.state {
	case Ready:
		return []effect{forwardCatalogue{s.name, asked}}
	case BackingOff:
		return []effect{failCatalogue{asked, s.why}}
	default:
		s.catalogues = append(s.catalogues, asked)
		return m.becomeConnecting(s)
	}
}

// onCallTool admits a call, has it wait, or turns it away.
func (m *machine) onCallTool(asked supervision.Asked, message *messages.CallTool) []effect {
	s := m.slotOf(message.GetTarget())
	if s.state == BackingOff {
		return []effect{answerCall{asked, unsent(asked, s.why)}}
	}
	if m.waiting >= m.maxWaiting && (s.state != Ready || m.running >= m.maxCalls) {
		return []effect{answerCall{asked, unsent(asked, failure.New(failure.KindBusy, fmt.Sprintf(
			"the server %q has %d calls running and %d waiting, and takes no more now", s.target.GetServer(), m.running, m.waiting), nil))}}
	}
	m.calls[asked] = &call{slot: s.name, message: message}
	m.waiting++
	if s.state != Ready {
		s.calls = append(s.calls, asked)
		return m.becomeConnecting(s)
	}
	m.queue = append(m.queue, asked)
	return m.admit()
}

// admit starts the calls that wait, while there is room.
func (m *machine) admit() []effect {
	var effects []effect
	for len(m.queue) > 0 && m.running < m.maxCalls {
		asked := m.queue[0]
		m.queue = m.queue[1:]
		if open, owed := m.calls[asked]; owed && !open.running {
			m.waiting--
			m.running++
			effects = append(effects, m.becomeRunning(asked, open))
		}
	}
	return effects
}

func (m *machine) becomeRunning(asked supervision.Asked, open *call) effect {
	open.running = true
	open.attempts++
	return startCall{asked, open.attempts, open.slot, open.message}
}

func (m *machine) becomeConnecting(s *slot) []effect {
	if s.state != Idle {
		return nil
	}
	s.state = Connecting
	s.epoch++
	return []effect{connect{s.name, s.epoch, s.target}}
}

// onDialed takes the result of an attempt to connect.
func (m *machine) onDialed(name string, epoch uint64, err error) []effect {
	s, known := m.slots[name]
	if !known || s.epoch != epoch || s.state != Connecting {
		return []effect{closeSlot{slot: name, epoch: epoch}}
	}
	if err != nil {
		return m.becomeBackingOff(s, err)
	}
	s.state, s.failures, s.why, m.lastError = Ready, 0, nil, nil
	effects := []effect{openSlot{name, epoch}}
	for _, asked := range s.catalogues {
		effects = append(effects, forwardCatalogue{name, asked})
	}
	m.queue = append(m.queue, s.calls...)
	s.catalogues, s.calls = nil, nil
	return append(effects, m.admit()...)
}

// becomeBackingOff tells all who wait why, and everyone who asks before the next
// attempt may begin. What is wrong on our side is not waited for.
func (m *machine) becomeBackingOff(s *slot, why error) []effect {
	m.lastError = why
	s.state, s.why = BackingOff, why
	s.failures++
	effects := m.failWaiting(s, why)
	switch failure.KindOf(why) {
	case failure.KindMcpServerUnreachable, failure.KindMcpProtocolError, failure.KindMcpResponseTooLarge:
		return append(effects, retryAfter{s.name, s.epoch, s.failures})
	default:
		s.state = Idle
		return effects
	}
}

func (m *machine) failWaiting(s *slot, why error) []effect {
	var effects []effect
	for _, asked := range s.catalogues {
		effects = append(effects, failCatalogue{asked, why})
	}
	for _, asked := range s.calls {
		if _, owed := m.calls[asked]; owed {
			effects = append(effects, m.settle(asked, answerOf(asked, m.calls[asked].message, nil, why, false)))
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
	return []effect{closeSlot{slot: name, epoch: epoch, why: failure.New(failure.KindMcpServerUnreachable,
		fmt.Sprintf("the server %q ended the session", s.target.GetServer()), nil)}}
}

// onRelease gives up a Run's own session. The shared one stays.
func (m *machine) onRelease(name string) []effect {
	s, known := m.slots[name]
	if !known || name == "" {
		return nil
	}
	delete(m.slots, name)
	s.state = Closed
	why := failure.New(failure.KindCancelled, "the session was released", nil)
	effects := m.failWaiting(s, why)
	for _, asked := range slices.Collect(maps.Keys(m.calls)) {
		if m.calls[asked].slot == name {
			effects = append(effects, m.onCancel(asked)...)
		}
	}
	return append(effects, closeSlot{slot: name, epoch: s.epoch, why: why, gone: true})
}

// onCallFinished takes the result of a call's attempt.
func (m *machine) onCallFinished(asked supervision.Asked, attempt int, result *messages.ToolResult, err error, sent bool) []effect {
	open, owed := m.calls[asked]
	if !owed || !open.running || open.attempts != attempt {
		return nil
	}
	m.noteTransport(err)
	if repeats(open, err, sent) {
		return []effect{m.becomeRunning(asked, open)}
	}
	if open.cancelled && err != nil && !sent {
		err = failure.New(failure.KindCancelled, "the call was cancelled before it was sent", err)
	}
	effects := []effect{m.settle(asked, answerOf(asked, open.message, result, err, sent))}
	if failure.KindOf(err) == failure.KindMcpHeaderMismatchError {
		effects = append(effects, refreshCatalog{open.slot})
	}
	return append(effects, m.admit()...)
}

// noteTransport keeps the last transport failure for those who ask why.
func (m *machine) noteTransport(err error) {
	switch {
	case err == nil:
		m.lastError = nil
	case failure.KindOf(err) == failure.KindMcpServerUnreachable:
		m.lastError = err
	}
}

// repeats decides whether a call that was cut off is issued once more: only
// where its asker said that this is harmless, and while somebody waits for it.
func repeats(open *call, err error, sent bool) bool {
	return err != nil && sent && open.message.GetRepeatable() && open.attempts == 1 && !open.cancelled &&
		failure.KindOf(err) == failure.KindMcpServerUnreachable
}

// onCancel calls off a call: at once while it waits, and when its session lets
// go of it while it runs.
func (m *machine) onCancel(asked supervision.Asked) []effect {
	open, owed := m.calls[asked]
	switch {
	case !owed:
		return nil
	case open.running:
		open.cancelled = true
		return []effect{cancelWork{asked}}
	default:
		return []effect{m.settle(asked, unsent(asked, failure.New(failure.KindCancelled,
			"the call was cancelled before it was sent", nil)))}
	}
}

// onOverdue ends the waiting of a call whose deadline has passed.
func (m *machine) onOverdue(asked supervision.Asked) []effect {
	if open, owed := m.calls[asked]; !owed || open.running {
		return nil
	}
	return []effect{m.settle(asked, unsent(asked, failure.New(failure.KindDeadlineExceeded,
		"the call's deadline passed while it waited", nil)))}
}

// settle takes a call off the books with its answer.
func (m *machine) settle(asked supervision.Asked, done *messages.CallDone) effect {
	if open := m.calls[asked]; open.running {
		m.running--
	} else {
		m.waiting--
	}
	delete(m.calls, asked)
	return answerCall{asked, done}
}

// busy reports whether anybody waits for anything.
func (m *machine) busy() bool {
	if len(m.calls) > 0 {
		return true
	}
	for _, s := range m.slots {
		if s.state == Connecting {
			return true
		}
	}
	return false
}

// state is what is told of the whole connection: its shared session's state, or
// the best of the others.
func (m *machine) state() State {
	if s, known := m.slots[""]; known {
		return s.state
	}
	for _, s := range m.slots {
		if s.state == Ready {
			return Ready
		}
	}
	return Idle
}

func unsent(asked supervision.Asked, why error) *messages.CallDone {
	return &messages.CallDone{CallId: asked.ID, Failure: messages.FailureOf(why)}
}

// answerOf is the one answer of a call. A call that was sent and not answered
// may have run: that is told as such, whatever cut it off.
func answerOf(asked supervision.Asked, message *messages.CallTool, result *messages.ToolResult, err error, sent bool) *messages.CallDone {
	if err == nil {
		return &messages.CallDone{CallId: asked.ID, Result: result, Sent: true}
	}
	if errors.Is(err, messages.ErrStaleKey) {
		return &messages.CallDone{CallId: asked.ID, StaleKey: true}
	}
	switch failure.KindOf(err) {
	case failure.KindMcpServerUnreachable, failure.KindDeadlineExceeded, failure.KindCancelled, failure.KindInternal:
		if sent {
			err = failure.New(failure.KindOutcomeUnknown, fmt.Sprintf(
				"the call of %s was sent and not answered: %v; it may have taken effect, verify before repeating it",
				message.GetTool(), err), err)
		}
	}
	return &messages.CallDone{CallId: asked.ID, Failure: messages.FailureOf(err), Sent: sent}
}
