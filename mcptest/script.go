package mcptest

import (
	"slices"
	"sync"
	"testing"
)

// scripted is a peer that plays scripts: what it was told to do, what came, and
// the waiting for it.
type scripted struct {
	tb testing.TB

	mu      sync.Mutex
	changed chan struct{} // closed and made anew at each change that a test may wait for
	scripts map[string][]Behaviour
	log     []Request
}

func (s *scripted) prepare(tb testing.TB) {
	s.tb, s.changed, s.scripts = tb, make(chan struct{}), make(map[string][]Behaviour)
}

// Behaviour is how a request is answered when that is not the ordinary way: a few
// steps, one after the other. A behaviour whose steps answer nothing ([Delay],
// [Until], [Execute]) goes on with the ordinary answer.
//
// Behaviours are values: they may be kept in tables and used by many servers.
type Behaviour struct {
	name  string
	times int // how many requests it is for; 0 is all of them
	steps []func(*Exchange)
}

// Do is a behaviour of a test's own, with a name for tables.
func Do(name string, step func(*Exchange)) Behaviour {
	return Behaviour{name: name, steps: []func(*Exchange){step}}
}

// String is what the behaviour does, in a few words.
func (b Behaviour) String() string { return b.name }

// Named is the same behaviour under another name.
func (b Behaviour) Named(name string) Behaviour {
	b.name = name
	return b
}

// Then is this behaviour and, on the same request, the next ones.
func (b Behaviour) Then(next ...Behaviour) Behaviour {
	b.steps = slices.Clone(b.steps)
	for _, n := range next {
		b.name += ", then " + n.name
		b.steps = append(b.steps, n.steps...)
	}
	return b
}

// Times is this behaviour for the next n requests only; n is at least 1.
func (b Behaviour) Times(n int) Behaviour {
	if n < 1 {
		panic("mcptest: a behaviour is for at least one request")
	}
	b.times = n
	return b
}

// Once is this behaviour for the next request only.
func (b Behaviour) Once() Behaviour { return b.Times(1) }

// On gives a script to requests about one thing, in place of any script before:
// its behaviours answer one after the other, each as many requests as its
// [Behaviour.Times] says, and one without Times all that follow. After the script,
// and with an empty one, the server is ordinary.
//
// Of several scripts for a request the narrowest counts: [LostSession], [CallOf]
// and [Resume] come before methods and grant types, those before paths, and [Any]
// comes last.
func (s *scripted) On(what string, script ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[what] = slices.Clone(script)
}

// behaviour takes the next behaviour for a request from the scripts.
func (s *scripted) behaviour(r Request) Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range []string{LostSession, CallOf(r.Tool), Resume, Response, r.Method, r.grantType(), r.path(), r.HTTPMethod, Any} {
		script := s.scripts[what]
		if len(script) == 0 || !r.About(what) {
			continue
		}
		next := script[0]
		if next.times == 1 {
			s.scripts[what] = script[1:]
		} else if next.times > 1 {
			script[0].times--
		}
		return next
	}
	return Behaviour{}
}

// play answers a request as its script says, or as an ordinary peer.
func (s *scripted) play(x *Exchange) {
	behaviour := s.behaviour(x.Request)
	s.record(x.Request)
	for _, step := range behaviour.steps {
		if step(x); x.over {
			return
		}
	}
	if !x.answered {
		x.Ordinary()
	}
}
