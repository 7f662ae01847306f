package openai

import (
	"context"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/endpoint"
	"github.com/psych-systems/psych-go/secret"
)

// Options says which endpoint answers, and how patient to be with it. BaseURL is
// what stands before /chat/completions, such as https://api.openai.com/v1.
type Options = endpoint.Options

// Model is one endpoint. It is safe for concurrent use.
type Model struct {
	endpoint *endpoint.Endpoint
	client   sdk.Client
}

var _ model.Port = (*Model)(nil)

// New returns the model behind an endpoint. It fails with failure.SpecInvalid
// where the options cannot be used, and opens no connection.
func New(options Options) (*Model, error) {
	behind, err := endpoint.New(options)
	if err != nil {
		return nil, err
	}
	// The library's own constructor would read OPENAI_* variables.
	return &Model{endpoint: behind, client: sdk.Client{Options: []option.RequestOption{
		option.WithBaseURL(options.BaseURL),
		option.WithHTTPClient(behind.Client()),
		option.WithMaxRetries(0),
		option.WithHeader("Accept", "text/event-stream, application/json"),
	}}}, nil
}

// Generate implements [model.Port]. An attempt is repeated only while none of
// its text was shown.
func (m *Model) Generate(ctx context.Context, request model.Request, onText func(piece string)) (model.Response, error) {
	body, err := encode(request)
	if err != nil {
		return model.Response{}, err
	}
	var answer *assembly
	begin := func() endpoint.Answer { answer = &assembly{}; return answer }
	if err := m.endpoint.Ask(ctx, endpoint.Dialect{Send: m.send, Events: events}, body, begin, onText); err != nil {
		return model.Response{}, err
	}
	return answer.response(endpoint.TakenIDs(request), int64(len(body))), nil
}

func (m *Model) send(ctx context.Context, body []byte, key secret.Text, through endpoint.Middleware) (*http.Response, error) {
	options := []option.RequestOption{option.WithMiddleware(through)}
	if !key.IsZero() {
		options = append(options, option.WithAPIKey(key.Reveal()))
	}
	var response *http.Response
	err := m.client.Post(ctx, "chat/completions", body, &response, options...)
	return response, err
}

func events(response *http.Response) endpoint.Events {
	return endpoint.Decode(ssestream.NewDecoder(response), func(event ssestream.Event) []byte { return event.Data })
}
