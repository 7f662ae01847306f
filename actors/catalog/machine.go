package catalog

import (
	"time"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/messages"
)

// State is where a catalog stands.
type State int

// The states of a catalog; see the package's documentation.
const (
	Detached State = iota
	Empty
	Fresh
	Stale
	Fetching
)

func (s State) String() string {
	return [...]string{"detached", "empty", "fresh", "stale", "fetching"}[s]
}

const (
	// minTTL and maxTTL bound what a server may say about its list.
	minTTL = time.Second
	maxTTL = time.Hour
)

// machine is a catalog without its surroundings: messages in, effects out.
type machine struct {
	ttl   time.Duration
	state State
	// epoch is the session that the state is about.
	epoch uint64
	// closed is why there is no session.
	closed error

	snapshot *messages.Snapshot
	expires  time.Time
	// fetches counts the fetches that have begun; the one in flight is the last.
	fetches uint64
	// again says that a fetch must follow the one in flight, because a change was
	// announced, or an asker wants a fetch that begins after its question.
	again bool
	// waiting is the askers and the fetch that each waits for.
	waiting map[supervision.Asked]uint64
	// used says that somebody asked since the last sweep.
	used bool
	// breaks counts the times in a row that the watcher's stream did not open.
	breaks int
}

// effect is something that the machine wants done.
type effect interface{ isEffect() }

type (
	answerSnapshot struct {
		asked    supervision.Asked
		snapshot *messages.Snapshot
	}
	answerFailure struct {
		asked supervision.Asked
		why   error
	}
	fetch struct {
		epoch uint64
		etag  string
	}
	publish      struct{ snapshot *messages.Snapshot }
	reportFailed struct{ why error }
	sweepAfter   struct {
		version uint64
		wait    time.Duration
	}
	// openWatch opens the watcher's stream, after a backoff where it broke before.
	openWatch struct {
		epoch  uint64
		breaks int
	}
	closeWatch struct{}
)

func (answerSnapshot) isEffect() {}
func (answerFailure) isEffect()  {}
func (fetch) isEffect()          {}
func (publish) isEffect()        {}
func (reportFailed) isEffect()   {}
func (sweepAfter) isEffect()     {}
func (openWatch) isEffect()      {}
func (closeWatch) isEffect()     {}

func newMachine(ttl time.Duration) *machine {
	return &machine{ttl: ttl, waiting: map[supervision.Asked]uint64{}}
}

// onAsk answers from the cache, or has the asker wait for a fetch.
func (m *machine) onAsk(asked supervision.Asked, fresh bool, now time.Time) []effect {
	m.used = true
	switch {
	case m.state == Detached:
		return []effect{answerFailure{asked, m.closed}}
	case m.state == Fresh && !fresh && now.Before(m.expires):
		return []effect{answerSnapshot{asked, m.snapshot}}
	case m.state == Fetching && !fresh && !m.again:
		m.waiting[asked] = m.fetches
		return nil
	case m.state == Fetching:
		m.again = true
		m.waiting[asked] = m.fetches + 1
		return nil
	default:
		m.waiting[asked] = m.fetches + 1
		return m.becomeFetching()
	}
}

func (m *machine) waits(asked supervision.Asked) bool {
	_, waits := m.waiting[asked]
	return waits
}

// onOverdue gives up an asker whose deadline has passed.
func (m *machine) onOverdue(asked supervision.Asked, why error) []effect {
	if !m.waits(asked) {
		return nil
	}
	delete(m.waiting, asked)
	return []effect{answerFailure{asked, why}}
}

// onChanged takes an announced change. The list is stale from now on, whatever
// its time to live says.
func (m *machine) onChanged() []effect {
	switch m.state {
	case Fetching:
		m.again = true
		return nil
	case Fresh, Stale:
		m.state = Stale
		return m.becomeFetching()
	default:
		return nil
	}
}

