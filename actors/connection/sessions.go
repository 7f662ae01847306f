package connection

import (
	"sync"

	"go.uber.org/zap"
)

// sessions owns every session that was dialed for one incarnation of the actor,
// also one whose dialing ends after the incarnation has. Each is closed once,
// away from the actor; closing is bounded by the session.
type sessions struct {
	logger *zap.Logger

	mu    sync.Mutex
	open  map[uint64]Session // by epoch
	ended bool
}

func newSessions(logger *zap.Logger) *sessions {
	return &sessions{logger: logger, open: map[uint64]Session{}}
}

// keep takes a session over; after the end it is closed at once.
func (s *sessions) keep(epoch uint64, session Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		go s.closed(session)
		return
	}
	s.open[epoch] = session
}

func (s *sessions) of(epoch uint64) Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[epoch]
}

// close closes a session, if it is there and open.
func (s *sessions) close(epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session, kept := s.open[epoch]; kept {
		delete(s.open, epoch)
		go s.closed(session)
	}
}

// end closes all sessions and those that are still to come.
func (s *sessions) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, session := range s.open {
		go s.closed(session)
	}
	s.open = nil
}

// closed closes a session. One that panics costs nobody else anything.
func (s *sessions) closed(session Session) {
	defer func() {
		if reason := recover(); reason != nil {
			s.logger.Error("closing a session panicked", zap.Any("reason", reason), zap.Stack("stack"))
		}
	}()
	session.Close()
}
