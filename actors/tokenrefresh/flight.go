package tokenrefresh

import (
	"errors"
	"slices"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// attempts is how often a flight is tried for those who wait for it.
const attempts = 4

// flight is one attempt to get a token.
type flight struct {
	number uint64
	what   what
	// have is the version that is renewed.
	have    uint64
	refusal Refusal
	// scopes are asked for.
	scopes []string
	// attempt counts from 1.
	attempt int
}

// what is what a flight does.
type what int

const (
	restore what = iota
	renew
	obtain
	// ask is an obtain for which a person is asked.
	ask
)

func (w what) String() string { return [...]string{"restore", "renew", "obtain", "ask a person"}[w] }

// becomeFlying begins a flight, for an asker or for nobody.
func (m *machine) becomeFlying(one *waiter, next flight) []effect {
	m.flights++
	next.number, next.attempt = m.flights, 1
	switch next.what {
	case ask:
		m.consent = &next
		if m.token.Version == 0 {
			m.state = NeedsAuthorization
		}
	case renew:
		m.flight, m.state = &next, Refreshing
	default:
		m.flight, m.state = &next, Acquiring
	}
	if one != nil {
		m.board(*one, &next)
	}
	return []effect{fly{next}}
}

// flying returns the flight of a number, nil for one that is over.
func (m *machine) flying(number uint64) *flight {
	for _, one := range []*flight{m.flight, m.consent} {
		if one != nil && one.number == number {
			return one
		}
	}
	return nil
}

// onLanded takes the result of a flight.
func (m *machine) onLanded(number uint64, token Token, err error, now time.Time) []effect {
	landed := m.flying(number)
	switch {
	case landed == nil:
		return nil
	case errors.Is(err, messages.ErrStaleKey):
		return m.becomeMoved()
	case passes(err) && landed.what != ask && landed.attempt < attempts && m.waitedFor(number):
		landed.attempt++
		return []effect{flyAfter{number, landed.attempt - 1}}
	}
	if landed == m.consent {
		m.consent = nil
	} else {
		m.flight = nil
	}
	switch {
	case err != nil:
		return m.becomeFailed(*landed, err, now)
	case token.Version == 0: // nothing was stored
		m.state = None
		return m.again(number, now)
	default:
		return m.becomeValid(*landed, token, now)
	}
}

func (m *machine) waitedFor(number uint64) bool {
	return slices.ContainsFunc(m.waiting, func(one waiter) bool { return one.flight == number })
}

// passes reports whether a failure may be gone at the next attempt.
func passes(err error) bool {
	switch failure.KindOf(err) {
	case failure.KindMcpServerUnreachable, failure.KindDeadlineExceeded, failure.KindInternal:
		return true
	default:
		return false
	}
}

// onFlightDue tries a flight again.
func (m *machine) onFlightDue(number uint64) []effect {
	if due := m.flying(number); due != nil {
		return []effect{fly{*due}}
	}
	return nil
}

func (m *machine) becomeValid(landed flight, token Token, now time.Time) []effect {
	m.state, m.why, m.token = Valid, nil, token
	if landed.what != restore && landed.refusal.Status == unauthorized {
		m.renewed = token.Version
	} else {
		m.failures = 0
	}
	return append(m.ahead(), m.again(landed.number, now)...)
}

// again gives those who waited for a flight what they need now.
func (m *machine) again(number uint64, now time.Time) []effect {
	var effects []effect
	for _, one := range m.disembark(number) {
		effects = append(effects, m.onNeed(one.asked, one.need, now)...)
	}
	return effects
}

// disembark takes those who waited for a flight off the list.
func (m *machine) disembark(number uint64) (waited []waiter) {
	m.waiting = slices.DeleteFunc(m.waiting, func(one waiter) bool {
		if one.flight == number {
			waited = append(waited, one)
		}
		return one.flight == number
	})
	return waited
}

// ahead sets the refresh before the present token's end.
func (m *machine) ahead() []effect {
	if m.token.Expires.IsZero() || !m.token.Renewable {
		return nil
	}
	lead := lead(m.token.Expires.Sub(m.token.Obtained))
	return []effect{refreshAt{m.token.Version, m.token.Expires.Add(-lead), lead / 2}}
}

// maxLead is the longest time before its end at which a token is refreshed.
const maxLead = 5 * time.Minute

// lead is how long before its end a token is refreshed at the earliest: a fifth of
// its life.
func lead(life time.Duration) time.Duration { return min(max(life, 0)/5, maxLead) }

// onAhead refreshes a token that is about to end, if it was used: nobody waits, so
// no person is asked.
func (m *machine) onAhead(version uint64) []effect {
	if m.flight != nil || m.state != Valid || m.token.Version != version || !m.rules.used(version) {
		return nil
	}
	return m.becomeFlying(nil, flight{what: renew, have: version, scopes: m.token.Scopes})
}

// becomeFailed tells those who waited for a flight why there is no token.
func (m *machine) becomeFailed(landed flight, err error, now time.Time) []effect {
	var effects []effect
	switch kept := m.token.Version != 0 && !m.spent(now); {
	case landed.what == ask && kept:
		// More was asked for, and what there is goes on.
	case landed.what == ask:
		m.state, m.why = NeedsAuthorization, err
	case failure.KindOf(err) == failure.KindAuthorizationRequired:
		m.state, m.why, m.token = NeedsAuthorization, err, Token{}
		if m.rules.interactive && m.rules.reachable {
			return m.again(landed.number, now)
		}
	case landed.what == obtain && kept:
		m.state = Valid
	case kept && landed.refusal.Status == 0:
		// The token goes on until its end, and is tried to be refreshed until then.
		m.state, m.why = Valid, err
		m.failures++
		effects = append(effects, calmAfter{m.flights, m.failures})
	default:
		effects = m.becomeBackingOff(err)
	}
	for _, one := range m.disembark(landed.number) {
		effects = append(effects, answerFailure{one.asked, err})
	}
	return effects
}

// becomeBackingOff spares the servers: askers get the reason at once for a while.
func (m *machine) becomeBackingOff(why error) []effect {
	m.state, m.why = BackingOff, why
	m.failures++
	m.flights++
	return []effect{calmAfter{m.flights, m.failures}}
}

// becomeMoved sends everyone to the key that the grant has now.
func (m *machine) becomeMoved() []effect {
	m.flight, m.consent, m.moved, m.state, m.token, m.why = nil, nil, true, None, Token{}, nil
	var effects []effect
	for _, one := range m.waiting {
		effects = append(effects, answerFailure{one.asked, messages.ErrStaleKey})
	}
	m.waiting = nil
	return effects
}

// onCalm lets askers have another flight begun. A token that could not be refreshed
// ahead of its end is tried again.
func (m *machine) onCalm(number uint64) []effect {
	switch {
	case m.flight != nil || number != m.flights:
		return nil
	case m.state == BackingOff && m.token.Version != 0:
		m.state = Valid
	case m.state == BackingOff:
		m.state = None
	case m.state == Valid:
		return m.onAhead(m.token.Version)
	}
	return nil
}
