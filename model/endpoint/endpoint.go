package endpoint

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/secret"
)

const (
	defaultIdle     = 60 * time.Second
	defaultAttempts = 4
)

// Options says which endpoint answers, and how patient to be with it.
type Options struct {
	// BaseURL is what stands before the API's own path: an absolute http or https
	// URL, such as https://api.openai.com/v1 or https://api.anthropic.com.
	BaseURL string
	// Client sends the requests. It has no default: what may be reached is for
	// the caller to decide. Redirects are not followed, whatever the client says.
	Client *http.Client
	// Key is asked for the endpoint's key before each HTTP request; nil, and a
	// zero Text, send none.
	Key func(context.Context) (secret.Text, error)
	// Idle is how long the endpoint may send no byte; 0 means 60 s.
	Idle time.Duration
	// Attempts is how often a request is sent at most; 0 means 4.
	Attempts int
	// Backoff is the longest pause before the second attempt, and doubles from
	// there up to 8 s; 0 means 500 ms.
	Backoff time.Duration
	// Logger learns of repeated attempts; nil is silent.
	Logger *zap.Logger
}

// Endpoint is one endpoint. It is safe for concurrent use.
type Endpoint struct {
	options Options
	host    string
	client  http.Client
	idle    time.Duration
}

// Dialect is what an API's library does for an endpoint.
type Dialect struct {
	// Send sends a request's body once, and returns the response with its body
	// unread. The exchange goes through a middleware; a zero key sends none.
	Send func(ctx context.Context, body []byte, key secret.Text, through Middleware) (*http.Response, error)
	// Events reads the data of a stream's events.
	Events func(*http.Response) Events
}

// Middleware stands around one HTTP exchange.
type Middleware = func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error)

// Answer is an answer that is being put together.
type Answer interface {
	// Take takes in the data of one event, or a whole answer that came as one JSON
	// document, and shows its text. It reports whether nothing comes after it.
	Take(data []byte, show func(piece string)) (over bool, failed *Fault)
	// Finished reports whether the endpoint has said why the answer ended.
	Finished() bool
}

// New returns an endpoint. It fails with [failure.SpecInvalid] where the options
// cannot be used, and opens no connection.
func New(options Options) (*Endpoint, error) {
	base, err := url.Parse(options.BaseURL)
	switch {
	case err != nil:
		// The parser's own words would repeat the URL, which may hold a password.
		return nil, invalid("the model's base URL cannot be read")
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "":
		return nil, invalid("the model's base URL is no absolute http or https URL")
	case base.User != nil:
		return nil, invalid("the model's base URL must not hold a user or a password")
	case base.RawQuery != "", base.Fragment != "":
		return nil, invalid("the model's base URL must not have a query or a fragment")
	case options.Client == nil:
		return nil, invalid("the model needs an HTTP client")
	case options.Idle < 0:
		return nil, invalid("the model's idle time must not be negative")
	case options.Attempts < 0:
		return nil, invalid("the model's number of attempts must not be negative")
	case options.Backoff < 0:
		return nil, invalid("the model's pause between attempts must not be negative")
	}
	e := &Endpoint{options: options, host: base.Host, client: *options.Client, idle: options.Idle}
	if e.idle == 0 {
		e.idle = defaultIdle
	}
	if e.options.Attempts == 0 {
		e.options.Attempts = defaultAttempts
	}
	if e.options.Backoff == 0 {
		e.options.Backoff = firstPause
	}
	if e.options.Logger == nil {
		e.options.Logger = zap.NewNop()
	}
	// A redirect would carry the key and the conversation to another address.
	e.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return e, nil
}

func invalid(sentence string) error { return failure.New(failure.KindSpecInvalid, sentence, nil) }

// Client sends an API's requests to the endpoint.
func (e *Endpoint) Client() *http.Client { return &e.client }

// Ask sends a request and reads the answer that each attempt begins anew; the
// last one begun is the whole one where Ask does not fail. An attempt is
// repeated only while none of its text was shown. It fails as
// model.Port.Generate does.
func (e *Endpoint) Ask(ctx context.Context, dialect Dialect, body []byte, begin func() Answer, onText func(piece string)) error {
	shown := false
	show := func(piece string) {
		if onText != nil && piece != "" {
			shown = true
			onText(piece)
		}
	}
	for attempt := 1; ; attempt++ {
		fault := e.attempt(ctx, dialect, body, begin(), show)
		switch {
		case fault == nil:
			return nil
		case ctx.Err() != nil:
			return ended(ctx)
		case shown:
			return fault.Failure(e.host, " after part of its answer was shown")
		case !fault.Passing || attempt == e.options.Attempts:
			return fault.Failure(e.host, tries(attempt))
		}
		pause := pauseBefore(attempt, e.options.Backoff, fault.After)
		e.options.Logger.Warn("the model is asked again", zap.String("endpoint", e.host),
			zap.Int("attempt", attempt), zap.Duration("pause", pause), zap.String("because", fault.Predicate))
		if !wait(ctx, pause) {
			return ended(ctx)
		}
	}
}