// onFetched takes the result of the fetch in flight.
func (m *machine) onFetched(epoch uint64, snapshot *messages.Snapshot, ttl *time.Duration, err error, now time.Time) []effect {
	if m.state != Fetching || epoch != m.epoch {
		return nil
	}
	if err != nil {
		return m.failed(err)
	}
	effects := m.take(snapshot, ttl, now)
	for asked, wanted := range m.waiting {
		if wanted <= m.fetches {
			delete(m.waiting, asked)
			effects = append(effects, answerSnapshot{asked, m.snapshot})
		}
	}
	if m.again {
		m.state = Stale
		return append(effects, m.becomeFetching()...)
	}
	m.state = Fresh
	return effects
}

// take makes the fetched list the snapshot: the next version when it differs.
func (m *machine) take(snapshot *messages.Snapshot, ttl *time.Duration, now time.Time) []effect {
	lives := m.ttl
	if ttl != nil {
		lives = min(max(*ttl, minTTL), maxTTL)
	}
	if m.snapshot != nil && m.snapshot.GetEtag() == snapshot.GetEtag() {
		snapshot.Tools = m.snapshot.GetTools()
		snapshot.Version = m.snapshot.GetVersion()
	} else {
		snapshot.Version = m.snapshot.GetVersion() + 1
	}
	snapshot.TtlMs, snapshot.FetchedUnixMs = lives.Milliseconds(), now.UnixMilli()
	m.snapshot, m.expires = snapshot, now.Add(lives)
	return []effect{publish{snapshot}, sweepAfter{m.fetches, lives}}
}

// failed tells everyone who waits. The list that was there is stale: it is not
// handed out again before a fetch has succeeded.
func (m *machine) failed(err error) []effect {
	effects := []effect{reportFailed{err}}
	for asked := range m.waiting {
		effects = append(effects, answerFailure{asked, err})
	}
	m.waiting = map[supervision.Asked]uint64{}
	m.again = false
	m.state = Stale
	if m.snapshot == nil {
		m.state = Empty
	}
	return effects
}

// onSweep fetches a list again whose time is nearly up, if somebody uses it.
func (m *machine) onSweep(fetches uint64) []effect {
	if m.state != Fresh || fetches != m.fetches || !m.used {
		return nil
	}
	m.used = false
	return m.becomeFetching()
}

// onSessionOpened begins with a new session; what an older one listed is stale.
func (m *machine) onSessionOpened(epoch uint64) []effect {
	if epoch <= m.epoch && m.state != Detached {
		return nil
	}
	m.epoch, m.closed, m.breaks, m.again = epoch, nil, 0, false
	m.state = Empty
	if m.snapshot != nil {
		m.state = Stale
	}
	return []effect{openWatch{epoch: epoch}}
}

// onSessionClosed has nothing to fetch from any more.
func (m *machine) onSessionClosed(epoch uint64, why error) []effect {
	if epoch < m.epoch || m.state == Detached {
		return nil
	}
	m.epoch = epoch
	effects := append([]effect{closeWatch{}}, m.failed(why)...)
	m.state, m.closed = Detached, why
	return effects
}

// onWatchOpened knows that changes are announced from now on. What changed
// before is not, so a list that was fetched before is fetched again.
func (m *machine) onWatchOpened(epoch uint64) []effect {
	if epoch != m.epoch {
		return nil
	}
	m.breaks = 0
	return m.onChanged()
}

// onWatchEnded opens the stream again, unless the server offers none.
func (m *machine) onWatchEnded(epoch uint64, again bool) []effect {
	if epoch != m.epoch || m.state == Detached || !again {
		return nil
	}
	m.breaks++
	return []effect{openWatch{epoch: epoch, breaks: m.breaks}}
}

func (m *machine) becomeFetching() []effect {
	m.state = Fetching
	m.again = false
	m.fetches++
	return []effect{fetch{m.epoch, m.snapshot.GetEtag()}}
}
