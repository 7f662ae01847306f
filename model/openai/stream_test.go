package openai

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model"
)

func calling(pieces string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + pieces + `]},"finish_reason":null}]}`
}

// Endpoints cut a tool call into pieces in many ways; all come out the same.
func TestToolCallsHoweverTheyAreCut(t *testing.T) {
	one := model.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}
	two := model.ToolCall{ID: "b", Name: "g", Arguments: `{"y":2}`}
	for name, test := range map[string]struct {
		events []string
		want   []model.ToolCall
	}{
		"id and name first, then arguments": {[]string{
			calling(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`),
			calling(`{"index":0,"function":{"arguments":"{\"x\""}}`),
			calling(`{"index":0,"function":{"arguments":":1}"}}`),
			calling(`{"index":1,"id":"b","function":{"name":"g","arguments":""}}`),
			calling(`{"index":1,"function":{"arguments":"{\"y\":2}"}}`),
		}, []model.ToolCall{one, two}},
		"interleaved": {[]string{
			calling(`{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b","function":{"name":"g"}}`),
			calling(`{"index":1,"function":{"arguments":"{\"y\""}}`),
			calling(`{"index":0,"function":{"arguments":"{\"x\":1}"}}`),
			calling(`{"index":1,"function":{"arguments":":2}"}}`),
		}, []model.ToolCall{one, two}},
		"whole calls in one chunk": {[]string{
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, []model.ToolCall{one, two}},
		"index always 0": {[]string{
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`),
			calling(`{"index":0,"function":{"arguments":"1}"}}`),
			calling(`{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}`),
			calling(`{"index":0,"function":{"arguments":"2}"}}`),
		}, []model.ToolCall{one, two}},
		"index always 0 and the id before the name": {[]string{
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
			calling(`{"index":0,"id":"b"}`),
			calling(`{"index":0,"function":{"name":"g"}}`),
			calling(`{"index":0,"function":{"arguments":"{\"y\":2}"}}`),
		}, []model.ToolCall{one, two}},
		"no index": {[]string{
			calling(`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`),
			calling(`{"function":{"arguments":"1}"}}`),
			calling(`{"id":"b","function":{"name":"g","arguments":"{\"y\":"}}`),
			calling(`{"function":{"arguments":"2}"}}`),
		}, []model.ToolCall{one, two}},
		"no index, interleaved by id": {[]string{
			calling(`{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"g"}}`),
			calling(`{"id":"a","function":{"arguments":"{\"x\":1}"}}`),
			calling(`{"id":"b","function":{"arguments":"{\"y\":2}"}}`),
		}, []model.ToolCall{one, two}},
		"id and name with every piece": {[]string{
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`),
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`),
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`),
			calling(`{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, []model.ToolCall{one, two}},
		"a name in pieces": {[]string{
			calling(`{"index":0,"id":"a","function":{"name":"get_"}}`),
			calling(`{"index":0,"function":{"name":"time","arguments":""}}`),
			calling(`{"index":0,"function":{"arguments":"{}"}}`),
		}, []model.ToolCall{{ID: "a", Name: "get_time", Arguments: "{}"}}},
		"arguments as an object": {[]string{
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}`),
			calling(`{"index":1,"id":"b","function":{"name":"g","arguments":{"y":2}}}`),
		}, []model.ToolCall{one, two}},
		"no arguments, null and absent": {[]string{
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`),
			calling(`{"index":1,"id":"b","function":{"name":"g"}}`),
		}, []model.ToolCall{{ID: "a", Name: "f"}, {ID: "b", Name: "g"}}},
		"arguments that are no JSON": {[]string{
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{x=1"}}`),
		}, []model.ToolCall{{ID: "a", Name: "f", Arguments: "{x=1"}}},
		"no ids": {[]string{
			calling(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`),
			calling(`{"index":1,"id":"","function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, []model.ToolCall{{ID: "call_3", Name: "f", Arguments: `{"x":1}`}, {ID: "call_4", Name: "g", Arguments: `{"y":2}`}}},
		"no ids and no index": {[]string{
			calling(`{"function":{"name":"f","arguments":"{\"x\":1}"}},{"function":{"name":"f","arguments":"{\"y\":2}"}}`),
		}, []model.ToolCall{{ID: "call_3", Name: "f", Arguments: `{"x":1}`}, {ID: "call_4", Name: "f", Arguments: `{"y":2}`}}},
		"the same id twice": {[]string{
			calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
			calling(`{"index":1,"id":"a","function":{"name":"g","arguments":"{\"y\":2}"}}`),
		}, []model.ToolCall{one, {ID: "call_3", Name: "g", Arguments: `{"y":2}`}}},
		"the id of an earlier turn": {[]string{
			calling(`{"index":0,"id":"old","function":{"name":"f","arguments":"{\"x\":1}"}}`),
		}, []model.ToolCall{{ID: "call_3", Name: "f", Arguments: `{"x":1}`}}},
		"odd types": {[]string{
			calling(`{"index":"0","id":7,"function":{"name":"f","arguments":"{\"x\""}}`),
			calling(`{"index":"0","id":null,"function":{"name":null,"arguments":":1}"}}`),
			calling(`{"index":0,"id":null,"function":null}`),
		}, []model.ToolCall{{ID: "7", Name: "f", Arguments: `{"x":1}`}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, streams(append(test.events, finish("tool_calls"), "[DONE]")...))
			request := question
			request.Messages = append(request.Messages, model.Message{
				Role: model.RoleAssistant, ToolCalls: []model.ToolCall{{ID: "old", Name: "f"}, {ID: "call_2", Name: "f"}},
			})
			answer, err := e.model(t).Generate(t.Context(), request, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(answer.ToolCalls, test.want) {
				t.Errorf("got  %+v\nwant %+v", answer.ToolCalls, test.want)
			}
		})
	}
}

func TestTextAndWhyItEnded(t *testing.T) {
	whole := `{"choices":[{"index":0,"message":{"role":"assistant","content":"all at once","tool_calls":[` +
		`{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		shown  pieces
		cut    string
	}{
		"pieces": {streams(text("a"), text(""), text("b"), finish("stop"), "[DONE]"), pieces{"a", "b"}, ""},
		"role, keep-alives and a null error": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			_, _ = w.Write([]byte(": ping\r\n\r\nevent: message\r\ndata: {\"error\":null,\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\r\n\r\n" +
				"data:" + text("a") + "\r\n\r\ndata: " + finish("stop") + "\r\n\r\n"))
		}, pieces{"a"}, ""},
		"no content type and no [DONE]": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = w.Write([]byte("data: " + text("a") + "\n\ndata: " + finish("stop") + "\n\n"))
		}, pieces{"a"}, ""},
		"a list of parts": {streams(`{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, finish("stop")), pieces{"ab"}, ""},
		"a refusal":       {streams(`{"choices":[{"delta":{"refusal":"I will not."}}]}`, finish("stop")), pieces{"I will not."}, ""},
		"too long":        {streams(text("a"), finish("length"), "[DONE]"), pieces{"a"}, "length limit"},
		"filtered":        {streams(text("a"), finish("content_filter"), "[DONE]"), pieces{"a"}, "content filter"},
		"not streamed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(whole))
		}, pieces{"all at once"}, ""},
		"junk after the end": {streams(text("a"), finish("stop"), "{not json"), pieces{"a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, test.answer)
			var shown pieces
			answer, err := e.model(t).Generate(t.Context(), question, shown.show)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(shown, test.shown) || answer.Text != strings.Join(shown, "") {
				t.Errorf("shown %q, text %q; want %q", shown, answer.Text, test.shown)
			}
			if (answer.Cut == "") != (test.cut == "") || !strings.Contains(answer.Cut, test.cut) {
				t.Errorf("cut %q, want %q", answer.Cut, test.cut)
			}
		})
	}
}

