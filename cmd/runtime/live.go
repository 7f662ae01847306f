package main

import (
	"io"
	"sync"
	"time"
)

// redrawEvery is how often a live line is drawn anew, so that its seconds run.
const redrawEvery = 100 * time.Millisecond

// live keeps one line at the foot of a terminal that tells what is going on now.
// Everything else for the terminal is written through it and appears above. Its
// methods are safe for concurrent use.
type live struct {
	out   io.Writer
	width func() int

	mu sync.Mutex
	// describe is the line; nil draws none. It is called with mu held.
	describe func(now time.Time) string
	drawn    bool
	// stop ends the drawing, drew says that it has ended; nil while nothing draws.
	stop, drew chan struct{}
}

func newLive(out io.Writer, width func() int) *live { return &live{out: out, width: width} }

// Write writes above the line.
func (l *live) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	n, err := l.out.Write(text)
	l.draw(time.Now())
	return n, err
}

// Follow draws the line until [live.Leave].
func (l *live) Follow(describe func(now time.Time) string) {
	l.Leave()
	l.mu.Lock()
	defer l.mu.Unlock()
	stop, drew := make(chan struct{}), make(chan struct{})
	l.describe, l.stop, l.drew = describe, stop, drew
	go func() {
		defer close(drew)
		tick := time.NewTicker(redrawEvery)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				l.redraw(now)
			case <-stop:
				return
			}
		}
	}()
}

// Leave takes the line away. It may be called at any time, and again.
func (l *live) Leave() {
	l.mu.Lock()
	stop, drew := l.stop, l.drew
	l.describe, l.stop, l.drew = nil, nil, nil
	l.erase()
	l.mu.Unlock()
	if stop != nil {
		close(stop)
		<-drew
	}
}

func (l *live) redraw(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	l.draw(now)
}

// erase clears the line; mu is held.
func (l *live) erase() {
	if l.drawn {
		_, _ = io.WriteString(l.out, "\r\x1b[K")
		l.drawn = false
	}
}

// draw draws the line; mu is held. A last column stays free, because some
// terminals wrap when it is written.
func (l *live) draw(now time.Time) {
	if l.describe == nil {
		return
	}
	if line := shorten(l.describe(now), l.width()-1); line != "" {
		_, _ = io.WriteString(l.out, line)
		l.drawn = true
	}
}
