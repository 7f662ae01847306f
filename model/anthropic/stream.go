package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/shared"

	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/endpoint"
)

// event is one event of the stream, or the whole answer of an endpoint that does
// not stream. Its members are those of all the types together; any may be absent.
type event struct {
	Type    string          `json:"type"`
	Index   json.RawMessage `json:"index"`
	Message *message        `json:"message"`
	Block   block           `json:"content_block"`
	Delta   delta           `json:"delta"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`

	// A whole answer.
	Content    []block `json:"content"`
	StopReason string  `json:"stop_reason"`
}

type message struct {
	Usage json.RawMessage `json:"usage"`
}

type block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	PartialJSON string `json:"partial_json"`
	StopReason  string `json:"stop_reason"`
}

// call is a tool call as far as it is known.
type call struct {
	index, id, name string
	// input is what stood in the block when it began.
	input     string
	arguments strings.Builder
}

// assembly puts one answer together. Its zero value is ready for use.
type assembly struct {
	text strings.Builder
	// calls stand in the order in which they began.
	calls []*call
	usage model.Usage
	// stop is why the answer ended; "" while it has not.
	stop string
}

var _ endpoint.Answer = (*assembly)(nil)

// Finished implements [endpoint.Answer].
func (a *assembly) Finished() bool { return a.stop != "" }

// Take implements [endpoint.Answer]. Events and blocks of a type that is not known
// are passed over, as the API asks of its clients.
func (a *assembly) Take(data []byte, show func(string)) (over bool, failed *endpoint.Fault) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return false, nil // an event without data
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return false, unreadable()
	}
	switch kind.Type {
	case "message_start", "content_block_start", "content_block_delta", "message_delta", "message", "error", "":
	default:
		return kind.Type == "message_stop", nil
	}
	var next event
	if err := json.Unmarshal(data, &next); err != nil {
		return false, unreadable()
	}
	switch next.Type {
	case "message_start":
		if next.Message != nil {
			a.cost(next.Message.Usage)
		}
	case "content_block_start":
		a.begin(string(next.Index), next.Block, show)
	case "content_block_delta":
		a.grow(string(next.Index), next.Delta, show)
	case "message_delta":
		a.cost(next.Usage)
		a.end(next.Delta.StopReason)
	case "message":
		for _, whole := range next.Content {
			a.begin("", whole, show)
		}
		a.cost(next.Usage)
		a.end(next.StopReason)
	default:
		if len(next.Error) > 0 && string(next.Error) != "null" {
			return false, reported(next.Error)
		}
	}
	return false, nil
}

func unreadable() *endpoint.Fault {
	return &endpoint.Fault{Predicate: "sent a piece of its answer that cannot be read", Passing: true}
}

func (a *assembly) say(piece string, show func(string)) {
	a.text.WriteString(piece)
	show(piece)
}

func (a *assembly) begin(index string, begun block, show func(string)) {
	switch begun.Type {
	case "text":
		a.say(begun.Text, show)
	case "tool_use":
		input := string(begun.Input)
		if input == "null" {
			input = ""
		}
		a.calls = append(a.calls, &call{index: index, id: begun.ID, name: begun.Name, input: input})
	}
}

func (a *assembly) grow(index string, piece delta, show func(string)) {
	switch piece.Type {
	case "text_delta":
		a.say(piece.Text, show)
	case "input_json_delta":
		for i := len(a.calls) - 1; i >= 0; i-- {
			if a.calls[i].index == index {
				a.calls[i].arguments.WriteString(piece.PartialJSON)
				return
			}
		}
		// It belongs to a block that is not a call of ours.
	}
}

func (a *assembly) end(reason string) {
	if reason != "" {
		a.stop = reason
	}
}

func (a *assembly) cost(raw json.RawMessage) {
	var told *usage
	if json.Unmarshal(raw, &told) == nil {
		told.addTo(&a.usage)
	}
}

// staying are the errors that the same request would meet again.
var staying = map[shared.ErrorType]bool{
	shared.ErrorTypeInvalidRequestError: true,
	shared.ErrorTypeAuthenticationError: true,
	shared.ErrorTypePermissionError:     true,
	shared.ErrorTypeNotFoundError:       true,
	shared.ErrorTypeBillingError:        true,
	"request_too_large":                 true,
}

// reported is the fault that an endpoint tells of inside its answer.
func reported(raw json.RawMessage) *endpoint.Fault {
	var told struct {
		Type shared.ErrorType `json:"type"`
	}
	_ = json.Unmarshal(raw, &told) // an error that is a mere text has no type
	return &endpoint.Fault{
		Predicate: "reported an error inside its answer",
		Said:      endpoint.MessageOf(raw),
		Passing:   !staying[told.Type],
	}
}

// cuts says why an answer that ended for a reason is not whole.
var cuts = map[sdk.StopReason]string{
	sdk.StopReasonMaxTokens:                  "the answer was cut because it reached the model's length limit",
	sdk.StopReasonModelContextWindowExceeded: "the answer was cut because the model's context window is full",
	sdk.StopReasonRefusal:                    "the answer was cut because the endpoint refuses to go on with it",
	sdk.StopReasonPauseTurn:                  "the answer was cut because the endpoint paused it",
}

// response is the finished answer. Ids that are missing, that are taken by an
// earlier call, or that the API would not take back, are made up.
func (a *assembly) response(taken map[string]bool, requestBytes int64) model.Response {
	answer := model.Response{
		Text: a.text.String(), Usage: a.usage, RequestBytes: requestBytes, Cut: cuts[sdk.StopReason(a.stop)],
	}
	for _, one := range a.calls {
		asked := model.ToolCall{ID: one.id, Name: one.name, Arguments: one.arguments.String()}
		if !isPlain(asked.ID) {
			asked.ID = ""
		}
		if asked.Arguments == "" {
			// Nothing came in pieces; the block may have held all of it.
			asked.Arguments = one.input
		}
		answer.ToolCalls = append(answer.ToolCalls, asked)
	}
	endpoint.GiveIDs(answer.ToolCalls, taken)
	return answer
}
