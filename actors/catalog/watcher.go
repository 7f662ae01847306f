package catalog

import "time"

// steady is how long the watcher's stream has to stay open to count as working.
// One that ends sooner is opened again ever later, so that a server which ends it
// each time is not asked without end.
const steady = time.Minute

// watcher is where the stream of changes stands.
type watcher struct {
	// opened is when the stream opened; zero while it has not.
	opened time.Time
	// breaks counts the times in a row that it ended before it was steady.
	breaks int
}

// onWatchOpened knows that changes are announced from now on. What changed
// before is not.
func (m *machine) onWatchOpened(epoch uint64, now time.Time) []effect {
	if epoch != m.epoch || m.state == Detached {
		return nil
	}
	m.opened = now
	return m.onDoubt(now)
}

// onWatchEnded opens the stream again, unless the server offers none.
func (m *machine) onWatchEnded(epoch uint64, again bool, now time.Time) []effect {
	if epoch != m.epoch || m.state == Detached || !again {
		return nil
	}
	if !m.opened.IsZero() && now.Sub(m.opened) >= steady {
		m.breaks = 0
	}
	m.opened = time.Time{}
	m.breaks++
	return []effect{openWatch{epoch: epoch, breaks: m.breaks}}
}
