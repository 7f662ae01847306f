package tokenrefresh

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// State is where a grant stands.
type State int

// The states of a grant; see the package's documentation.
const (
	None State = iota
	Acquiring
	Valid
	Refreshing
	BackingOff
	NeedsAuthorization
)

func (s State) String() string {
	return [...]string{"none", "acquiring", "valid", "refreshing", "backing-off", "needs-authorization"}[s]
}

const (
	// maxAskers bounds those who wait.
	maxAskers = 4096
	// maxSteps bounds the operations of which it is known that more scopes were asked
	// for. Beyond it nothing more is asked for: a server that names other scopes
	// each time is not followed without an end.
	maxSteps = 256
)

// How a server refuses a request for want of a token (RFC 6750 section 3.1).
const (
	unauthorized = 401
	forbidden    = 403
)

// machine is a grant's owner without its surroundings: messages in, effects out.
type machine struct {
	rules rules
	state State
	// token is the present one; its Version is 0 when there is none.
	token Token
	// renewed is the version that was obtained because the one before was refused.
	renewed uint64
	// flight is the one under way that needs no person, consent the one that waits for
	// one; nil for none. A person may take long, and refreshing goes on meanwhile.
	flight, consent *flight
	// flights counts them; the result of one that is neither is dropped.
	flights uint64
	waiting []waiter
	// failures counts the flights in a row that failed for now, and the tokens in a
	// row that were refused as soon as they came.
	failures int
	// stepped is the operations and sets of scopes for which more was asked for.
	stepped map[string]bool
	// why is the reason of the state, nil for none.
	why error
	// moved says that the grant goes on under another key.
	moved bool
}

// rules is what does not change about a grant.
type rules struct {
	server                 string
	interactive, reachable bool
	scopes                 func(challenge []string) []string
	accepted, used         func(version uint64) bool
}

// need is what an asker needs.
type need struct {
	have       uint64
	refusal    Refusal
	operation  string
	background bool
}

// waiter is an asker, what it needs, and the number of the flight that it waits for.
type waiter struct {
	asked  supervision.Asked
	need   need
	flight uint64
}

func newMachine(r rules) *machine { return &machine{rules: r, stepped: map[string]bool{}} }

// onStart looks for what was stored.
func (m *machine) onStart() []effect { return m.becomeFlying(nil, flight{what: restore}) }

// onNeed tells an asker of another token, or has it wait for one.
func (m *machine) onNeed(asked supervision.Asked, wanted need, now time.Time) []effect {
	one := waiter{asked: asked, need: wanted}
	switch {
	case m.moved:
		return []effect{answerFailure{asked, messages.ErrStaleKey}}
	case m.helps(wanted, now):
		return []effect{answerReady{asked, m.token.Version}}
	case len(m.waiting) >= maxAskers:
		return []effect{answerFailure{asked, failure.New(failure.KindBusy,
			fmt.Sprintf("%d wait for a token for the server %q already", len(m.waiting), m.rules.server), nil)}}
	case m.flight != nil:
		m.board(one, m.flight)
		return nil
	}
	return m.depart(one)
}

func (m *machine) board(one waiter, on *flight) {
	one.flight = on.number
	m.waiting = append(m.waiting, one)
}

// helps reports whether the present token is another one than the asker's, and
// still good.
func (m *machine) helps(wanted need, now time.Time) bool {
	return m.token.Version != 0 && m.token.Version != wanted.have && !m.spent(now)
}

func (m *machine) spent(now time.Time) bool {
	return !m.token.Expires.IsZero() && !now.Before(m.token.Expires)
}

// depart begins the flight that an asker needs, or tells it why there is none.
func (m *machine) depart(one waiter) []effect {
	refusal := one.need.refusal
	switch {
	case m.state == BackingOff:
		return []effect{answerFailure{one.asked, m.why}}
	case m.token.Version == 0:
		return m.first(one, nil)
	case refusal.Status == forbidden:
		return m.stepUp(one)
	case refusal.Status == unauthorized && m.renewed == m.token.Version && !m.rules.accepted(m.token.Version):
		return m.refusedAgain(one)
	case m.token.Renewable:
		return m.becomeFlying(&one, flight{what: renew, have: m.token.Version, refusal: refusal, scopes: m.token.Scopes})
	default:
		m.why = failure.New(failure.KindAuthorizationRequired, fmt.Sprintf(
			"the token for the server %q has run out and came without a refresh token, so a person has to authorize it again", m.rules.server), nil)
		return m.first(one, m.token.Scopes)
	}
}

