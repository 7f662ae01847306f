package npm

import (
	"strings"
	"sync"
)

// printed collects what a server prints, on both of its streams.
type printed struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (p *printed) Write(piece []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(piece)
}

func (p *printed) add(piece string) { _, _ = p.Write([]byte(piece)) }

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}
