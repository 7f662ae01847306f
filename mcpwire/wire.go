package mcpwire

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
)

// wire is what both transports stand on: HTTP requests to one server, each with
// its own context, and the goroutines that outlive a request. It has an end, and
// everything that it began ends with it.
type wire struct {
	Options
	target *url.URL
	client *http.Client
	ids    atomic.Int64

	life  context.Context // ends with the wire
	end   context.CancelCauseFunc
	mu    sync.Mutex
	over  bool // guarded by mu; nothing is begun after it
	owned sync.WaitGroup
}

func newWire(options Options, target *url.URL) *wire {
	life, end := context.WithCancelCause(context.Background())
	w := &wire{Options: options, target: target, life: life, end: end}
	client := *options.Client
	client.CheckRedirect = w.checkRedirect
	w.client = &client
	return w
}

// checkRedirect follows a redirect only where the credential belongs: on the
// server's own origin, and only when the message goes along. The response of a
// redirect that is not followed is a fault with the status that came.
func (w *wire) checkRedirect(next *http.Request, before []*http.Request) error {
	if !sameOrigin(next.URL, w.target) || next.Method != before[0].Method {
		return http.ErrUseLastResponse
	}
	if w.Client.CheckRedirect != nil {
		return w.Client.CheckRedirect(next, before)
	}
	if len(before) >= 10 {
		return http.ErrUseLastResponse
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && originPort(a) == originPort(b)
}

func originPort(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// spawn runs work that no caller waits for, until it returns or the wire ends.
// It is not run on a wire that has ended.
func (w *wire) spawn(work func(ctx context.Context)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	w.owned.Go(func() { work(w.life) })
	return true
}

// close ends everything that was begun and waits for it.
func (w *wire) close() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.end(errClosed)
	w.owned.Wait()
}

// courtesy sends what is for the server's sake alone, in its own time.
func (w *wire) courtesy(what string, work func(ctx context.Context) *Fault) bool {
	return w.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, w.CourtesyTimeout)
		defer cancel()
		if fault := work(ctx); fault != nil {
			w.Logger.Debug("a courtesy to the server failed", zap.String("what", what), zap.String("server", w.Server), zap.Error(fault))
		}
	})
}
