package mcptest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Model is a model endpoint on a loopback socket that speaks chat completions, as
// a stream and as one body. It refuses what the real endpoints refuse: tool names
// with other characters, and calls and results that do not belong together. Its
// methods are safe for concurrent use.
type Model struct {
	tb      testing.TB
	address string

	mu      sync.Mutex
	changed chan struct{} // closed and made anew at each request
	answers []ModelAnswer
	compute func(ModelRequest) ModelAnswer
	key     string
	log     []ModelRequest
}

// NewModel starts an endpoint that plays the answers, one a request and in order;
// the endpoint stops at the end of the test. A request after the last answer is
// refused with 400.
func NewModel(tb testing.TB, answers ...ModelAnswer) *Model {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("mcptest: the model cannot listen: %v", err)
	}
	m := &Model{tb: tb, address: listener.Addr().String(), answers: answers, changed: make(chan struct{})}
	tb.Cleanup(serve(listener, m, nil).stop)
	return m
}

// URL is the base URL of the endpoint; it ends in /v1.
func (m *Model) URL() string { return "http://" + m.address + "/v1" }

// Play adds answers to those that are still to be played.
func (m *Model) Play(answers ...ModelAnswer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers = append(slices.Clone(m.answers), answers...)
}

// AnswerWith computes every answer from its request; nil goes back to the list.
func (m *Model) AnswerWith(compute func(ModelRequest) ModelAnswer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.compute = compute
}

// RequireKey makes the endpoint refuse requests with another bearer token; "" takes
// any.
func (m *Model) RequireKey(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.key = key
}

// Requests are the requests so far, oldest first.
func (m *Model) Requests() []ModelRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

// WaitFor waits until n requests have come, and returns them. It ends the test when
// they do not come within 10 seconds. Call it on the test's goroutine.
func (m *Model) WaitFor(n int) []ModelRequest {
	m.tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		m.mu.Lock()
		log, changed := slices.Clone(m.log), m.changed
		m.mu.Unlock()
		if len(log) >= n {
			return log
		}
		select {
		case <-changed:
		case <-timer.C:
			m.tb.Fatalf("mcptest: %d of %d model requests came in %v", len(log), n, patience)
		}
	}
}

// ServeHTTP answers one request.
func (m *Model) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the client hung up
	}
	request := ModelRequest{Request: NewRequest(hr, body)}
	invalid := request.parse(body)
	answer := m.take(request)
	switch {
	case hr.Method != http.MethodPost || hr.URL.Path != "/v1/chat/completions":
		answer = ModelFailure(http.StatusNotFound, "Unknown request URL")
	case m.refuses(request.Token()):
		answer = ModelFailure(http.StatusUnauthorized, "Incorrect API key provided")
	case invalid != "":
		answer = ModelFailure(http.StatusBadRequest, invalid)
	}
	answer.write(w, request, hr)
}

// take logs a request and takes its answer.
func (m *Model) take(request ModelRequest) ModelAnswer {
	m.mu.Lock()
	m.log = append(m.log, request)
	close(m.changed)
	m.changed = make(chan struct{})
	compute := m.compute
	var next ModelAnswer
	switch {
	case compute != nil:
	case len(m.answers) == 0:
		next = ModelFailure(http.StatusBadRequest, "every answer has been played")
	default:
		next, m.answers = m.answers[0], m.answers[1:]
	}
	m.mu.Unlock()
	if compute != nil {
		return compute(request)
	}
	return next
}

func (m *Model) refuses(token string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.key != "" && m.key != token
}

// ModelRequest is one request as a [Model] saw it.
type ModelRequest struct {
	Request // its HTTP side; Body is every byte of it
	Model   string
	Stream  bool
	// IncludeUsage says that a streamed answer is to end with its usage.
	IncludeUsage bool
	Messages     []ModelMessage
	Tools        []ModelTool
}

// ModelMessage is one message of a conversation.
type ModelMessage struct {
	Role string
	// Content is the text, or raw JSON where it is no text.
	Content    string
	ToolCalls  []ModelCall
	ToolCallID string
}

// ModelTool is a tool that the model was offered.
type ModelTool struct {
	Name        string
	Description string
	// Parameters is the schema, byte for byte.
	Parameters json.RawMessage
}

// parse reads the body and says what a real endpoint would refuse; "" for nothing.
func (r *ModelRequest) parse(body []byte) (invalid string) {
	var wire struct {
		Model         string `json:"model"`
		Stream        bool   `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return fmt.Sprintf("the body cannot be read: %v", err)
	}
	r.Model, r.Stream, r.IncludeUsage = wire.Model, wire.Stream, wire.StreamOptions.IncludeUsage
	for _, m := range wire.Messages {
		message := ModelMessage{Role: m.Role, Content: string(m.Content), ToolCallID: m.ToolCallID}
		_ = json.Unmarshal(m.Content, &message.Content) // else it stays raw
		for _, c := range m.ToolCalls {
			message.ToolCalls = append(message.ToolCalls, ModelCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		r.Messages = append(r.Messages, message)
	}
	for _, t := range wire.Tools {
		r.Tools = append(r.Tools, ModelTool(t.Function))
	}
	return r.invalid()
}
