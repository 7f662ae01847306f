package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/endpoint"
)

// chunk is one event of the stream, or the whole answer of an endpoint that
// does not stream. Every member may be absent or null.
type chunk struct {
	Error   json.RawMessage `json:"error"`
	Choices choices         `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
}

type choice struct {
	Delta        delta `json:"delta"`
	Message      delta `json:"message"`
	FinishReason loose `json:"finish_reason"`
}

// choices is the first of a list, because one answer was asked for; nil for none.
// What an endpoint sends besides takes no room.
type choices struct{ first *choice }

// UnmarshalJSON fails where there is no list and where its first is no choice.
func (c *choices) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	list := json.NewDecoder(bytes.NewReader(data))
	if opened, err := list.Token(); err != nil || opened != json.Delim('[') {
		return errors.New("the choices are no list")
	}
	if !list.More() {
		return nil
	}
	c.first = &choice{}
	return list.Decode(c.first)
}

type delta struct {
	Content   content     `json:"content"`
	Refusal   loose       `json:"refusal"`
	ToolCalls []callDelta `json:"tool_calls"`
}

// loose is a text, or the JSON text of whatever stands in its place; null is "".
type loose string

// UnmarshalJSON never fails on JSON.
func (l *loose) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	*l = loose(text)
	return nil
}

// content is a text, or the texts of a list of parts.
type content string

// UnmarshalJSON never fails on JSON; what is neither form says nothing.
func (c *content) UnmarshalJSON(data []byte) error {
	var whole string
	if json.Unmarshal(data, &whole) == nil {
		*c = content(whole)
		return nil
	}
	var parts []struct {
		Text loose `json:"text"`
	}
	_ = json.Unmarshal(data, &parts) // leaves no part where it is no list of parts
	var text strings.Builder
	for _, part := range parts {
		text.WriteString(string(part.Text))
	}
	*c = content(text.String())
	return nil
}

// assembly puts one answer together. Its zero value is ready for use.
type assembly struct {
	text  strings.Builder
	calls calls
	usage model.Usage
	// finish is why the answer ended; "" while it has not.
	finish string
}

// Take implements [endpoint.Answer].
func (a *assembly) Take(data []byte, show func(string)) (over bool, failed *endpoint.Fault) {
	data = bytes.TrimSpace(data)
	if bytes.Equal(data, []byte("[DONE]")) {
		return true, nil
	}
	return false, a.add(data, show)
}

// Finished implements [endpoint.Answer].
func (a *assembly) Finished() bool { return a.finish != "" }

// add takes in one chunk and shows its text.
func (a *assembly) add(data []byte, show func(string)) *endpoint.Fault {
	var next chunk
	if err := json.Unmarshal(data, &next); err != nil {
		return &endpoint.Fault{Predicate: "sent a piece of its answer that cannot be read", Passing: true}
	}
	if len(next.Error) > 0 && !bytes.Equal(next.Error, []byte("null")) {
		return reported(next.Error)
	}
	if usage, ok := usageOf(next.Usage); ok {
		a.usage = usage
	}
	choice := next.Choices.first
	if choice == nil {
		return nil
	}
	for _, part := range []delta{choice.Delta, choice.Message} {
		for _, piece := range []string{string(part.Content), string(part.Refusal)} {
			a.text.WriteString(piece)
			show(piece)
		}
		for _, piece := range part.ToolCalls {
			a.calls.add(piece)
		}
	}
	if choice.FinishReason == "error" {
		return &endpoint.Fault{Predicate: endpoint.BrokeOff, Passing: true}
	}
	if choice.FinishReason != "" {
		a.finish = string(choice.FinishReason)
	}
	return nil
}

// reported is the fault that an endpoint tells of inside its answer. A numeric
// code is the status that it would have answered with.
func reported(raw json.RawMessage) *endpoint.Fault {
	var event struct {
		Code loose `json:"code"`
	}
	_ = json.Unmarshal(raw, &event) // an error that is a mere text has no code
	status, err := strconv.Atoi(string(event.Code))
	return &endpoint.Fault{
		Predicate: "reported an error inside its answer",
		Said:      endpoint.MessageOf(raw),
		Passing:   err != nil || endpoint.Passes(status),
	}
}

// response is the finished answer. Ids that are missing, or that are taken by an
// earlier call, are made up.
func (a *assembly) response(taken map[string]bool, requestBytes int64) model.Response {
	answer := model.Response{Text: a.text.String(), Usage: a.usage, RequestBytes: requestBytes}
	switch a.finish {
	case "length":
		answer.Cut = "the answer was cut because it reached the model's length limit"
	case "content_filter":
		answer.Cut = "the answer was cut by the endpoint's content filter"
	}
	for _, one := range a.calls.begun {
		answer.ToolCalls = append(answer.ToolCalls, model.ToolCall{
			ID: one.id, Name: one.name, Arguments: one.arguments.String(),
		})
	}
	endpoint.GiveIDs(answer.ToolCalls, taken)
	return answer
}
