package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

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
func (m *Model) attempt(ctx context.Context, body []byte, show func(string)) (*assembly, *fault) {
	key, failed := m.credential(ctx)
	if failed != nil {
		return nil, failed
	}
	answer, failed := m.exchange(ctx, body, key, show)
	if failed != nil {
		failed.said = presentable(failed.said, key.Reveal())
		return nil, failed
	}
	return answer, nil
}

func (m *Model) credential(ctx context.Context) (secret.Text, *fault) {
	if m.key == nil {
		return secret.Text{}, nil
	}
	key, err := m.key(ctx)
	if err == nil {
		return key, nil
	}
	failed := &fault{predicate: "was not asked, because its key could not be had", cause: err}
	if known, ok := errors.AsType[failure.Failure](err); ok {
		failed.said = known.Error()
	}
	return secret.Text{}, failed
}

func (m *Model) exchange(ctx context.Context, body []byte, key secret.Text, show func(string)) (*assembly, *fault) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(m.idle, func() { cancel(errIdle) })
	defer patience.Stop()

	var arriving *impatientBody
	options := []option.RequestOption{option.WithMiddleware(
		func(request *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			response, err := next(request)
			if err != nil {
				return nil, err
			}
			arriving = &impatientBody{ReadCloser: response.Body, patience: patience, idle: m.idle}
			response.Body = arriving
			if response.StatusCode/100 != 2 {
				// Turned into a fault here: the library forgets the status of a
				// refusal that is not in its own form.
				return nil, refusalOf(response)
			}
			return response, nil
		})}
	if !key.IsZero() {
		options = append(options, option.WithAPIKey(key.Reveal()))
	}
	var response *http.Response
	if err := m.client.Post(ctx, "chat/completions", body, &response, options...); err != nil {
		return nil, m.unanswered(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	patience.Stop()

	answer := &assembly{}
	failed := answer.read(response, arriving, show)
	if failed != nil && failed.cause != nil {
		failed = m.brokenOff(ctx, failed)
	}
	if failed != nil && answer.finish != "" && failed.passing {
		// The answer is whole; what broke is what came after it.
		failed = nil
	}
	return answer, failed
}

// read takes the answer in to its end: a stream of events or, from an endpoint
// that does not stream, one JSON document.
func (a *assembly) read(response *http.Response, body *impatientBody, show func(string)) *fault {
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if media == "application/json" {
		whole, err := io.ReadAll(io.LimitReader(body, wholeLimit))
		if err != nil {
			return &fault{predicate: brokeOff, cause: err, passing: true}
		}
		if failed := a.add(whole, show); failed != nil {
			return failed
		}
		return a.complete()
	}
	events := ssestream.NewDecoder(response)
	seen := false
	for events.Next() {
		seen = true
		data := bytes.TrimSpace(events.Event().Data)
		if bytes.Equal(data, []byte("[DONE]")) {
			body.idle = min(body.idle, parting)
			_, _ = io.CopyN(io.Discard, body, partingLimit) // only the connection's reuse is at stake
			return a.complete()
		}
		if failed := a.add(data, show); failed != nil {
			return failed
		}
		if a.finish != "" {
			body.idle = min(body.idle, lingering)
		}
	}
	switch {
	case events.Err() != nil:
		return &fault{predicate: brokeOff, cause: events.Err(), passing: true}
	case !seen && media != "text/event-stream":
		return &fault{predicate: "answered with something else than a stream of events"}
	}
	return a.complete()
}

// complete judges an answer whose end was reached.
func (a *assembly) complete() *fault {
	if a.finish == "" {
		return &fault{predicate: "ended its answer without saying that it was whole", passing: true}
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
