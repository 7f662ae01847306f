package catalog

import (
	"time"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// State is where a catalog stands.
type State int

// The states of a catalog; see the package's documentation.
const (
	Detached State = iota
	Empty
	Fresh
	Refreshing
	Stale
	Fetching
)

func (s State) String() string {
	return [...]string{"detached", "empty", "fresh", "refreshing", "stale", "fetching"}[s]
}

const (
	// minTTL and maxTTL bound what a server may say about its list.
	minTTL = time.Second
	maxTTL = time.Hour
	// respite is the least time between the beginnings of two fetches of which
	// nobody waits for the second.
	respite = time.Second
	// maxAskers bounds those who wait.
	maxAskers = 1024
)

// machine is a catalog without its surroundings: messages in, effects out.
type machine struct {
	ttl   time.Duration
	state State
	// epoch is the session that the state is about.
	epoch uint64
	// closed is why there is no session.
	closed error

	// snapshot is the last list that was fetched, nil before the first; expires is
	// when its time is over.
	snapshot *messages.Snapshot
	expires  time.Time
	lineage  *lineage

	// fetches counts the fetches that have begun. The one in flight, if any, is the
	// last; begun is when it began.
	fetches uint64
	begun   time.Time
	// changed says that a change was announced since that fetch began, doubted that
	// one may have passed unannounced: another must follow. settling says that the
	// one in flight is to settle such a doubt.
	changed, doubted, settling bool
	// due says that the beginning of a fetch that nobody waits for is set.
	due bool
	// waiting is the askers and the number of the fetch that each waits for: the one
	// in flight or the next.
	waiting map[supervision.Asked]uint64
	// used says that somebody asked since the last sweep.
	used bool
	// wanted says that somebody waited when the fetch in flight began.
	wanted bool
	watcher
}

// lineage is what one catalog's versions have come to. It outlives the machine,
// so that a version never names two lists.
type lineage struct {
	version uint64
	etag    string
}

func newMachine(ttl time.Duration, versions *lineage) *machine {
	return &machine{ttl: ttl, lineage: versions, waiting: map[supervision.Asked]uint64{}}
}

// inFlight reports whether a fetch is.
func (m *machine) inFlight() bool { return m.state == Fetching || m.state == Refreshing }

// onAsk answers from the cache, or has the asker wait for a fetch.
func (m *machine) onAsk(asked supervision.Asked, fresh bool, now time.Time) []effect {
	m.used = true
	m.expire(now)
	switch {
	case m.state == Detached:
		return []effect{answerFailure{asked, m.closed}}
	case !fresh && (m.state == Fresh || m.state == Refreshing):
		return []effect{answerSnapshot{asked, m.snapshot}}
	case len(m.waiting) >= maxAskers:
		return []effect{answerFailure{asked, failure.New(failure.KindBusy, "too many wait for the server's tools already", nil)}}
	case !m.inFlight():
		m.waiting[asked] = m.fetches + 1
		return m.becomeFetching(now)
	case fresh || m.changed:
		m.waiting[asked] = m.fetches + 1
	default:
		m.waiting[asked] = m.fetches
	}
	return nil
}

// expire takes a list whose time is over out of hand.
func (m *machine) expire(now time.Time) {
	if now.Before(m.expires) {
		return
	}
	switch m.state {
	case Fresh:
		m.state = Stale
	case Refreshing:
		m.state = Fetching
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
func (m *machine) onChanged(now time.Time) []effect {
	switch m.state {
	case Refreshing, Fetching:
		m.state, m.changed = Fetching, true
		return nil
	case Fresh, Stale:
		m.state = Stale
		return m.fetchSoon(now)
	default:
		return nil
	}
}

// onDoubt fetches a list again which may have changed unannounced. While its time
// lasts it is handed out meanwhile.
func (m *machine) onDoubt(now time.Time) []effect {
	switch m.state {
	case Refreshing, Fetching:
		m.doubted = true
		return nil
	case Fresh, Stale:
		m.doubted = true
		return m.fetchSoon(now)
	default:
		return nil
	}
}

// fetchSoon begins a fetch that nobody waits for, now or after the respite.
func (m *machine) fetchSoon(now time.Time) []effect {
	if passed := now.Sub(m.begun); passed < respite {
		if m.due {
			return nil
		}
		m.due = true
		return []effect{fetchAfter{respite - passed}}
	}
	return m.becomeFetching(now)
}

// onDue begins the fetch that was put off, if none has begun meanwhile.
func (m *machine) onDue(now time.Time) []effect {
	if !m.due {
		return nil
	}
	m.due = false
	if m.state != Fresh && m.state != Stale {
		return nil
	}
	return m.becomeFetching(now)
}

// onSweep fetches a list again whose time is nearly over, if somebody uses it.
func (m *machine) onSweep(number uint64, now time.Time) []effect {
	if m.state != Fresh || number != m.fetches || !m.used {
		return nil
	}
	m.used = false
	return m.becomeFetching(now)
}

func (m *machine) becomeFetching(now time.Time) []effect {
	if m.state == Fresh {
		m.state = Refreshing
	} else {
		m.state = Fetching
	}
	m.settling = m.doubted
	m.changed, m.doubted, m.due = false, false, false
	m.fetches++
	m.begun = now
	m.wanted = len(m.waiting) > 0
	return []effect{fetch{m.fetches, m.snapshot.GetEtag(), m.wanted}}
}

// onFetched takes the result of the fetch in flight; ttl is what the server said,
// nil for nothing.
func (m *machine) onFetched(number uint64, snapshot *messages.Snapshot, ttl *time.Duration, err error, now time.Time) []effect {
	if !m.inFlight() || number != m.fetches {
		return nil
	}
	var effects []effect
	if err != nil {
		m.becomeFailed()
		if m.bothersNobody(err) {
			return m.becomeFetching(now)
		}
		effects = append(m.failWaiting(err), reportFailed{err})
	} else {
		effects = m.take(snapshot, ttl, now)
		m.becomeFetched()
	}
	switch {
	case len(m.waiting) > 0:
		return append(effects, m.becomeFetching(now)...)
	case err == nil && (m.changed || m.doubted):
		return append(effects, m.fetchSoon(now)...)
	default:
		return effects
	}
}

// take makes the fetched list the snapshot, which is the next version where it
// differs, and answers those who waited for it.
func (m *machine) take(snapshot *messages.Snapshot, ttl *time.Duration, now time.Time) []effect {
	lives := m.ttl
	if ttl != nil {
		lives = min(max(*ttl, minTTL), maxTTL)
	}
	if m.snapshot != nil && m.snapshot.GetEtag() == snapshot.GetEtag() {
		snapshot.Tools = m.snapshot.GetTools()
	}
	if m.lineage.version == 0 || m.lineage.etag != snapshot.GetEtag() {
		m.lineage.version++
		m.lineage.etag = snapshot.GetEtag()
	}
	snapshot.Version = m.lineage.version
	snapshot.TtlMs, snapshot.FetchedUnixMs = lives.Milliseconds(), now.UnixMilli()
	m.snapshot, m.expires = snapshot, now.Add(lives)
	var effects []effect
	for asked, wanted := range m.waiting {
		if wanted <= m.fetches {
			delete(m.waiting, asked)
			effects = append(effects, answerSnapshot{asked, snapshot})
		}
	}
	return append(effects, publish{snapshot}, sweepAfter{m.fetches, lives})
}

func (m *machine) becomeFetched() {
	m.state = Fresh
	if m.changed {
		m.state = Stale
	}
}

// becomeFailed goes back to where the fetch began. A doubt that was not settled
// is none about which the list is handed out.
func (m *machine) becomeFailed() {
	switch {
	case m.snapshot == nil:
		m.state = Empty
	case m.state == Refreshing && !m.settling:
		m.state = Fresh
	default:
		m.state = Stale
	}
}

// bothersNobody says that a fetch for which no person could be asked, because nobody
// waited when it began, failed for that alone, and somebody waits now: those wait
// for the next one.
func (m *machine) bothersNobody(why error) bool {
	if m.wanted || len(m.waiting) == 0 || failure.KindOf(why) != failure.KindAuthorizationRequired {
		return false
	}
	for asked := range m.waiting {
		m.waiting[asked] = m.fetches + 1
	}
	return true
}

// failWaiting tells those why who waited for the fetch in flight.
func (m *machine) failWaiting(why error) []effect {
	var effects []effect
	for asked, wanted := range m.waiting {
		if wanted <= m.fetches {
			delete(m.waiting, asked)
			effects = append(effects, answerFailure{asked, why})
		}
	}
	return effects
}

// onSessionOpened begins with a new session; what an older one listed is stale.
func (m *machine) onSessionOpened(epoch uint64, now time.Time) []effect {
	if epoch < m.epoch || epoch == m.epoch && m.state != Detached {
		return nil
	}
	effects := m.leaveSession()
	m.epoch, m.closed, m.watcher = epoch, nil, watcher{}
	m.state = Stale
	return append(effects, append(m.becomeFetching(now), openWatch{epoch: epoch})...)
}

// onSessionClosed has nothing to fetch from any more.
func (m *machine) onSessionClosed(epoch uint64, why error) []effect {
	if epoch < m.epoch || m.state == Detached {
		return nil
	}
	effects := m.leaveSession()
	m.epoch, m.state, m.closed, m.due = epoch, Detached, why, false
	for asked := range m.waiting {
		delete(m.waiting, asked)
		effects = append(effects, answerFailure{asked, why})
	}
	return effects
}

// leaveSession lets go of what runs on the session.
func (m *machine) leaveSession() []effect {
	if m.state == Detached {
		return nil
	}
	effects := []effect{closeWatch{}}
	if m.inFlight() {
		effects = append(effects, abandon{})
	}
	return effects
}
