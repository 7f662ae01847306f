package mcpwire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/psych-systems/psych-go/mcpwire/bounded"
)

// span is the life of one HTTP exchange: it ends with its caller's context, with
// the wire, when its time is up, or when its answer stops coming.
type span struct {
	wire   *wire
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   func() bool // unties it from the wire
	timer  *time.Timer
	until  time.Time   // for a caller without a deadline
	idle   atomic.Bool // the timer waits for more of an answer, not for its beginning
	sent   atomic.Bool
	// token is the credential's value, to be kept out of sentences, and version the
	// one of a grant's token.
	token   string
	version uint64
}

func (w *wire) begin(ctx context.Context) *span {
	x := &span{wire: w}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.stop = context.AfterFunc(w.life, func() { x.cancel(errClosed) })
	if w.life.Err() != nil {
		x.cancel(errClosed) // AfterFunc would, but later
	}
	if _, bounded := ctx.Deadline(); !bounded {
		x.until = time.Now().Add(w.RequestTimeout)
		x.timer = time.AfterFunc(w.RequestTimeout, x.expire)
	}
	return x
}

// expire runs when the span's timer does.
func (x *span) expire() {
	if x.idle.Load() {
		x.cancel(&idleError{after: x.wire.IdleTimeout})
		return
	}
	x.cancel(errOvertime)
}

// limit gives the answer that long to begin, instead of what begin gave it; once
// it has begun, [span.unlimit] lets it be silent for as long as it likes.
func (x *span) limit(wait time.Duration) {
	if x.timer == nil {
		x.timer = time.AfterFunc(wait, x.expire)
		return
	}
	x.timer.Reset(wait)
}

func (x *span) unlimit() { x.timer.Stop() }

// finish ends the span; what is still open of its answer is closed.
func (x *span) finish() {
	if x.timer != nil {
		x.timer.Stop()
	}
	x.stop()
	x.cancel(nil)
}

// answer is a response's body as the span reads it: each byte that comes gives
// the next one IdleTimeout again.
type answer struct {
	span *span
	body io.ReadCloser
}

// answering says that the answer has begun.
func (x *span) answering(body io.ReadCloser) *answer {
	x.idle.Store(true)
	x.limit(x.wire.IdleTimeout)
	return &answer{span: x, body: body}
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if n > 0 {
		a.span.timer.Reset(a.span.wire.IdleTimeout)
		if until := a.span.until; !until.IsZero() && time.Now().After(until) {
			a.span.cancel(errOvertime)
			return n, errOvertime
		}
	}
	return n, err
}

// readAll reads the whole answer under the ceiling.
func (a *answer) readAll(hint int64) ([]byte, *Fault) {
	body, err := bounded.ReadAll(a, hint, a.span.wire.ceiling())
	if err != nil {
		return nil, a.span.outage(err)
	}
	return body, nil
}

// outage explains an error of this span.
func (x *span) outage(err error) *Fault { return x.wire.outage(x.ctx, err, x.sent.Load()) }

// linger is how long a connection is kept for the end of an answer whose reply
// has come already, so that it can serve again.
const linger = 250 * time.Millisecond

// drain reads on to the answer's end, away from the caller, and finishes the span.
func (x *span) drain(body io.ReadCloser) {
	work := func(context.Context) {
		stop := time.AfterFunc(linger, func() { x.cancel(nil) })
		_, _ = io.CopyN(io.Discard, body, 4<<10)
		stop.Stop()
		_ = body.Close()
		x.finish()
	}
	if !x.wire.spawn(work) {
		_ = body.Close()
		x.finish()
	}
}

// send makes one HTTP request and returns its response, whatever its status.
func (x *span) send(method string, target *url.URL, header http.Header, body []byte, credential string) (*http.Response, *Fault) {
	if err := x.authorize(header, credential); err != nil {
		if x.ctx.Err() != nil {
			return nil, x.wire.ended(context.Cause(x.ctx), false)
		}
		return nil, x.wire.unauthorized(err)
	}
	request := &http.Request{
		Method: method, URL: target, Host: target.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	ctx := x.ctx
	if body != nil {
		// A reader that net/http knows to be in memory leaves in one write with its
		// header; another would cost a second write, and the server a second wait.
		request.ContentLength = int64(len(body))
		request.GetBody = func() (io.ReadCloser, error) {
			x.sent.Store(false)
			return io.NopCloser(bytes.NewReader(body)), nil
		}
		request.Body, _ = request.GetBody()
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
	}
	response, err := x.wire.client.Do(request.WithContext(ctx))
	if err != nil {
		return nil, x.outage(err)
	}
	if x.version != 0 && x.wire.Accepted != nil && response.StatusCode != http.StatusUnauthorized {
		x.wire.Accepted(x.version)
	}
	return response, nil
}

func (x *span) authorize(header http.Header, credential string) error {
	if x.wire.Authorize == nil {
		return nil
	}
	token, err := x.wire.Authorize(x.ctx, credential)
	if err != nil {
		return err
	}
	if token.Value.IsZero() {
		return nil
	}
	x.token, x.version = token.Value.Reveal(), token.Version
	if !fitsField(x.token) {
		return errors.New("the credential cannot be carried by an HTTP header")
	}
	header[fieldAuthorization] = []string{"Bearer " + x.token}
	return nil
}
