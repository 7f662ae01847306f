package model_test

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/anthropic"
	"github.com/psych-systems/psych-go/model/openai"
	"github.com/psych-systems/psych-go/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// said is one answer of the conversation that every port is to hold.
type said struct {
	text  string
	calls []model.ToolCall // ids are the port's affair
}

// conversation has a text, calls beside a text, calls that are no JSON, and an end.
var conversation = []said{
	{text: "Let me look — größer als 東京.", calls: []model.ToolCall{
		{Name: "shop__find_order", Arguments: `{"number":7}`},
		{Name: "shop__find_order", Arguments: `{"number":8}`},
	}},
	{calls: []model.ToolCall{{Name: "shop__find_order", Arguments: `{"number":`}}},
	{text: "It is on its way."},
}

// ports makes each implementation of the port hold the conversation.
var ports = map[string]func(t *testing.T) model.Port{
	"openai":    func(t *testing.T) model.Port { return openAI(t, played(t)) },
	"anthropic": func(t *testing.T) model.Port { return claude(t, played(t)) },
	"scripted": func(*testing.T) model.Port {
		var turns []scripted.Turn
		for _, s := range conversation {
			turn := scripted.Turn{Text: s.text}
			for _, c := range s.calls {
				turn.ToolCalls = append(turn.ToolCalls, scripted.Call{Name: c.Name, Arguments: c.Arguments})
			}
			turns = append(turns, turn)
		}
		return scripted.New(turns...)
	},
}

// played is an endpoint that holds the conversation.
func played(t *testing.T) *mcptest.Model {
	endpoint := mcptest.NewModel(t)
	endpoint.AnswerWith(func(request mcptest.ModelRequest) mcptest.ModelAnswer {
		turn := 0
		for _, m := range request.Messages {
			if m.Role == "assistant" {
				turn++
			}
		}
		if turn >= len(conversation) {
			return mcptest.ModelFailure(http.StatusBadRequest, "nothing is left to say")
		}
		answer := mcptest.Say(conversation[turn].text)
		for _, c := range conversation[turn].calls {
			answer = answer.And(mcptest.ModelCall{ID: "same", Name: c.Name, Arguments: c.Arguments})
		}
		return answer
	})
	return endpoint
}

// adapters ask an endpoint, each in the form of its API.
var adapters = map[string]func(*testing.T, *mcptest.Model) model.Port{"openai": openAI, "anthropic": claude}

func openAI(t *testing.T, endpoint *mcptest.Model) model.Port {
	port, err := openai.New(openai.Options{BaseURL: endpoint.URL(), Client: newClient(t), Backoff: time.Millisecond})
	return made(t, port, err)
}

func claude(t *testing.T, endpoint *mcptest.Model) model.Port {
	port, err := anthropic.New(anthropic.Options{BaseURL: endpoint.AnthropicURL(), Client: newClient(t), Backoff: time.Millisecond})
	return made(t, port, err)
}

func newClient(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func made(t *testing.T, port model.Port, err error) model.Port {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func opening() model.Request {
	return model.Request{
		Model: "m", System: "Help.",
		Messages: []model.Message{{Role: model.RoleUser, Text: "Where is my order?"}},
		Tools:    []model.Tool{{Name: "shop__find_order", InputSchema: json.RawMessage(`{"type":"object"}`)}, {Name: "bare"}},
	}
}

// grow is the conversation after an answer and the results of its calls.
func grow(request model.Request, answer model.Response) model.Request {
	request.Messages = append(slices.Clone(request.Messages),
		model.Message{Role: model.RoleAssistant, Text: answer.Text, ToolCalls: answer.ToolCalls})
	for _, call := range answer.ToolCalls {
		request.Messages = append(request.Messages, model.Message{Role: model.RoleTool, CallID: call.ID, Text: "found"})
	}
	return request
}

// hold holds the whole conversation and returns the failure after its end.
func hold(ctx context.Context, t *testing.T, port model.Port) error {
	request, ids := opening(), make(map[string]bool)
	for turn, want := range conversation {
		before := len(request.Messages)
		var shown strings.Builder
		got, err := port.Generate(ctx, request, func(piece string) {
			if piece == "" {
				t.Errorf("turn %d shows an empty piece", turn)
			}
			shown.WriteString(piece)
		})
		if err != nil {
			t.Errorf("turn %d: %v", turn, err)
			return err
		}
		if got.Text != want.text || shown.String() != want.text || got.Cut != "" || got.RequestBytes < 100 || got.Usage != (model.Usage{}) {
			t.Errorf("turn %d: got %+v and showed %q", turn, got, shown.String())
		}
		if len(got.ToolCalls) != len(want.calls) || len(request.Messages) != before {
			t.Errorf("turn %d: got calls %+v", turn, got.ToolCalls)
			return nil
		}
		for i, c := range got.ToolCalls {
			if c.Name != want.calls[i].Name || c.Arguments != want.calls[i].Arguments || c.ID == "" || ids[c.ID] {
				t.Errorf("turn %d: call %d is %+v", turn, i, c)
			}
			ids[c.ID] = true
		}
		request = grow(request, got)
	}
	_, err := port.Generate(ctx, request, nil)
	return err
}

func TestEveryPortHoldsTheConversation(t *testing.T) {
	for name, made := range ports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := made(t)
			var together sync.WaitGroup
			for range 8 {
				together.Go(func() {
					if err := hold(t.Context(), t, port); failure.KindOf(err) != failure.KindModelError {
						t.Errorf("after its end it fails with %v", err)
					}
				})
			}
			together.Wait()
		})
	}
}

