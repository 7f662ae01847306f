package connection

import "sync"

// sessions owns every session that was dialed for one incarnation of the actor,
// also one whose dialing ends after the incarnation has. Each is closed once,
// away from the actor; closing is bounded by the session.
type sessions struct {
	mu    sync.Mutex
	open  map[dialing]Session
	ended bool
}

// dialing names one attempt to connect.
type dialing struct {
	slot  string
	epoch uint64
}

func newSessions() *sessions { return &sessions{open: map[dialing]Session{}} }

// keep takes a session over; after the end it is closed at once.
func (s *sessions) keep(slot string, epoch uint64, session Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		go session.Close()
		return
	}
	s.open[dialing{slot, epoch}] = session
}

func (s *sessions) of(slot string, epoch uint64) Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[dialing{slot, epoch}]
}

func (s *sessions) close(slot string, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session, kept := s.open[dialing{slot, epoch}]; kept {
		delete(s.open, dialing{slot, epoch})
		go session.Close()
	}
}

// end closes all sessions and those that are still to come.
func (s *sessions) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, session := range s.open {
		go session.Close()
	}
	s.open = nil
}
