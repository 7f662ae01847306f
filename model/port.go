package model

import (
	"context"
	"encoding/json"
)

// Port asks a model. Implementations are safe for concurrent use.
type Port interface {
	// Generate sends one request and returns the whole answer. While it arrives,
	// each piece of text goes to onText, in order, on the calling goroutine;
	// onText may be nil. When an attempt is repeated after it had begun to
	// answer, onText is told nothing twice: pieces come from one attempt only.
	//
	// It fails with failure.ModelError (the sentence says what the endpoint did),
	// failure.EgressDenied, or, when ctx ends, failure.Cancelled or
	// failure.DeadlineExceeded.
	Generate(ctx context.Context, request Request, onText func(piece string)) (Response, error)
}

// Request is one question to a model.
type Request struct {
	// Model is the model's id at its endpoint.
	Model string
	// System is the instructions; "" sends none.
	System string
	// Messages is the conversation, oldest first.
	Messages []Message
	// Tools is what the model may call, in a stable order.
	Tools []Tool
}

// Role says who speaks in a message.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one turn of the conversation.
type Message struct {
	Role Role
	Text string
	// ToolCalls is what an assistant message asked for.
	ToolCalls []ToolCall
	// CallID is the call that a tool message answers.
	CallID string
	// Failed says that a tool message tells of a call that did not succeed. Its text
	// says so as well, for the APIs that have no such mark.
	Failed bool
}

// Tool is a tool as the model sees it.
type Tool struct {
	// Name is the public name.
	Name        string
	Description string
	// InputSchema is the raw JSON schema, byte for byte; empty means an object
	// without properties.
	InputSchema json.RawMessage
}

// ToolCall is a call that a model asked for. Nothing in it has been checked.
type ToolCall struct {
	// ID is the model's id of the call; adapters make one up where it is missing
	// or repeated.
	ID   string
	Name string
	// Arguments is the text as it came; it may be no JSON at all.
	Arguments string
}

// Response is one whole answer.
type Response struct {
	Text      string
	ToolCalls []ToolCall
	Usage     Usage
	// RequestBytes is the size of the request's body as it was sent.
	RequestBytes int64
	// Cut says that the endpoint ended the answer early (length, content filter)
	// and why; "" for a whole answer.
	Cut string
}

// Usage is what the endpoint said an answer cost, in tokens. A nil field was
// not reported.
type Usage struct {
	// Input counts input tokens that no cache supplied or stored.
	Input  *int64 `json:"input,omitempty"`
	Output *int64 `json:"output,omitempty"`
	// CacheRead counts input tokens that came from the provider's cache.
	CacheRead *int64 `json:"cache_read,omitempty"`
	// CacheWrite counts input tokens that the provider stored in its cache.
	CacheWrite *int64 `json:"cache_write,omitempty"`
	// Reasoning counts output tokens that the model thought and did not say; they
	// are part of Output.
	Reasoning *int64 `json:"reasoning,omitempty"`
}