// first gets a token without one before it.
func (m *machine) first(one waiter, scopes []string) []effect {
	wanted := flight{what: obtain, refusal: one.need.refusal, scopes: union(scopes, m.rules.scopes(one.need.refusal.Challenge))}
	if m.rules.interactive {
		return m.askPerson(one, wanted, m.authorizationRequired())
	}
	return m.becomeFlying(&one, wanted)
}

// askPerson has a person asked, once for all who wait, or tells the asker why not.
func (m *machine) askPerson(one waiter, wanted flight, why error) []effect {
	switch {
	case !m.rules.reachable || one.need.background:
		if m.token.Version == 0 {
			m.state = NeedsAuthorization
		}
		return []effect{answerFailure{one.asked, why}}
	case m.consent != nil:
		m.board(one, m.consent)
		return nil
	default:
		wanted.what = ask
		m.why = why
		return m.becomeFlying(&one, wanted)
	}
}

// authorizationRequired is what those are told who cannot wait for a person.
func (m *machine) authorizationRequired() error {
	if m.why != nil && failure.KindOf(m.why) == failure.KindAuthorizationRequired {
		return m.why
	}
	m.why = failure.New(failure.KindAuthorizationRequired,
		fmt.Sprintf("the server %q needs a person's authorization first", m.rules.server), nil)
	return m.why
}

// refusedAgain ends the renewing of tokens that the server refuses as soon as they
// come.
func (m *machine) refusedAgain(one waiter) []effect {
	sentence := fmt.Sprintf("the server %q refuses the tokens that %s issues for it", m.rules.server, m.token.Issuer)
	if m.rules.interactive {
		m.why = failure.New(failure.KindAuthorizationRequired, sentence+", so a person has to authorize it again", nil)
		return m.first(one, m.token.Scopes)
	}
	m.token, m.renewed = Token{}, 0
	return append(m.becomeBackingOff(failure.New(failure.KindMcpServerUnreachable, sentence, nil)), answerFailure{one.asked, m.why})
}

// stepUp asks for the scopes that a challenge names besides those that there are
// (RFC 6750 section 3.1), once.
func (m *machine) stepUp(one waiter) []effect {
	named := m.rules.scopes(one.need.refusal.Challenge)
	step := one.need.operation + "\n" + strings.Join(named, " ")
	denied := failure.New(failure.KindInsufficientScope, fmt.Sprintf(
		"the server %q wants more than the token permits%s", m.rules.server, naming(named)), nil)
	if len(named) == 0 || m.stepped[step] || len(m.stepped) >= maxSteps {
		return []effect{answerFailure{one.asked, denied}}
	}
	wanted := flight{what: obtain, refusal: one.need.refusal, scopes: union(m.token.Scopes, named)}
	if m.rules.interactive {
		if m.rules.reachable && !one.need.background {
			m.stepped[step] = true
		}
		return m.askPerson(one, wanted, denied)
	}
	m.stepped[step] = true
	return m.becomeFlying(&one, wanted)
}

func naming(scopes []string) string {
	if len(scopes) == 0 {
		return ""
	}
	return ": " + strings.Join(scopes, " ")
}

// union is the scopes of both, sorted.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// onOverdue gives up an asker whose deadline has passed.
func (m *machine) onOverdue(asked supervision.Asked) []effect {
	at := slices.IndexFunc(m.waiting, func(one waiter) bool { return one.asked == asked })
	if at < 0 {
		return nil
	}
	m.waiting = slices.Delete(m.waiting, at, at+1)
	why := m.why
	if why == nil {
		why = failure.New(failure.KindDeadlineExceeded,
			fmt.Sprintf("no token for the server %q came before the deadline", m.rules.server), nil)
	}
	return []effect{answerFailure{asked, why}}
}

// status is what an operator may see.
func (m *machine) status() *messages.GrantStatus {
	status := &messages.GrantStatus{State: m.state.String(), Issuer: m.token.Issuer, Scopes: m.token.Scopes}
	if !m.token.Expires.IsZero() {
		status.ValidUntilUnixMs = m.token.Expires.UnixMilli()
	}
	if m.why != nil {
		status.Why = m.why.Error()
	}
	return status
}
