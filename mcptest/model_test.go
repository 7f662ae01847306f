package mcptest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/psych-systems/psych-go/mcptest"
)

// ask sends one question through the endpoint's official SDK, streamed.
func ask(t *testing.T, m *mcptest.Model, messages ...openai.ChatCompletionMessageParamUnion) (openai.ChatCompletion, error) {
	t.Helper()
	service := openai.NewChatCompletionService(option.WithBaseURL(m.URL()), option.WithHTTPClient(newClient(t, "")),
		option.WithAPIKey("model-key"), option.WithMaxRetries(0))
	stream := service.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "m", Messages: messages,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		whole.AddChunk(stream.Current())
	}
	return whole.ChatCompletion, stream.Err()
}

func TestTheSDKReadsWhatTheModelPlays(t *testing.T) {
	cached := 40
	text := "Größe 東京, and more than one piece."
	calls := []mcptest.ModelCall{{ID: "a", Name: "first", Arguments: `{"x":"ä"}`}, {ID: "b", Name: "second", Arguments: `{"x":`}}
	m := mcptest.NewModel(t,
		mcptest.Say(text).Costs(mcptest.ModelUsage{Prompt: 100, Completion: 7, Cached: &cached}),
		mcptest.Ask(calls...), mcptest.Ask(calls...).Whole(),
		mcptest.Refuse("No."), mcptest.Say("Cut").Finishes("length"))
	m.RequireKey("model-key")
	user := openai.UserMessage("Hello")

	got, err := ask(t, m, user)
	if err != nil || got.Choices[0].Message.Content != text || got.Choices[0].FinishReason != "stop" ||
		got.Usage.PromptTokensDetails.CachedTokens != 40 || got.Usage.PromptTokens != 100 {
		t.Errorf("got %+v (%v)", got, err)
	}
	for range 2 {
		got, err = ask(t, m, user)
		if err != nil || got.Choices[0].FinishReason != "tool_calls" || len(got.Choices[0].Message.ToolCalls) != 2 {
			t.Fatalf("got %+v (%v)", got, err)
		}
		for i, c := range got.Choices[0].Message.ToolCalls {
			if c.ID != calls[i].ID || c.Function.Name != calls[i].Name || c.Function.Arguments != calls[i].Arguments {
				t.Errorf("call %d is %+v", i, c)
			}
		}
	}
	if got, err = ask(t, m, user); err != nil || got.Choices[0].Message.Refusal != "No." {
		t.Errorf("got %+v (%v)", got, err)
	}
	if got, err = ask(t, m, user); err != nil || got.Choices[0].FinishReason != "length" {
		t.Errorf("got %+v (%v)", got, err)
	}
	var refused *openai.Error
	if _, err = ask(t, m, user); !errors.As(err, &refused) || refused.Message != "every answer has been played" {
		t.Errorf("got %v", err)
	}
	seen := m.WaitFor(6)
	if seen[0].Token() != "model-key" || seen[0].Messages[0].Content != "Hello" || !seen[0].IncludeUsage {
		t.Errorf("the log holds %+v", seen[0])
	}
}

