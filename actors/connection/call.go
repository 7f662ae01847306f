package connection

import (
	"errors"
	"fmt"
	"time"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// call is a call that is owed its answer.
type call struct {
	slot     string
	message  *messages.CallTool
	deadline time.Time
	running  bool
	// attempts counts how often it was handed to a session: at most twice.
	attempts int
	// sent says that an attempt was written, so the tool may have run, whatever
	// became of a later one.
	sent      bool
	cancelled bool
}

// onCallTool admits a call, has it wait, or turns it away.
func (m *machine) onCallTool(asked supervision.Asked, message *messages.CallTool, now time.Time) []effect {
	if _, twice := m.calls[asked]; twice {
		return nil
	}
	s := m.slotOf(message.GetTarget(), now)
	deadline := now.Add(m.limits.callTime)
	if at := message.GetDeadlineUnixMs(); at > 0 {
		deadline = time.UnixMilli(at)
	}
	switch {
	case !now.Before(deadline):
		return []effect{answerCall{asked, failed(asked, errOverdueCall)}}
	case s.state == BackingOff:
		return []effect{answerCall{asked, failed(asked, s.why)}}
	case m.waiting >= m.limits.waiting && (s.state != Ready || m.running >= m.limits.calls):
		return []effect{answerCall{asked, failed(asked, failure.New(failure.KindBusy, fmt.Sprintf(
			"the server %q has %d calls running and %d waiting, and takes no more now",
			s.target.GetServer(), m.running, m.waiting), nil))}}
	}
	m.calls[asked] = &call{slot: s.name, message: message, deadline: deadline}
	m.waiting++
	var effects []effect
	if s.state == Ready {
		m.queue = append(m.queue, asked)
		effects = m.admit(now)
	} else {
		s.calls = append(s.calls, asked)
		effects = m.becomeConnecting(s)
	}
	if open, owed := m.calls[asked]; owed && !open.running {
		effects = append(effects, waitUntil{asked, deadline})
	}
	return effects
}

// admit starts the calls that wait, while there is room.
func (m *machine) admit(now time.Time) []effect {
	var effects []effect
	for len(m.queue) > 0 && m.running < m.limits.calls {
		asked := m.queue[0]
		m.queue = m.queue[1:]
		open, owed := m.calls[asked]
		switch {
		case !owed || open.running:
		case !now.Before(open.deadline):
			effects = append(effects, m.settle(asked, answerOf(asked, open, nil, errOverdueCall)))
		default:
			m.waiting--
			m.running++
			effects = append(effects, becomeRunning(asked, open))
		}
	}
	return effects
}

func becomeRunning(asked supervision.Asked, open *call) effect {
	open.running = true
	open.attempts++
	return startCall{asked, open.attempts, open.slot, open.message, open.deadline}
}

// onNoSession has a call wait again that was to be started on a session which is
// gone.
func (m *machine) onNoSession(asked supervision.Asked, attempt int) []effect {
	open, owed := m.calls[asked]
	if !owed || !open.running || open.attempts != attempt {
		return nil
	}
	open.running = false
	open.attempts--
	m.running--
	m.waiting++
	s, kept := m.slots[open.slot]
	switch {
	case !kept:
		return []effect{m.settle(asked, answerOf(asked, open, nil, errNotOpen))}
	case s.state == BackingOff:
		return []effect{m.settle(asked, answerOf(asked, open, nil, s.why))}
	}
	effects := m.onSessionLost(s.name, s.epoch)
	s.calls = append(s.calls, asked)
	effects = append(effects, m.becomeConnecting(s)...)
	return append(effects, waitUntil{asked, open.deadline})
}

// onCallFinished takes the result of a call's attempt; sent says of a failure
// that the request was written.
func (m *machine) onCallFinished(asked supervision.Asked, attempt int, result *messages.ToolResult, err error, sent bool, now time.Time) []effect {
	open, owed := m.calls[asked]
	if !owed || !open.running || open.attempts != attempt {
		return nil
	}
	m.noteTransport(err)
	open.sent = open.sent || sent
	if repeats(open, err, now) {
		return []effect{becomeRunning(asked, open)}
	}
	effects := []effect{m.settle(asked, answerOf(asked, open, result, err))}
	if _, kept := m.slots[open.slot]; kept && failure.KindOf(err) == failure.KindMcpHeaderMismatchError {
		effects = append(effects, refreshCatalog{open.slot})
	}
	return append(effects, m.admit(now)...)
}

// noteTransport keeps the last failure of transport for those who ask why.
func (m *machine) noteTransport(err error) {
	switch {
	case errors.Is(err, messages.ErrStaleKey):
		m.lastError, m.dead = readable(err), true
	case err == nil:
		m.lastError, m.dead = nil, false
	case failure.KindOf(err) == failure.KindMcpServerUnreachable:
		m.lastError = err
	}
}

// repeats decides whether a call that was cut off is issued once more: only
// where its asker said that this is harmless, and while somebody waits for it.
func repeats(open *call, err error, now time.Time) bool {
	return err != nil && open.sent && open.message.GetRepeatable() && open.attempts == 1 && !open.cancelled &&
		now.Before(open.deadline) && failure.KindOf(err) == failure.KindMcpServerUnreachable
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
		open.cancelled = true
		return []effect{m.settle(asked, answerOf(asked, open, nil, errCancelled))}
	}
}

