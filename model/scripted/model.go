package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model"
)

// Model plays a script. It is safe for concurrent use, and the zero value has
// nothing to say.
type Model struct {
	next func(request model.Request, turn int) (Turn, error)
}

var _ model.Port = (*Model)(nil)

// New returns a model that plays turns. A conversation that goes on after the last
// one fails with failure.ModelError.
func New(turns ...Turn) *Model {
	return Func(func(_ model.Request, turn int) (Turn, error) {
		if turn > len(turns) {
			return Turn{}, failure.New(failure.KindModelError,
				fmt.Sprintf("the script has %s and the conversation asks for turn %d", counted(len(turns)), turn), nil)
		}
		return turns[turn-1], nil
	})
}

func counted(turns int) string {
	if turns == 1 {
		return "1 turn"
	}
	return fmt.Sprintf("%d turns", turns)
}

// Func returns a model that computes each answer from the request; turn counts
// from 1. The function must be safe for concurrent use. An error that it returns
// is Generate's, as a failure.ModelError unless it is another failure already.
func Func(next func(request model.Request, turn int) (Turn, error)) *Model { return &Model{next: next} }

// Generate implements [model.Port]. The text comes word by word, calls are named
// call_TURN_NUMBER, and no usage is reported.
func (m *Model) Generate(ctx context.Context, request model.Request, onText func(piece string)) (model.Response, error) {
	if err := ended(ctx); err != nil {
		return model.Response{}, err
	}
	size, err := json.Marshal(request)
	if err != nil {
		return model.Response{}, failure.New(failure.KindModelError, "the request to the model cannot be written as JSON", err)
	}
	number := 1
	for _, message := range request.Messages {
		if message.Role == model.RoleAssistant {
			number++
		}
	}
	turn, err := m.turn(request, number)
	if err != nil {
		return model.Response{}, err
	}
	response := model.Response{Text: turn.Text, RequestBytes: int64(len(size))}
	for i, call := range turn.ToolCalls {
		arguments, err := call.text()
		if err != nil {
			return model.Response{}, err
		}
		response.ToolCalls = append(response.ToolCalls, model.ToolCall{
			ID: fmt.Sprintf("call_%d_%d", number, i+1), Name: call.Name, Arguments: arguments,
		})
	}
	for piece := range strings.SplitAfterSeq(turn.Text, " ") {
		if err := ended(ctx); err != nil {
			return model.Response{}, err
		}
		if onText != nil && piece != "" {
			onText(piece)
		}
	}
	return response, nil
}

func (m *Model) turn(request model.Request, number int) (Turn, error) {
	if m.next == nil {
		return New().turn(request, number)
	}
	turn, err := m.next(request, number)
	if err == nil {
		return turn, turn.disappointed(number, request)
	}
	if _, known := errors.AsType[failure.Failure](err); !known {
		err = failure.New(failure.KindModelError, fmt.Sprintf("the scripted model failed in turn %d", number), err)
	}
	return Turn{}, err
}

// ended is the failure of a context that is over; nil while it is not.
func ended(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failure.New(failure.KindDeadlineExceeded, "the model did not answer before the deadline", context.Cause(ctx))
	default:
		return failure.New(failure.KindCancelled, "the request to the model was cancelled", context.Cause(ctx))
	}
}
