package pool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// State is where an entry stands.
type State int

// The states of an entry; see the package's documentation.
const (
	Running State = iota
	Stopping
)

func (s State) String() string { return [...]string{"running", "stopping"}[s] }

const (
	// maxHeld bounds the messages that wait for one key's connection to stop.
	maxHeld = 1024
	// maxClosed bounds the statuses kept of connections that were given up.
	maxClosed = 256
	// settled is how long after its last message a connection's status is taken to
	// tell of it.
	settled = time.Second
)

// machine is a pool without its surroundings: messages in, effects out.
type machine struct {
	max     int
	entries map[messages.PoolKey]*entry
	// byID finds entries by the digest of their keys.
	byID map[string]*entry
	// stopping counts the entries in that state; the others are never more than max.
	stopping int
	// closed is the last statuses of connections that were given up, oldest first.
	closed []*messages.ConnectionStatus
	// leaving is the Disconnects that wait for connections to end.
	leaving []*disconnecting
}

// entry is one connection.
type entry struct {
	key   messages.PoolKey
	id    string
	state State
	// status is what the connection told last, or what is known before it did.
	status *messages.ConnectionStatus
	// restarts counts those by the supervisor.
	restarts int64
	// routed counts the messages that the connection was sent. It is compared with
	// what the connection says it received: equal means that none is on its way.
	routed   uint64
	lastUsed time.Time
	// held waits for the connection to end, to go to its successor.
	held []held
}

// held is a message that is routed.
type held struct {
	// asked is its asker; question says that an answer is waited for.
	asked    supervision.Asked
	question bool
	message  any
	target   *messages.Target
}

// disconnecting is a Disconnect and the connections that it waits for.
type disconnecting struct {
	asked   supervision.Asked
	pending map[string]bool
	closed  int64
}

func newMachine(limit int) *machine {
	return &machine{max: limit, entries: map[messages.PoolKey]*entry{}, byID: map[string]*entry{}}
}

// onRouted sends a message to its key's connection. A message that nobody waits
// for makes no connection.
func (m *machine) onRouted(key messages.PoolKey, one held, now time.Time) []effect {
	found, known := m.entries[key]
	switch {
	case known && found.state == Running:
		return []effect{routeTo(found, one, now)}
	case known && len(found.held) >= maxHeld:
		return []effect{refuse{one.asked, failure.New(failure.KindBusy, fmt.Sprintf(
			"the connection to %q is being closed and too many calls wait for the next one", one.target.GetServer()), nil)}}
	case known:
		found.held = append(found.held, one)
		return nil
	case !one.question:
		return nil
	}
	return m.create(key, []held{one}, now)
}

// create makes a key's connection, where the pool has room, for the messages that
// want it.
func (m *machine) create(key messages.PoolKey, wanting []held, now time.Time) []effect {
	effects, err := m.makeRoom(key.Scope().Tenant, now)
	if err != nil {
		for _, one := range wanting {
			effects = append(effects, refuse{one.asked, err})
		}
		return effects
	}
	made := &entry{key: key, id: key.Digest()}
	made.status = &messages.ConnectionStatus{Id: made.id, Key: key.Message(), State: "idle", Breaker: "closed",
		Server: wanting[0].target.GetServer()}
	m.entries[key], m.byID[made.id] = made, made
	m.closed = slices.DeleteFunc(m.closed, func(s *messages.ConnectionStatus) bool { return s.GetId() == made.id })
	effects = append(effects, spawn{key})
	for _, one := range wanting {
		effects = append(effects, routeTo(made, one, now))
	}
	return effects
}

func routeTo(to *entry, one held, now time.Time) effect {
	to.routed++
	to.lastUsed = now
	return route{to.id, one}
}

// makeRoom stops a connection that is unused, at the limit.
func (m *machine) makeRoom(tenant string, now time.Time) ([]effect, error) {
	if len(m.entries)-m.stopping < m.max {
		return nil, nil
	}
	var best *entry
	for _, one := range m.entries {
		if one.unused(now) && (best == nil || one.before(best, tenant)) {
			best = one
		}
	}
	if best == nil {
		return nil, failure.New(failure.KindBusy,
			fmt.Sprintf("all %d connections of the pool are in use, or were a moment ago", m.max), nil)
	}
	return m.becomeStopping(best), nil
}

func (e *entry) unused(now time.Time) bool {
	return e.state == Running && now.Sub(e.lastUsed) >= settled &&
		e.status.GetCallsInFlight() == 0 && e.status.GetCallsWaiting() == 0 && e.status.GetState() != "connecting"
}

