package mcpwire

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// Servers end the POST of a message before they answer it, after, or never. The
// reply waits for it only while it has not ended, and not for long.
func TestAReplyOverHTTPSSEWaitsForNothingThatIsOver(t *testing.T) {
	const soon = 10 * time.Millisecond
	for name, c := range map[string]struct {
		reply, post, waits time.Duration
	}{
		"the POST ends first":     {2 * soon, soon, 2 * soon},
		"at the same time":        {soon, soon, soon},
		"the reply comes first":   {soon, 2 * soon, 2 * soon},
		"the POST does not end":   {soon, time.Hour, soon + linger},
		"both are there at once":  {0, 0, 0},
		"the POST ended long ago": {time.Minute, 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &httpSSE{wire: &wire{Options: Options{Logger: zap.NewNop()}}}
				waiting, posted := make(chan found, 1), make(chan *Fault, 1)
				time.AfterFunc(c.reply, func() { waiting <- found{reply: &Reply{}} })
				time.AfterFunc(c.post, func() { posted <- nil })
				begun := time.Now()
				if _, fault := h.await(t.Context(), new(atomic.Bool), waiting, posted); fault != nil {
					t.Error(fault)
				}
				if took := time.Since(begun); took != c.waits {
					t.Errorf("the reply was there after %v, not after %v", took, c.waits)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
