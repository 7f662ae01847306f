package psych

import (
	"context"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/anthropic"
	"github.com/psych-systems/psych-go/model/openai"
	"github.com/psych-systems/psych-go/secret"
)

// Model connects a runtime to a language model, through the runtime's egress.
type Model func(out *egress.Egress, logger *zap.Logger) (model.Port, error)

// OpenAI is a model behind any endpoint that is compatible with OpenAI's chat
// completions, such as https://api.openai.com/v1. The base URL opens its own
// address for the model and nothing else. The key is asked for at each request;
// nil sends none.
func OpenAI(baseURL string, key func(ctx context.Context) (secret.Text, error)) Model {
	return func(out *egress.Egress, logger *zap.Logger) (model.Port, error) {
		client, err := out.ModelClient(baseURL)
		if err != nil {
			return nil, err
		}
		return openai.New(openai.Options{BaseURL: baseURL, Client: client, Key: key, Logger: logger})
	}
}

// Anthropic is a model behind Anthropic's Messages API, or any endpoint that speaks
// it. The base URL is what stands before /v1/messages, such as
// https://api.anthropic.com; it opens its own address for the model and nothing else.
// The key is asked for at each request; nil sends none.
func Anthropic(baseURL string, key func(ctx context.Context) (secret.Text, error)) Model {
	return func(out *egress.Egress, logger *zap.Logger) (model.Port, error) {
		client, err := out.ModelClient(baseURL)
		if err != nil {
			return nil, err
		}
		return anthropic.New(anthropic.Options{BaseURL: baseURL, Client: client, Key: key, Logger: logger})
	}
}

// UseModel is a model of the program's own making.
func UseModel(port model.Port) Model {
	return func(*egress.Egress, *zap.Logger) (model.Port, error) { return port, nil }
}

// noModel answers in a runtime that was made without one.
type noModel struct{}

func (noModel) Generate(context.Context, model.Request, func(string)) (model.Response, error) {
	return model.Response{}, errNoModel
}