var errCancelled = failure.New(failure.KindCancelled, "the call was cancelled before it was sent", nil)

// settle takes a call off the books with its answer.
func (m *machine) settle(asked supervision.Asked, done *messages.CallDone) effect {
	if m.calls[asked].running {
		m.running--
	} else {
		m.waiting--
	}
	delete(m.calls, asked)
	return answerCall{asked, done}
}

// onEnd is the answer of a call that the connection ends with; nil for one that it
// does not know. A call that was handed to a session may have run.
func (m *machine) onEnd(asked supervision.Asked, why error) *messages.CallDone {
	open, owed := m.calls[asked]
	if !owed {
		return nil
	}
	open.sent = open.sent || open.running
	return answerOf(asked, open, nil, why)
}

// calling reports whether a slot has calls.
func (m *machine) calling(name string) bool {
	for _, open := range m.calls {
		if open.slot == name {
			return true
		}
	}
	return false
}

// answerOf is the one answer of a call whose last attempt ended so. A call that
// was sent and not answered may have run: that is told as such, whatever cut it
// off.
func answerOf(asked supervision.Asked, open *call, result *messages.ToolResult, err error) *messages.CallDone {
	if err == nil {
		return &messages.CallDone{CallId: asked.ID, Result: result, Sent: true}
	}
	tool, server := open.message.GetTool(), open.message.GetTarget().GetServer()
	switch {
	case open.sent && (cutsOff(err) || open.attempts > 1 && isLocal(err)):
		became := "was sent and not answered"
		if failure.KindOf(err) == failure.KindMcpProtocolError {
			became = "was sent and its answer cannot be read"
		}
		done := failed(asked, failure.New(failure.KindOutcomeUnknown, fmt.Sprintf(
			"the call of %q on the server %q %s (%v); it may have taken effect, verify before repeating it",
			tool, server, became, readable(err)), err))
		done.Sent = true
		return done
	case open.cancelled && !open.sent:
		return failed(asked, errCancelled)
	default:
		done := failed(asked, err)
		done.Sent = open.sent
		return done
	}
}

// cutsOff reports whether a failure of a call that was sent leaves open what the
// server did. An answer that makes no sense does: a proxy's page, say. One that is
// too large does not: the tool ran, and the caller reads how much was allowed.
func cutsOff(err error) bool {
	switch failure.KindOf(err) {
	case failure.KindMcpServerUnreachable, failure.KindMcpProtocolError, failure.KindDeadlineExceeded, failure.KindCancelled, failure.KindInternal:
		return true
	default:
		return false
	}
}

// failed is the answer of a call of which nothing was sent.
func failed(asked supervision.Asked, why error) *messages.CallDone {
	if errors.Is(why, messages.ErrStaleKey) {
		return &messages.CallDone{CallId: asked.ID, StaleKey: true}
	}
	return &messages.CallDone{CallId: asked.ID, Failure: messages.FailureOf(why)}
}

// readable gives an error that has no sentence one.
func readable(err error) error {
	if errors.Is(err, messages.ErrStaleKey) {
		return failure.New(failure.KindMcpServerUnreachable, "the credential was rotated", err)
	}
	if _, typed := errors.AsType[failure.Failure](err); !typed {
		return failure.New(failure.KindInternal, "an internal error ended this work", err)
	}
	return err
}
