package openai

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model"
)

// A schema arrives as it was written: its spaces, its order, its numbers, its
// characters and even its repeated members.
func TestSchemaIsSentByteForByte(t *testing.T) {
	schema := "{ \"type\" :\"object\",\n\t\"properties\":{\"z\":{\"maximum\":1.0e+2,\"description\":\"<a> & \\u00e9 é \\/\"},\"a\":{}},\"x\":1,\"x\":12345678901234567890 }"
	e := serve(t, says("ok"))
	request := question
	request.Tools = []model.Tool{
		{Name: "first", Description: `says "<hi>"`, InputSchema: json.RawMessage(schema)},
		{Name: "second"},
	}
	answer, err := e.model(t).Generate(t.Context(), request, nil)
	if err != nil {
		t.Fatal(err)
	}
	sent := e.bodies[0]
	if !strings.Contains(sent, `"parameters":`+schema+`}}`) {
		t.Errorf("the schema was rewritten in %s", sent)
	}
	if !strings.Contains(sent, `{"type":"function","function":{"name":"second","parameters":{"type":"object","properties":{}}}}`) {
		t.Errorf("the tool without a schema is not an object without properties in %s", sent)
	}
	if answer.RequestBytes != int64(len(sent)) {
		t.Errorf("RequestBytes is %d and %d bytes were sent", answer.RequestBytes, len(sent))
	}
}

func TestConversationOnTheWire(t *testing.T) {
	e := serve(t, says("ok"))
	request := model.Request{
		Model: "m<1>", System: "Be brief.",
		Messages: []model.Message{
			{Role: model.RoleUser, Text: "weather & time?"},
			{Role: model.RoleAssistant, ToolCalls: []model.ToolCall{
				{ID: "a", Name: "weather", Arguments: `{"city": "Bern"}`}, {ID: "b", Name: "time"}}},
			{Role: model.RoleTool, CallID: "a", Text: "rain"},
			{Role: model.RoleTool, CallID: "b"},
			{Role: model.RoleAssistant, Text: "It rains."},
		},
	}
	if _, err := e.model(t, withKey("sk-1")).Generate(t.Context(), request, nil); err != nil {
		t.Fatal(err)
	}
	want := `{"model":"m<1>","messages":[` +
		`{"role":"system","content":"Be brief."},` +
		`{"role":"user","content":"weather & time?"},` +
		`{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"a","type":"function","function":{"name":"weather","arguments":"{\"city\": \"Bern\"}"}},` +
		`{"id":"b","type":"function","function":{"name":"time","arguments":"{}"}}]},` +
		`{"role":"tool","content":"rain","tool_call_id":"a"},` +
		`{"role":"tool","content":"","tool_call_id":"b"},` +
		`{"role":"assistant","content":"It rains."}` +
		`],"stream":true,"stream_options":{"include_usage":true}}`
	if e.bodies[0] != want {
		t.Errorf("sent %s\nwant %s", e.bodies[0], want)
	}
	sent := e.requests[0]
	if sent.Method != http.MethodPost || sent.URL.Path != "/v1/chat/completions" {
		t.Errorf("asked %s %s", sent.Method, sent.URL.Path)
	}
	if got := sent.Header.Get("Authorization"); got != "Bearer sk-1" {
		t.Errorf("the key was sent as %q", got)
	}
	if got := sent.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("the body was sent as %q", got)
	}
}

func TestSchemaThatIsNoJSONIsNotSent(t *testing.T) {
	e := serve(t, says("ok"))
	request := question
	request.Tools = []model.Tool{{Name: "odd", InputSchema: json.RawMessage(`{"type":`)}}
	_, err := e.model(t).Generate(t.Context(), request, nil)
	wantFailure(t, err, failure.KindModelError, "odd")
	if e.asked() != 0 {
		t.Error("the request was sent")
	}
}

// The environment names another endpoint, key, organization and header; none of
// them shows.
func TestEnvironmentHasNoSay(t *testing.T) {
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "sk-environment", "OPENAI_ADMIN_KEY": "sk-environment-admin",
		"OPENAI_BASE_URL": "http://127.0.0.1:1/environment", "OPENAI_ORG_ID": "org-environment",
		"OPENAI_PROJECT_ID": "proj-environment", "OPENAI_WEBHOOK_SECRET": "hook-environment",
		"OPENAI_CUSTOM_HEADERS": "X-Custom: environment",
	} {
		t.Setenv(name, value)
	}
	e := serve(t, says("ok"))
	if _, err := e.model(t).Generate(t.Context(), question, nil); err != nil {
		t.Fatal(err)
	}
	for name, values := range e.requests[0].Header {
		if strings.Contains(strings.Join(values, " "), "environment") || name == "Authorization" {
			t.Errorf("the environment was sent as %s: %v", name, values)
		}
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	client := &http.Client{}
	for name, options := range map[string]Options{
		"no URL":         {Client: client},
		"unreadable URL": {BaseURL: "http://user:hidden@[", Client: client},
		"another scheme": {BaseURL: "ftp://models.example", Client: client},
		"no host":        {BaseURL: "https:///v1", Client: client},
		"user":           {BaseURL: "https://user:hidden@models.example", Client: client},
		"query":          {BaseURL: "https://models.example/v1?key=hidden", Client: client},
		"fragment":       {BaseURL: "https://models.example/v1#hidden", Client: client},
		"no client":      {BaseURL: "https://models.example/v1"},
		"idle":           {BaseURL: "https://models.example/v1", Client: client, Idle: -1},
		"attempts":       {BaseURL: "https://models.example/v1", Client: client, Attempts: -1},
		"backoff":        {BaseURL: "https://models.example/v1", Client: client, Backoff: -1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(options)
			wantFailure(t, err, failure.KindSpecInvalid)
			if strings.Contains(err.Error(), "hidden") {
				t.Errorf("%q gives a secret away", err)
			}
		})
	}
}

// A redirect would take the conversation and the key elsewhere.
func TestRedirectIsNotFollowed(t *testing.T) {
	elsewhere := serve(t, says("stolen"))
	e := serve(t, refuses(http.StatusTemporaryRedirect, "", "Location", elsewhere.URL))
	_, err := e.model(t, withKey("sk-1")).Generate(t.Context(), question, nil)
	wantFailure(t, err, failure.KindModelError, "307")
	if elsewhere.asked() != 0 {
		t.Error("the redirect was followed")
	}
}
