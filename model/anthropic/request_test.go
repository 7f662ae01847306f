package anthropic_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/model"
)

// sent is the one request that a question becomes; the endpoint takes it.
func sent(t *testing.T, request model.Request) mcptest.ModelRequest {
	t.Helper()
	played := mcptest.NewModel(t, mcptest.Say("ok"))
	got, err := port(t, played, withKey("sk-1")).Generate(t.Context(), request, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := played.Requests()[0]
	if got.RequestBytes != int64(len(asked.Body)) {
		t.Errorf("RequestBytes is %d and %d bytes were sent", got.RequestBytes, len(asked.Body))
	}
	return asked
}

const mark = `,"cache_control":{"type":"ephemeral"}}`

// A schema arrives as it was written: its spaces, its order, its numbers, its
// characters and even its repeated members.
func TestSchemaIsSentByteForByte(t *testing.T) {
	schema := "{ \"type\" :\"object\",\n\t\"properties\":{\"z\":{\"maximum\":1.0e+2,\"description\":\"<a> & \\u00e9 é \\/\"},\"a\":{}},\"x\":1,\"x\":12345678901234567890 }"
	request := question
	request.Tools = []model.Tool{
		{Name: "first", Description: `says "<hi>"`, InputSchema: json.RawMessage(schema)},
		{Name: "second"},
	}
	body := string(sent(t, request).Body)
	want := `"tools":[{"name":"first","description":"says \"<hi>\"","input_schema":` + schema +
		`},{"name":"second","input_schema":{"type":"object","properties":{}}` + mark + `]`
	if !strings.Contains(body, want) {
		t.Errorf("sent %s\nwithout %s", body, want)
	}
}

func TestConversationOnTheWire(t *testing.T) {
	request := model.Request{
		Model: "m<1>", System: "Be brief.", Tools: []model.Tool{{Name: "time"}},
		Messages: []model.Message{
			{Role: model.RoleUser, Text: "weather & time?"},
			{Role: model.RoleAssistant, Text: "Let me look.", ToolCalls: []model.ToolCall{
				{ID: "a", Name: "weather", Arguments: ` {"city": "Bern"} `}, {ID: "b", Name: "time"},
				{ID: "c", Name: "no such tool", Arguments: `{"x":`}, {ID: "d", Arguments: `[1]`}}},
			{Role: model.RoleTool, CallID: "d", Text: "no", Failed: true},
			{Role: model.RoleTool, CallID: "a", Text: "rain"},
			{Role: model.RoleTool, CallID: "c", Text: "they are not JSON", Failed: true},
			{Role: model.RoleTool, CallID: "b", Text: "\n"},
			{Role: model.RoleUser, Text: "Go on."},
			{Role: model.RoleAssistant, Text: " "},
			{Role: model.RoleUser, Text: "Are you there?"},
			{Role: model.RoleAssistant, Text: "It rains."},
			{Role: model.RoleUser, Text: "Thanks."},
		},
	}
	asked := sent(t, request)
	want := `{"model":"m<1>","max_tokens":32000,` +
		`"tools":[{"name":"time","input_schema":{"type":"object","properties":{}}}],` +
		`"system":[{"type":"text","text":"Be brief."` + mark + `],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"weather & time?"}]},` +
		`{"role":"assistant","content":[{"type":"text","text":"Let me look."},` +
		`{"type":"tool_use","id":"a","name":"weather","input":{"city": "Bern"}},` +
		`{"type":"tool_use","id":"b","name":"time","input":{}},` +
		`{"type":"tool_use","id":"c","name":"no_such_tool","input":{"INVALID_JSON":"{\"x\":"}},` +
		`{"type":"tool_use","id":"d","name":"_","input":{"INVALID_JSON":"[1]"}}]},` +
		`{"role":"user","content":[` +
		`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"rain"}]},` +
		`{"type":"tool_result","tool_use_id":"b"},` +
		`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"they are not JSON"}],"is_error":true},` +
		`{"type":"tool_result","tool_use_id":"d","content":[{"type":"text","text":"no"}],"is_error":true},` +
		`{"type":"text","text":"Go on."},{"type":"text","text":"Are you there?"` + mark + `]},` +
		`{"role":"assistant","content":[{"type":"text","text":"It rains."}]},` +
		`{"role":"user","content":[{"type":"text","text":"Thanks."` + mark + `]}` +
		`],"stream":true}`
	if string(asked.Body) != want {
		t.Errorf("sent %s\nwant %s", asked.Body, want)
	}
	if asked.HTTPMethod != http.MethodPost || asked.Path != "/v1/messages" || asked.Header.Get("X-Api-Key") != "sk-1" ||
		asked.Header.Get("Authorization") != "" || asked.Header.Get("Content-Type") != "application/json" {
		t.Errorf("asked %s %s with %v", asked.HTTPMethod, asked.Path, asked.Header)
	}
}

// A turn's request begins with the bytes of the one before it, but for the marks:
// that is what the provider's cache finds again.
func TestTheNextRequestBeginsLikeTheOneBefore(t *testing.T) {
	request := question
	request.System = "Be brief."
	request.Tools = []model.Tool{{Name: "f"}}
	before := strings.ReplaceAll(string(sent(t, request).Body), mark, "}")
	request.Messages = append(request.Messages,
		model.Message{Role: model.RoleAssistant, ToolCalls: []model.ToolCall{{ID: "a", Name: "f"}}},
		model.Message{Role: model.RoleTool, CallID: "a", Text: "done"})
	after := string(sent(t, request).Body)
	kept := strings.TrimSuffix(before, `],"stream":true}`)
	if !strings.HasPrefix(strings.ReplaceAll(after, mark, "}"), kept) || strings.Count(after, mark) != 3 {
		t.Errorf("after %s\ncomes %s", kept, after)
	}
}

func TestSchemaThatIsNoJSONIsNotSent(t *testing.T) {
	played := mcptest.NewModel(t)
	request := question
	request.Tools = []model.Tool{{Name: "odd", InputSchema: json.RawMessage(`{"type":`)}}
	_, err := port(t, played).Generate(t.Context(), request, nil)
	wantFailure(t, err, failure.KindModelError, "odd")
	if len(played.Requests()) != 0 {
		t.Error("the request was sent")
	}
}

// The environment names another endpoint, key, profile and header; none of them
// shows.
func TestEnvironmentHasNoSay(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "environment", "ANTHROPIC_AUTH_TOKEN": "environment", "ANTHROPIC_PROFILE": "environment",
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:1/environment", "ANTHROPIC_CUSTOM_HEADERS": "X-Custom: environment",
		"ANTHROPIC_OPEN_TELEMETRY": "true", "ANTHROPIC_OPEN_TELEMETRY_PROPAGATION": "true",
	} {
		t.Setenv(name, value)
	}
	played := mcptest.NewModel(t, mcptest.Say("ok"))
	if _, err := port(t, played).Generate(t.Context(), question, nil); err != nil {
		t.Fatal(err)
	}
	for name, values := range played.Requests()[0].Header {
		if strings.Contains(strings.Join(values, " "), "environment") ||
			name == "Authorization" || name == "X-Api-Key" || name == "Traceparent" {
			t.Errorf("the environment was sent as %s: %v", name, values)
		}
	}
}
