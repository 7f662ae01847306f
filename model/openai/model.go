package openai

import (
	"context"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/secret"
)

const (
	defaultIdle     = 60 * time.Second
	defaultAttempts = 4
)

// Options says which endpoint answers, and how patient to be with it.
type Options struct {
	// BaseURL is what stands before /chat/completions, such as
	// https://api.openai.com/v1.
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
	// Logger learns of repeated attempts; nil is silent.
	Logger *zap.Logger
}

// Model is one endpoint. It is safe for concurrent use.
type Model struct {
	client   sdk.Client
	host     string
	key      func(context.Context) (secret.Text, error)
	idle     time.Duration
	attempts int
	// backoff is the longest pause before the second attempt; it doubles from there.
	backoff time.Duration
	logger  *zap.Logger
}

var _ model.Port = (*Model)(nil)

// New returns the model behind an endpoint. It fails with [failure.SpecInvalid]
// where the options cannot be used, and opens no connection.
func New(options Options) (*Model, error) {
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
	}
	m := &Model{
		host: base.Host, key: options.Key, idle: options.Idle, attempts: options.Attempts,
		backoff: firstPause, logger: options.Logger,
	}
	if m.idle == 0 {
		m.idle = defaultIdle
	}
	if m.attempts == 0 {
		m.attempts = defaultAttempts
	}
	if m.logger == nil {
		m.logger = zap.NewNop()
	}
	// A redirect would carry the key and the conversation to another address.
	client := *options.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	// The library's own constructor would read OPENAI_* variables.
	m.client = sdk.Client{Options: []option.RequestOption{
		option.WithBaseURL(options.BaseURL),
		option.WithHTTPClient(&client),
		option.WithMaxRetries(0),
		option.WithHeader("Accept", "text/event-stream, application/json"),
	}}
	return m, nil
}

func invalid(sentence string) error { return failure.New(failure.KindSpecInvalid, sentence, nil) }

// Generate implements [model.Port]. An attempt is repeated only while none of
// its text was shown.
func (m *Model) Generate(ctx context.Context, request model.Request, onText func(piece string)) (model.Response, error) {
	body, err := encode(request)
	if err != nil {
		return model.Response{}, err
	}
	shown := false
	show := func(piece string) {
		if onText != nil && piece != "" {
			shown = true
			onText(piece)
		}
	}
	for attempt := 1; ; attempt++ {
		answer, fault := m.attempt(ctx, body, show)
		switch {
		case fault == nil:
			return answer.response(takenIDs(request), int64(len(body))), nil
		case ctx.Err() != nil:
			return model.Response{}, ended(ctx)
		case shown:
			return model.Response{}, fault.failure(m.host, " after part of its answer was shown")
		case !fault.passing || attempt == m.attempts:
			return model.Response{}, fault.failure(m.host, tries(attempt))
		}
		pause := pauseBefore(attempt, m.backoff, fault.after)
		m.logger.Warn("the model is asked again", zap.String("endpoint", m.host),
			zap.Int("attempt", attempt), zap.Duration("pause", pause), zap.String("because", fault.predicate))
		if !wait(ctx, pause) {
			return model.Response{}, ended(ctx)
		}
	}
}
