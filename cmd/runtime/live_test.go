package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// screen is what a terminal got.
type screen struct {
	mu  sync.Mutex
	got bytes.Buffer
}

func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(text)
}

// shows is the lines that one would see.
func (s *screen) shows() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(s.got.String(), "\n")
	for i, line := range lines {
		if at := strings.LastIndex(line, "\r\x1b[K"); at >= 0 {
			lines[i] = line[at+len("\r\x1b[K"):]
		}
	}
	return lines
}

func TestTheLiveLineStaysBeneathWhatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &screen{}
		line := newLive(seen, func() int { return 30 })
		began := time.Now()
		line.Follow(func(now time.Time) string { return "working " + seconds(now.Sub(began)) })
		time.Sleep(1250 * time.Millisecond)
		write := func(text string) {
			if _, err := line.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		write("turn 1\n")
		time.Sleep(time.Second)
		if got := strings.Join(seen.shows(), "|"); got != "turn 1|working 2.2 s" {
			t.Errorf("the terminal shows %q", got)
		}
		line.Follow(func(time.Time) string { return strings.Repeat("é", 50) })
		time.Sleep(time.Second)
		if got := strings.Join(seen.shows(), "|"); got != "turn 1|"+strings.Repeat("é", 28)+"…" {
			t.Errorf("the terminal shows %q", got)
		}
		line.Leave()
		line.Leave()
		write("the end\n")
		if got := strings.Join(seen.shows(), "|"); got != "turn 1|the end|" {
			t.Errorf("the terminal shows %q", got)
		}
	})
}
