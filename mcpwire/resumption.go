package mcpwire

import (
	"context"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/mcpwire/eventstream"
)

// resumption is where the stream of an answer broke off and how often it was
// taken up again without getting on. Only revisions before 2026-07-28 have it
// (2025-11-25, "Resumability and Redelivery").
type resumption struct {
	lastEventID string
	wait        time.Duration
	given       bool // the server gave wait
	fruitless   int  // attempts since lastEventID last changed
}

const (
	// fruitlessResumptions is how often in a row a stream may bring nothing new.
	fruitlessResumptions = 5
	// resumeWait is the first pause where the server asks for none.
	resumeWait        = 500 * time.Millisecond
	longestResumeWait = 30 * time.Second
)

// after takes note of a stream that broke off; false when it cannot be resumed.
func (r *resumption) after(stream *eventstream.Reader) bool {
	if wait, given := stream.Retry(); given {
		r.wait, r.given = wait, true
	}
	if id := stream.LastEventID(); id != "" && id != r.lastEventID {
		r.lastEventID, r.fruitless = id, 0
	} else {
		r.fruitless++
	}
	return r.lastEventID != "" && r.fruitless <= fruitlessResumptions
}

// pause is how long to wait before the next attempt: what the server asked for,
// else longer each time that nothing new came.
func (r *resumption) pause() time.Duration {
	wait := resumeWait
	if r.given {
		wait = r.wait
	}
	// Bounded before it is doubled: a server may ask for years.
	return min(min(wait, longestResumeWait)<<r.fruitless, longestResumeWait)
}

// resume asks for the rest of a stream until it is given or refused; nil then.
func (s *streamable) resume(x *span, r *resumption, agreed *agreement, credential string) *http.Response {
	for ; r.fruitless <= fruitlessResumptions; r.fruitless++ {
		if !sleep(x.ctx, r.pause()) {
			return nil
		}
		x.limit(s.IdleTimeout)
		response, fault := x.send(http.MethodGet, s.target, agreed.streamHeader(r.lastEventID), nil, credential)
		if fault == nil && response.StatusCode == http.StatusOK &&
			mediaType(response.Header.Get(fieldContentType)) == mediaEventStream {
			return response
		}
		if fault == nil {
			fault = x.refusedStatus(response)
		}
		s.Logger.Debug("an answer's stream was not resumed", zap.String("server", s.Server), zap.Error(fault))
		if !passing(fault) {
			return nil
		}
	}
	return nil
}

// passing says that a fault may be gone at the next attempt.
func passing(fault *Fault) bool {
	switch fault.Status {
	case 0:
		return fault.Class == ClassUnsent || fault.Class == ClassBroken
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// sleep waits; false when ctx ends first.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
