package endpoint

import (
	"context"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/secret"
)

const (
	// refusalLimit bounds what is read of a refusal, in bytes.
	refusalLimit = 64 << 10
	// wholeLimit bounds an answer that comes as one JSON document, in bytes.
	wholeLimit = 32 << 20
	// lingering is how long a whole answer waits for what comes after it, its usage.
	lingering = 2 * time.Second
	// parting is how long the stream's end is waited for, so that the connection
	// can serve again.
	parting = 100 * time.Millisecond
	// partingLimit bounds what is read in that time, in bytes.
	partingLimit = 4 << 10
)

// errIdle ends the context of an attempt whose endpoint fell silent.
var errIdle = errors.New("no byte arrived in time")

// attempt sends the request once and reads the answer to its end.
func (e *Endpoint) attempt(ctx context.Context, dialect Dialect, body []byte, answer Answer, show func(string)) *Fault {
	key, failed := e.credential(ctx)
	if failed != nil {
		return failed
	}
	failed = e.exchange(ctx, dialect, body, key, answer, show)
	if failed != nil {
		failed.Said = presentable(failed.Said, key.Reveal())
	}
	return failed
}

func (e *Endpoint) credential(ctx context.Context) (secret.Text, *Fault) {
	if e.options.Key == nil {
		return secret.Text{}, nil
	}
	key, err := e.options.Key(ctx)
	if err == nil {
		return key, nil
	}
	failed := &Fault{Predicate: "was not asked, because its key could not be had", Cause: err}
	if known, ok := errors.AsType[failure.Failure](err); ok {
		failed.Said = known.Error()
	}
	return secret.Text{}, failed
}

func (e *Endpoint) exchange(ctx context.Context, dialect Dialect, body []byte, key secret.Text, answer Answer, show func(string)) *Fault {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(e.idle, func() { cancel(errIdle) })
	defer patience.Stop()

	var arriving *impatientBody
	response, err := dialect.Send(ctx, body, key,
		func(request *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
			response, err := next(request)
			if err != nil {
				return nil, err
			}
			arriving = &impatientBody{ReadCloser: response.Body, patience: patience, idle: e.idle}
			response.Body = arriving
			if response.StatusCode/100 != 2 {
				// Turned into a fault here: the libraries forget the status of a
				// refusal that is not in its API's form.
				return nil, refusalOf(response)
			}
			return response, nil
		})
	if err != nil {
		return e.unanswered(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	patience.Stop()

	failed := read(answer, dialect, response, arriving, show)
	if failed != nil && failed.Cause != nil {
		failed = e.brokenOff(ctx, failed)
	}
	if failed != nil && answer.Finished() && failed.Passing {
		// The answer is whole; what broke is what came after it.
		failed = nil
	}
	return failed
}

// Events are the data of a stream's events, and the error that ends it.
type Events = iter.Seq2[[]byte, error]

// Decode reads events with the decoder of an API's library.
func Decode[E any](decoder interface {
	Next() bool
	Event() E
	Err() error
}, data func(E) []byte) Events {
	return func(yield func([]byte, error) bool) {
		for decoder.Next() {
			if !yield(data(decoder.Event()), nil) {
				return
			}
		}
		if err := decoder.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// read takes an answer in to its end: a stream of events or, from an endpoint
// that does not stream, one JSON document.
func read(answer Answer, dialect Dialect, response *http.Response, body *impatientBody, show func(string)) *Fault {
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if media == "application/json" {
		whole, err := io.ReadAll(io.LimitReader(body, wholeLimit))
		if err != nil {
			return &Fault{Predicate: BrokeOff, Cause: err, Passing: true}
		}
		if _, failed := answer.Take(whole, show); failed != nil {
			return failed
		}
		return complete(answer)
	}
	seen := false
	for data, err := range dialect.Events(response) {
		if err != nil {
			return &Fault{Predicate: BrokeOff, Cause: err, Passing: true}
		}
		seen = true
		over, failed := answer.Take(data, show)
		switch {
		case failed != nil:
			return failed
		case over:
			body.idle = min(body.idle, parting)
			_, _ = io.CopyN(io.Discard, body, partingLimit) // only the connection's reuse is at stake
			return complete(answer)
		case answer.Finished():
			body.idle = min(body.idle, lingering)
		}
	}
	if !seen && media != "text/event-stream" {
		return &Fault{Predicate: "answered with something else than a stream of events"}
	}
	return complete(answer)
}

// complete judges an answer whose end was reached.
func complete(answer Answer) *Fault {
	if !answer.Finished() {
		return &Fault{Predicate: "ended its answer without saying that it was whole", Passing: true}
	}
	return nil
}

// impatientBody lets the clock run while it waits for the endpoint, and only
// then: the time that the reader of the pieces takes is not the endpoint's.
type impatientBody struct {
	io.ReadCloser
	patience *time.Timer
	idle     time.Duration
}

func (b *impatientBody) Read(p []byte) (int, error) {
	b.patience.Reset(b.idle)
	defer b.patience.Stop()
	return b.ReadCloser.Read(p)
}
