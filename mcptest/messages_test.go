package mcptest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/psych-systems/psych-go/mcptest"
)

func messageService(t *testing.T, m *mcptest.Model) anthropic.MessageService {
	return anthropic.NewMessageService(option.WithBaseURL(m.AnthropicURL()), option.WithHTTPClient(newClient(t, "")),
		option.WithAPIKey("model-key"), option.WithMaxRetries(0), option.WithoutOpenTelemetry())
}

func asking(messages ...anthropic.MessageParam) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: "m", MaxTokens: 100, Messages: messages}
}

// tell sends one question through the endpoint's official SDK, streamed.
func tell(t *testing.T, m *mcptest.Model) (whole anthropic.Message, err error) {
	t.Helper()
	service := messageService(t, m)
	stream := service.NewStreaming(t.Context(), asking(anthropic.NewUserMessage(anthropic.NewTextBlock("Hello"))))
	for stream.Next() {
		if err := whole.Accumulate(stream.Current()); err != nil {
			return whole, err
		}
	}
	return whole, stream.Err()
}

func TestTheMessagesSDKReadsWhatTheModelPlays(t *testing.T) {
	cached, thought := 40, 3
	text := "Größe 東京, and more than one piece."
	calls := []mcptest.ModelCall{{ID: "a", Name: "first", Arguments: `{"x":"ä"}`}, {ID: "b", Name: "second", Arguments: `{"y":2}`}}
	spoken := mcptest.Say(text).And(calls...).Costs(mcptest.ModelUsage{Prompt: 100, Completion: 7, Cached: &cached, Reasoning: &thought})
	m := mcptest.NewModel(t, spoken, spoken.Whole(), spoken, mcptest.Refuse("No."), mcptest.Say("Cut").Finishes("length"))
	m.RequireKey("model-key")
	atOnce := func(t *testing.T, m *mcptest.Model) (anthropic.Message, error) {
		service := messageService(t, m)
		whole, err := service.New(t.Context(), asking(anthropic.NewUserMessage(anthropic.NewTextBlock("Hello"))))
		if err != nil {
			return anthropic.Message{}, err
		}
		return *whole, nil
	}
	for i, ask := range []func(*testing.T, *mcptest.Model) (anthropic.Message, error){tell, tell, atOnce} {
		got, err := ask(t, m)
		if err != nil || len(got.Content) != 3 || got.Content[0].Text != text || got.StopReason != "tool_use" ||
			got.Usage.InputTokens != 60 || got.Usage.CacheReadInputTokens != 40 || got.Usage.OutputTokens != 7 {
			t.Fatalf("%d: got %+v (%v)", i, got, err)
		}
		for j, c := range calls {
			if block := got.Content[j+1]; block.ID != c.ID || block.Name != c.Name || string(block.Input) != c.Arguments {
				t.Errorf("%d: call %d is %+v", i, j, block)
			}
		}
	}
	for _, reason := range []anthropic.StopReason{"refusal", "max_tokens"} {
		if got, err := tell(t, m); err != nil || got.StopReason != reason || len(got.Content) != 1 {
			t.Errorf("got %+v (%v)", got, err)
		}
	}
	var refused *anthropic.Error
	if _, err := tell(t, mcptest.NewModel(t, mcptest.ModelFailure(529, "Busy."))); !errors.As(err, &refused) || refused.StatusCode != 529 ||
		!strings.Contains(refused.RawJSON(), `"overloaded_error"`) {
		t.Errorf("got %v", err)
	}
	m.RequireKey("another")
	if _, err := tell(t, m); !errors.As(err, &refused) || refused.StatusCode != 401 {
		t.Errorf("got %v", err)
	}
	if seen := m.Requests()[0]; seen.Token() != "model-key" || seen.MaxTokens != 100 || seen.Messages[0].Content != "Hello" {
		t.Errorf("the log holds %+v", seen)
	}
}

func TestTheMessagesThatRealEndpointsRefuse(t *testing.T) {
	m := mcptest.NewModel(t)
	m.AnswerWith(func(mcptest.ModelRequest) mcptest.ModelAnswer { return mcptest.Say("fine") })
	const (
		user   = `{"role":"user","content":"Hello"}`
		call   = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"7","is_error":true}]}`
		marked = `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
	)
	for name, test := range map[string]struct{ messages, more, refusal string }{
		"a call and its result":     {user + "," + call + "," + result, ``, ""},
		"no message":                {``, ``, "at least one message"},
		"an assistant first":        {`{"role":"assistant","content":"x"},` + user, ``, "first message"},
		"a role of another API":     {user + `,{"role":"tool","content":"x"}`, ``, "role"},
		"no content":                {`{"role":"user","content":[]}`, ``, "empty"},
		"an empty text":             {`{"role":"user","content":[{"type":"text","text":" "}]}`, ``, "non-whitespace"},
		"a call without its result": {user + "," + call, ``, "without `tool_result`"},
		"a result too late":         {user + "," + call + "," + user + "," + result, ``, "without `tool_result`"},
		"a result after a text": {user + "," + call + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}`,
			``, "without `tool_result`"},
		"a result without its call": {user + "," + result, ``, "unexpected `tool_use_id`"},
		"a result twice":            {user + "," + call + "," + result + "," + result, ``, "unexpected `tool_use_id`"},
		"an id twice":               {user + "," + call + "," + result + "," + call + "," + result, ``, "unique"},
		"an id of other characters": {user + "," + strings.Replace(call, `"a"`, `"a.b"`, 1), ``, "id: "},
		"a name that is none":       {user + "," + strings.Replace(call, `"f"`, `""`, 1), ``, "name: "},
		"an input that is none":     {user + "," + strings.Replace(call, `{}`, `"x"`, 1), ``, "object"},
		"a user that calls":         {strings.Replace(call, "assistant", "user", 1), ``, "only an assistant"},
		"a tool without a type":     {user, `,"tools":[{"name":"f","input_schema":{}}]`, "input_schema"},
		"a tool twice": {user, `,"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"f","input_schema":{"type":"object"}}]`,
			"unique"},
		"a tool's odd name": {user, `,"tools":[{"name":"a.b","input_schema":{"type":"object"}}]`, "name"},
		"five marks":        {`{"role":"user","content":[` + strings.Repeat(marked+",", 4) + marked + `]}`, ``, "maximum of 4"},
	} {
		service := messageService(t, m)
		body := fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[%s]%s}`, test.messages, test.more)
		if !json.Valid([]byte(body)) {
			t.Fatalf("%s: %s", name, body)
		}
		_, err := service.New(t.Context(), anthropic.MessageNewParams{}, option.WithRequestBody("application/json", []byte(body)))
		var refused *anthropic.Error
		if errors.As(err, &refused); test.refusal == "" && err != nil ||
			test.refusal != "" && (refused == nil || refused.StatusCode != 400 || !strings.Contains(refused.RawJSON(), test.refusal)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