func TestAnAnswerIsOneBodyForAClientThatDoesNotStream(t *testing.T) {
	stored := 3
	m := mcptest.NewModel(t)
	m.Play(mcptest.Say("Hello").And(mcptest.ModelCall{ID: "a", Name: "f", Arguments: "{}"}).
		Costs(mcptest.ModelUsage{Prompt: 9, Completion: 2, Stored: &stored}), mcptest.Refuse("No."), mcptest.Say("Hello").CutAfter(0))
	service := openai.NewChatCompletionService(option.WithBaseURL(m.URL()), option.WithHTTPClient(newClient(t, "")), option.WithMaxRetries(0))
	ask := func() (*openai.ChatCompletion, error) {
		return service.New(t.Context(), openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hi")}})
	}
	got, err := ask()
	if err != nil || got.Choices[0].Message.Content != "Hello" || got.Choices[0].Message.ToolCalls[0].Function.Name != "f" ||
		got.Choices[0].FinishReason != "tool_calls" || got.Usage.PromptTokensDetails.CacheWriteTokens != 3 {
		t.Errorf("got %+v (%v)", got, err)
	}
	if got, err = ask(); err != nil || got.Choices[0].Message.Refusal != "No." {
		t.Errorf("got %+v (%v)", got, err)
	}
	if _, err = ask(); err == nil {
		t.Error("half a body was an answer")
	}
}

func TestAnAnswerWaitsAndIdlesWhenTold(t *testing.T) {
	released := make(chan struct{})
	m := mcptest.NewModel(t, mcptest.Say("late").Held(released), mcptest.Say("twelve chars").IdlesAfter(2),
		mcptest.ModelEvents("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"raw\"}}]}\n\n"))
	go func() {
		m.WaitFor(1)
		close(released)
	}()
	if got, err := ask(t, m, openai.UserMessage("Hi")); err != nil || got.Choices[0].Message.Content != "late" {
		t.Errorf("got %+v (%v)", got.Choices, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	service := openai.NewChatCompletionService(option.WithBaseURL(m.URL()), option.WithHTTPClient(newClient(t, "")), option.WithMaxRetries(0))
	stream := service.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hi")}})
	pieces := 0
	for stream.Next() {
		pieces++
	}
	if pieces != 2 || !errors.Is(stream.Err(), context.DeadlineExceeded) {
		t.Errorf("%d pieces, then %v", pieces, stream.Err())
	}
	if got, err := ask(t, m, openai.UserMessage("Hi")); err != nil || got.Choices[0].Message.Content != "raw" {
		t.Errorf("got %+v (%v)", got.Choices, err)
	}
	if got := len(m.Requests()); got != 3 {
		t.Errorf("the log holds %d requests", got)
	}
}

func TestTheModelRefusesWhatRealEndpointsRefuse(t *testing.T) {
	m := mcptest.NewModel(t)
	m.AnswerWith(func(mcptest.ModelRequest) mcptest.ModelAnswer { return mcptest.Say("fine") })
	user, result := openai.UserMessage("Hello"), openai.ToolMessage("7", "a")
	call := openai.ChatCompletionMessageParamUnion{OfAssistant: &openai.ChatCompletionAssistantMessageParam{
		ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
			ID: "a", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "f", Arguments: "{}"},
		}}},
	}}
	for name, test := range map[string]struct {
		messages []openai.ChatCompletionMessageParamUnion
		status   int // 0 for an answer
	}{
		"a call and its result":     {[]openai.ChatCompletionMessageParamUnion{user, call, result}, 0},
		"no message":                {nil, 400},
		"a result without its call": {[]openai.ChatCompletionMessageParamUnion{user, result}, 400},
		"a call without its result": {[]openai.ChatCompletionMessageParamUnion{user, call}, 400},
		"a result too late":         {[]openai.ChatCompletionMessageParamUnion{user, call, user, result}, 400},
	} {
		_, err := ask(t, m, test.messages...)
		var refused *openai.Error
		if errors.As(err, &refused); test.status == 0 && err != nil || test.status != 0 && (refused == nil || refused.StatusCode != test.status) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	m.RequireKey("another")
	if _, err := ask(t, m, user); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %v", err)
	}
}

func TestAModelStreamBreaksWhereItIsTold(t *testing.T) {
	m := mcptest.NewModel(t,
		mcptest.Say("twelve chars").CutAfter(2),
		mcptest.Say("twelve chars").FailsAfter(2, `{"error":{"message":"overloaded"}}`),
		mcptest.Say("twelve chars").EndsAfter(2),
		mcptest.ModelBusy(7),
		mcptest.ModelPage(503, "text/html", "<p>down</p>"),
	)
	for i, want := range []string{"unexpected EOF", "overloaded", "", "429", "503"} {
		got, err := ask(t, m, openai.UserMessage("Hello"))
		if want == "" && err == nil && got.Choices[0].Message.Content == "twelve c" && got.Choices[0].FinishReason == "" {
			continue
		}
		if want == "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: got %+v (%v)", i, got.Choices, err)
		}
	}
}
