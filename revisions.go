package psych

import (
	"sync"

	"github.com/psych-systems/psych-go/messages"
)

// maxRevisions bounds what is remembered; beyond it, all is forgotten, which
// costs one request at each next connect.
const maxRevisions = 10_000

// revisions remembers the protocol revision that each key's server negotiated
// last. A server that was changed meanwhile is asked anew by the connecting
// itself.
type revisions struct {
	mu    sync.Mutex
	known map[messages.PoolKey]string
}

func (r *revisions) of(key messages.PoolKey) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[key]
}

func (r *revisions) note(key messages.PoolKey, revision string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxRevisions {
		r.known = map[messages.PoolKey]string{}
	}
	r.known[key] = revision
}
