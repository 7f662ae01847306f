package mcptest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Model is a model endpoint on a loopback socket that speaks chat completions and
// Anthropic's messages, each as a stream and as one body. It refuses what the real
// endpoints refuse: tool names with other characters, and calls and results that do
// not belong together. Its methods are safe for concurrent use.
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

// URL is the base URL for chat completions; it ends in /v1.
func (m *Model) URL() string { return m.AnthropicURL() + "/v1" }

// AnthropicURL is the base URL for Anthropic's messages, which are asked for at
// /v1/messages beneath it.
func (m *Model) AnthropicURL() string { return "http://" + m.address }

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

// RequireKey makes the endpoint refuse requests with another key, which is a bearer
// token or, for messages, an X-Api-Key; "" takes any.
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
	spoken, known := apis[hr.URL.Path]
	if !known {
		spoken = chatCompletions{}
	}
	invalid := spoken.parse(&request, body)
	answer := m.take(request)
	switch {
	case hr.Method != http.MethodPost || !known:
		answer = ModelFailure(http.StatusNotFound, "Unknown request URL")
	case m.refuses(request.Token()):
		answer = ModelFailure(http.StatusUnauthorized, "Incorrect API key provided")
	case invalid != "":
		answer = ModelFailure(http.StatusBadRequest, invalid)
	}
	answer.write(w, spoken, request, hr)
}

// api is one of the forms that a Model speaks.
type api interface {
	// parse reads a body and says what a real endpoint would refuse; "" for nothing.
	parse(request *ModelRequest, body []byte) (invalid string)
	// chunks are the pieces of a streamed answer, each as it stands on the wire, and
	// its end, which a broken answer does not reach.
	chunks(a ModelAnswer, request ModelRequest) (chunks []string, end string)
	// completion is an answer as one body.
	completion(a ModelAnswer, request ModelRequest) object
	// failure is a failure as one body; event is an error inside a stream.
	failure(status int, message string) object
	event(raw string) string
}

// apis says what is spoken where.
var apis = map[string]api{"/v1/chat/completions": chatCompletions{}, "/v1/messages": messages{}}

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
	// MaxTokens is how long the answer may be; 0 where the request does not say.
	MaxTokens int
	// IncludeUsage says that a streamed answer is to end with its usage.
	IncludeUsage bool
	Messages     []ModelMessage
	Tools        []ModelTool
}

// Token is the request's key; "" for none.
func (r ModelRequest) Token() string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return r.Request.Token()
}

// ModelMessage is one message of a conversation. A request in the form of
// Anthropic's messages reads like one of chat completions: its system prompt is a
// message of the role "system" and each tool result one of the role "tool".
type ModelMessage struct {
	Role string
	// Content is the text, or raw JSON where it is no text.
	Content    string
	ToolCalls  []ModelCall
	ToolCallID string
	// Failed says that a tool result is marked as an error; chat completions have no
	// such mark.
	Failed bool
}

// ModelTool is a tool that the model was offered.
type ModelTool struct {
	Name        string
	Description string
	// Parameters is the schema, byte for byte.
	Parameters json.RawMessage
}