// What was not reported is absent, and never 0.
func TestUsageAsReported(t *testing.T) {
	for name, test := range map[string]struct{ usage, want string }{
		"all": {`{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64,"cache_write_tokens":6},"completion_tokens_details":{"reasoning_tokens":5}}`,
			`{"input":30,"output":20,"cache_read":64,"cache_write":6,"reasoning":5}`},
		"totals only":        {`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}`, `{"input":100,"output":20}`},
		"nothing cached":     {`{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":0}}`, `{"input":9,"cache_read":0}`},
		"null details":       {`{"prompt_tokens":9,"prompt_tokens_details":null,"completion_tokens":null}`, `{"input":9}`},
		"null":               {`null`, `{}`},
		"absurd":             {`{"prompt_tokens":-4,"completion_tokens":1}`, `{"output":1}`},
		"no count":           {`{"prompt_tokens":"many"}`, `{}`},
		"more cached than 0": {`{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":8}}`, `{"input":0,"cache_read":8}`},
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, streams(text("a"), finish("stop"), `{"choices":[],"usage":`+test.usage+`}`, "[DONE]"))
			answer, err := e.model(t).Generate(t.Context(), question, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := json.Marshal(answer.Usage); string(got) != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestUsageThatWasNotSentIsAbsent(t *testing.T) {
	e := serve(t, says("ok"))
	answer, err := e.model(t).Generate(t.Context(), question, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Usage != (model.Usage{}) {
		t.Errorf("got %+v", answer.Usage)
	}
}

// One connection serves one request after the other: the stream is read to its end.
func TestConnectionServesAgain(t *testing.T) {
	e := serve(t, says("ok"))
	m := e.model(t)
	for range 3 {
		if _, err := m.Generate(t.Context(), question, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, request := range e.requests[1:] {
		if request.RemoteAddr != e.requests[0].RemoteAddr {
			t.Error("a connection was opened for each request")
		}
	}
}

// Whatever the chunks hold, the assembly neither panics nor invents: the text is
// what was shown, the ids are unique and present.
func FuzzAssembly(f *testing.F) {
	f.Add([]byte(text("a") + "\n" + finish("stop")))
	f.Add([]byte(calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`) + "\n" + calling(`{"function":{"name":"g","arguments":{}}}`)))
	f.Add([]byte(`{"error":{"message":"no","code":400}}`))
	f.Add([]byte(`{"choices":[{"message":{"content":[{"text":"a"}],"refusal":1}}],"usage":{"prompt_tokens":1e3}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a assembly
		var shown strings.Builder
		for line := range strings.SplitSeq(string(data), "\n") {
			if failed := a.add([]byte(line), func(piece string) { shown.WriteString(piece) }); failed != nil {
				wantFailure(t, failed.Failure("models.example", ""), failure.KindModelError)
			}
		}
		answer := a.response(map[string]bool{"call_1": true}, 0)
		if answer.Text != shown.String() {
			t.Errorf("the text is %q and %q was shown", answer.Text, shown.String())
		}
		seen := map[string]bool{"": true, "call_1": true}
		for _, call := range answer.ToolCalls {
			if seen[call.ID] {
				t.Errorf("the id %q is missing or repeated", call.ID)
			}
			seen[call.ID] = true
		}
	})
}
