package run

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/psych-systems/psych-go/messages"
)

// sessions is the sessions that one Run has for itself. There may be several for
// one server: when a credential is rotated under a Run, the next session is another
// connection's. It outlives the incarnations of the Run's actor, so that whoever
// sees the Run's end can give all of them up.
type sessions struct {
	mu    sync.Mutex
	known []*messages.Target
}

// note remembers a target of which the pool is asked, if its session is the Run's
// own.
func (s *sessions) note(target *messages.Target) {
	if target.GetSession() == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.known, func(one *messages.Target) bool { return proto.Equal(one.GetKey(), target.GetKey()) }) {
		s.known = append(s.known, target)
	}
}

// all returns every target that was noted.
func (s *sessions) all() []*messages.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.known)
}