// before reports whether an entry makes room for a tenant rather than another:
// a tenant's own entries do first.
func (e *entry) before(other *entry, tenant string) bool {
	if own, others := e.key.Scope().Tenant == tenant, other.key.Scope().Tenant == tenant; own != others {
		return own
	}
	return e.lastUsed.Before(other.lastUsed)
}

func (m *machine) becomeStopping(one *entry) []effect {
	if one.state == Stopping {
		return nil
	}
	one.state = Stopping
	m.stopping++
	return []effect{stop{one.id}}
}

// onIdle stops a connection that has been unused, unless a message is on its way
// to it: then it is not idle.
func (m *machine) onIdle(id string, received uint64) []effect {
	one, known := m.byID[id]
	if !known || one.routed != received {
		return nil
	}
	return m.becomeStopping(one)
}

// onStatus takes what a connection tells of itself.
func (m *machine) onStatus(status *messages.ConnectionStatus) {
	if one, known := m.byID[status.GetId()]; known {
		status.Restarts = one.restarts
		one.status = status
	}
}

// onRestarted counts a restart of a connection by its supervisor.
func (m *machine) onRestarted(id string) {
	if one, known := m.byID[id]; known {
		one.restarts++
	}
}

// onGaveUp keeps the last status of a connection that failed too often. The
// supervisor is stopping it.
func (m *machine) onGaveUp(id string) {
	one, known := m.byID[id]
	if !known {
		return
	}
	m.becomeStopping(one)
	m.closed = append(m.closed, &messages.ConnectionStatus{
		Id: id, Key: one.key.Message(), State: "closed", Server: one.status.GetServer(),
		Breaker: one.status.GetBreaker(), Restarts: one.restarts,
		LastError: "the connection failed too often and was given up",
	})
	if len(m.closed) > maxClosed {
		m.closed = m.closed[1:]
	}
}

// onEnded forgets a connection that has ended, and has its successor made for
// the messages that waited, if one of them is worth it.
func (m *machine) onEnded(id string, now time.Time) []effect {
	one, known := m.byID[id]
	if !known {
		return nil
	}
	delete(m.byID, id)
	delete(m.entries, one.key)
	if one.state == Stopping {
		m.stopping--
	}
	var effects []effect
	if slices.ContainsFunc(one.held, func(h held) bool { return h.question }) {
		effects = m.create(one.key, one.held, now)
	}
	return append(effects, m.left(id)...)
}

// onDisconnect stops the connections that it names and answers once they have
// ended.
func (m *machine) onDisconnect(asked supervision.Asked, question *messages.Disconnect) []effect {
	leaving := &disconnecting{asked: asked, pending: map[string]bool{}}
	var effects []effect
	for key, one := range m.entries {
		if key.Scope().Tenant == question.GetTenant() &&
			(question.GetPrincipal() == "" || key.Scope().Principal == question.GetPrincipal()) &&
			(question.GetUrl() == "" || key.URL() == question.GetUrl()) {
			leaving.pending[one.id] = true
			effects = append(effects, m.becomeStopping(one)...)
		}
	}
	leaving.closed = int64(len(leaving.pending))
	m.leaving = append(m.leaving, leaving)
	return append(effects, m.left("")...)
}

// left answers the Disconnects for which nothing is pending any more.
func (m *machine) left(id string) []effect {
	var effects []effect
	m.leaving = slices.DeleteFunc(m.leaving, func(d *disconnecting) bool {
		delete(d.pending, id)
		if len(d.pending) > 0 {
			return false
		}
		effects = append(effects, answer{d.asked, &messages.Disconnected{RequestId: d.asked.ID, Closed: d.closed}})
		return true
	})
	return effects
}

// list is the statuses of a tenant's connections, in the order of their ids.
func (m *machine) list(tenant string) []*messages.ConnectionStatus {
	var statuses []*messages.ConnectionStatus
	add := func(status *messages.ConnectionStatus) {
		if tenant == "" || status.GetKey().GetTenant() == tenant {
			statuses = append(statuses, status)
		}
	}
	for _, one := range m.entries {
		add(one.status)
	}
	for _, status := range m.closed {
		add(status)
	}
	slices.SortFunc(statuses, func(a, b *messages.ConnectionStatus) int { return strings.Compare(a.GetId(), b.GetId()) })
	return statuses
}
