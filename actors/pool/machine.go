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
)

// machine is a pool without its surroundings: messages in, effects out.
type machine struct {
	max     int
	entries map[messages.PoolKey]*entry
	// byID finds entries by the digest of their keys.
	byID map[string]*entry
	// closed is the last statuses of connections that were given up, oldest first.
	closed []*messages.ConnectionStatus
	// leaving is the Disconnects that wait for connections to end.
	leaving []*disconnecting
}

// entry is one connection.
type entry struct {
	key    messages.PoolKey
	id     string
	state  State
	status *messages.ConnectionStatus
	// routed counts the messages that the connection was sent. It is compared with
	// what the connection says it received: equal means that none is on its way.
	routed   uint64
	lastUsed time.Time
	// held waits for the connection to end, to go to its successor.
	held []held
}

// held is a message that waits; asked is zero for one that has no asker.
type held struct {
	asked   supervision.Asked
	message any
}

// disconnecting is a Disconnect and the connections that it waits for.
type disconnecting struct {
	asked   supervision.Asked
	pending map[string]bool
	closed  int64
}

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

func newMachine(limit int) *machine {
	return &machine{max: limit, entries: map[messages.PoolKey]*entry{}, byID: map[string]*entry{}}
}

// onRouted sends a message to its key's connection. A message that nobody waits
// for makes no connection.
func (m *machine) onRouted(key messages.PoolKey, one held, creates bool, now time.Time) []effect {
	found, known := m.entries[key]
	switch {
	case known && found.state == Running:
		return []effect{m.routeTo(found, one, now)}
	case known && len(found.held) >= maxHeld:
		return []effect{refuse{one.asked, failure.New(failure.KindBusy, "the connection is being closed and too many calls wait for the next one", nil)}}
	case known:
		found.held = append(found.held, one)
		return nil
	case !creates:
		return nil
	}
	effects, err := m.makeRoom()
	if err != nil {
		return []effect{refuse{one.asked, err}}
	}
	made := m.add(key)
	return append(effects, spawn{key}, m.routeTo(made, one, now))
}

func (m *machine) add(key messages.PoolKey) *entry {
	made := &entry{key: key, id: key.Digest()}
	m.entries[key], m.byID[made.id] = made, made
	m.closed = slices.DeleteFunc(m.closed, func(s *messages.ConnectionStatus) bool { return s.GetId() == made.id })
	return made
}

func (m *machine) routeTo(to *entry, one held, now time.Time) effect {
	to.routed++
	to.lastUsed = now
	return route{to.id, one}
}

// makeRoom stops the connection that has been unused for longest, at the limit.
func (m *machine) makeRoom() ([]effect, error) {
	if len(m.entries) < m.max {
		return nil, nil
	}
	var oldest *entry
	for _, one := range m.entries {
		unused := one.state == Running && one.status != nil &&
			one.status.GetCallsInFlight() == 0 && one.status.GetCallsWaiting() == 0 && one.status.GetState() != "connecting"
		if unused && (oldest == nil || one.lastUsed.Before(oldest.lastUsed)) {
			oldest = one
		}
	}
	if oldest == nil {
		return nil, failure.New(failure.KindBusy,
			fmt.Sprintf("all %d connections of the pool are in use", m.max), nil)
	}
	return m.becomeStopping(oldest), nil
}

func (m *machine) becomeStopping(one *entry) []effect {
	if one.state == Stopping {
		return nil
	}
	one.state = Stopping
	return []effect{stop{one.id}}
}

// onIdle stops a connection that has been unused, unless a message is on its way
// to it: then it is not idle.
func (m *machine) onIdle(id string, received uint64) []effect {
	one, known := m.byID[id]
	if !known || one.state != Running || one.routed != received {
		return nil
	}
	return m.becomeStopping(one)
}

// onStatus takes what a connection tells of itself.
func (m *machine) onStatus(status *messages.ConnectionStatus, restarts int64) {
	if one, known := m.byID[status.GetId()]; known {
		status.Restarts = restarts
		one.status = status
	}
}

// onGaveUp keeps the last status of a connection that failed too often.
func (m *machine) onGaveUp(id, reason string) {
	one, known := m.byID[id]
	if !known {
		return
	}
	one.state = Stopping
	last := &messages.ConnectionStatus{
		Id: id, Key: one.key.Message(), State: "closed", LastError: reason,
		Server: one.status.GetServer(), Breaker: one.status.GetBreaker(), Restarts: one.status.GetRestarts(),
	}
	m.closed = append(m.closed, last)
	if len(m.closed) > maxClosed {
		m.closed = m.closed[1:]
	}
}

// onEnded forgets a connection that has ended, and has its successor made for
// the messages that waited.
func (m *machine) onEnded(id string, now time.Time) []effect {
	one, known := m.byID[id]
	if !known {
		return nil
	}
	delete(m.byID, id)
	delete(m.entries, one.key)
	var effects []effect
	if len(one.held) > 0 {
		made := m.add(one.key)
		effects = append(effects, spawn{one.key})
		for _, waiting := range one.held {
			effects = append(effects, m.routeTo(made, waiting, now))
		}
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
		status := one.status
		if status == nil {
			status = &messages.ConnectionStatus{Id: one.id, Key: one.key.Message(), State: "idle", Breaker: "closed"}
		}
		add(status)
	}
	for _, status := range m.closed {
		add(status)
	}
	slices.SortFunc(statuses, func(a, b *messages.ConnectionStatus) int { return strings.Compare(a.GetId(), b.GetId()) })
	return statuses
}
