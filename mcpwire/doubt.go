package mcpwire

import (
	"context"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

// doubt is whether the server is still the one that was negotiated with: it may
// have been replaced by one of the other era, which refuses everything for ever
// (2026-07-28, Versioning: "re-probing if the cached assumption later fails").
type doubt struct {
	// discover are the params of the question that a modern server answered. An
	// older one's session is its own proof.
	discover []byte
	gone     chan struct{}
	once     sync.Once

	mu sync.Mutex
	// next is when the question may be asked again.
	next time.Time
}

// doubtPause is the least time between two questions, so that a server with one
// odd tool is not asked at each call of it.
const doubtPause = 30 * time.Second

// outdated ends the session for good.
func (s *streamable) outdated() { s.doubt.once.Do(func() { close(s.doubt.gone) }) }

// wonder asks a modern server, away from any caller, whether it is one still, when
// a request met what an older server would say to it.
func (s *streamable) wonder(agreed *agreement, fault *Fault, credential string) {
	if agreed == nil || !agreed.modern || !denies(fault) || fault.Class == ClassMalformed || fault.aboutRequest() && !unsupports(fault) {
		return
	}
	s.doubt.mu.Lock()
	defer s.doubt.mu.Unlock()
	if time.Now().Before(s.doubt.next) {
		return
	}
	s.doubt.next = time.Now().Add(doubtPause)
	s.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, s.ProbeTimeout)
		defer cancel()
		_, denial := s.once(ctx, &Message{Method: methodDiscover, Params: s.doubt.discover, Credential: credential}, agreed)
		if denial != nil && denies(denial) {
			s.Logger.Info("the server speaks another era of the protocol now", zap.String("server", s.Server))
			s.outdated()
		}
	})
}

// denies says that a fault is a server's definite answer, and one that a server
// of the other era would give.
func denies(fault *Fault) bool {
	switch fault.Status {
	case 0:
		return fault.Class == ClassRefused || fault.Class == ClassMalformed
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusGone, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return true
	}
	return false
}

// unsupports says that the server does not speak the request's revision.
func unsupports(fault *Fault) bool {
	return fault.Server != nil && fault.Server.modernCode() == codeUnsupportedVersion
}