func TestEveryPortEndsWithItsContext(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	for name, made := range ports {
		for kind, ctx := range map[failure.Kind]context.Context{
			failure.KindCancelled: cancelled, failure.KindDeadlineExceeded: late,
		} {
			if _, err := made(t).Generate(ctx, opening(), nil); failure.KindOf(err) != kind {
				t.Errorf("%s: got %v and not %s", name, err, kind)
			}
		}
	}
}

func TestEveryPortLeavesItsRequestAlone(t *testing.T) {
	for name, made := range ports {
		request := opening()
		if _, err := made(t).Generate(t.Context(), request, nil); err != nil || !reflect.DeepEqual(request, opening()) {
			t.Errorf("%s: the request became %+v (%v)", name, request, err)
		}
	}
}

// What only an endpoint can do, as the endpoint sees and says it. A usage means the
// same whichever way the API counts it.
func TestTheEndpointIsAskedAgainUntilItAnswers(t *testing.T) {
	cached, stored, reasoned := 60, 10, 5
	for name, adapter := range adapters {
		endpoint := mcptest.NewModel(t,
			mcptest.ModelPage(http.StatusServiceUnavailable, "text/html", "<p>busy</p>"),
			mcptest.Say("").CutAfter(0),
			mcptest.Say("Hello there, you.").Costs(mcptest.ModelUsage{
				Prompt: 100, Completion: 9, Cached: &cached, Stored: &stored, Reasoning: &reasoned,
			}),
			mcptest.Say("Hello.").Costs(mcptest.ModelUsage{Prompt: 100, Completion: 9}),
		)
		port := adapter(t, endpoint)
		got, err := port.Generate(t.Context(), opening(), nil)
		if err != nil {
			t.Fatal(err)
		}
		asked := endpoint.WaitFor(3)
		if got.Text != "Hello there, you." || *got.Usage.Input != 30 || *got.Usage.CacheRead != 60 || *got.Usage.CacheWrite != 10 ||
			*got.Usage.Output != 9 || *got.Usage.Reasoning != 5 || got.RequestBytes != int64(len(asked[2].Body)) {
			t.Errorf("%s: got %+v", name, got)
		}
		for _, r := range asked {
			if string(r.Body) != string(asked[0].Body) || r.Token() != "" {
				t.Errorf("%s: it was asked %s", name, r.Body)
			}
		}
		got, err = port.Generate(t.Context(), opening(), nil)
		if err != nil || *got.Usage.Input != 100 || got.Usage.CacheRead != nil || got.Usage.CacheWrite != nil || got.Usage.Reasoning != nil {
			t.Errorf("%s: got %+v (%v)", name, got, err)
		}
	}
}

func TestAnAnswerThatBreaksOffIsNotBegunAgain(t *testing.T) {
	for name, adapter := range adapters {
		endpoint := mcptest.NewModel(t, mcptest.Say("One and two and three.").CutAfter(2), mcptest.Say("Another one."))
		var shown strings.Builder
		_, err := adapter(t, endpoint).Generate(t.Context(), opening(), func(piece string) { shown.WriteString(piece) })
		if failure.KindOf(err) != failure.KindModelError || shown.String() != "One and " || len(endpoint.Requests()) != 1 {
			t.Errorf("%s: got %v after %q", name, err, shown.String())
		}
	}
}

// A refusal is a text to OpenAI's API, and to Anthropic's a reason to end.
func TestAnAnswerThatIsCutShortSaysSo(t *testing.T) {
	for name, words := range map[string][]string{
		"openai": {"length", "content filter", ""}, "anthropic": {"length", "refuses", "refuses"},
	} {
		port := adapters[name](t, mcptest.NewModel(t,
			mcptest.Say("Half").Finishes("length"), mcptest.Say("").Finishes("content_filter"), mcptest.Refuse("I will not.")))
		for i, text := range []string{"Half", "", "I will not."} {
			got, err := port.Generate(t.Context(), opening(), nil)
			if err != nil || got.Text != text || !strings.Contains(got.Cut, words[i]) || (words[i] == "") != (got.Cut == "") {
				t.Errorf("%s: got %+v (%v)", name, got, err)
			}
		}
	}
}
