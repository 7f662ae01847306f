package anthropic_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/model"
)

// uses begins a call in block 0 or 1; piece goes on with its input.
func uses(index, members string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":{"type":"tool_use",` + members + `}}`
}

func piece(index, partial string) string {
	quoted, _ := json.Marshal(partial)
	return `{"type":"content_block_delta","index":` + index + `,"delta":{"type":"input_json_delta","partial_json":` + string(quoted) + `}}`
}

// Whatever a call's input is, it arrives as the text that came, and the calls
// beside it are whole.
func TestToolCallsAsTheyCame(t *testing.T) {
	one := model.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}
	two := model.ToolCall{ID: "b", Name: "g", Arguments: `{"y":2}`}
	const f, g = `"id":"a","name":"f","input":{}`, `"id":"b","name":"g","input":{}`
	with := func(arguments string) []model.ToolCall {
		return []model.ToolCall{{ID: "a", Name: "f", Arguments: arguments}, two}
	}
	for name, test := range map[string]struct {
		events []string
		want   []model.ToolCall
	}{
		"one after the other": {[]string{uses("0", f), piece("0", ""), piece("0", `{"x"`), piece("0", `:1}`), uses("1", g), piece("1", `{"y":2}`)},
			[]model.ToolCall{one, two}},
		"interleaved": {[]string{uses("0", f), uses("1", g), piece("1", `{"y"`), piece("0", `{"x":`), piece("1", `:2}`), piece("0", `1}`)},
			[]model.ToolCall{one, two}},
		"cut JSON":            {[]string{uses("0", f), piece("0", `{"x":`), uses("1", g), piece("1", `{"y":2}`)}, with(`{"x":`)},
		"no JSON":             {[]string{uses("0", f), piece("0", `x=1`), uses("1", g), piece("1", `{"y":2}`)}, with(`x=1`)},
		"no object":           {[]string{uses("0", f), piece("0", `[1]`), uses("1", g), piece("1", `{"y":2}`)}, with(`[1]`)},
		"no object at once":   {[]string{uses("0", `"id":"a","name":"f","input":"x"`), uses("1", g), piece("1", `{"y":2}`)}, with(`"x"`)},
		"nothing":             {[]string{uses("0", f), uses("1", g), piece("1", `{"y":2}`)}, with(`{}`)},
		"empty pieces":        {[]string{uses("0", f), piece("0", ""), uses("1", g), piece("1", `{"y":2}`)}, with(`{}`)},
		"absent":              {[]string{uses("0", `"id":"a","name":"f"`), uses("1", g), piece("1", `{"y":2}`)}, with("")},
		"null":                {[]string{uses("0", `"id":"a","name":"f","input":null`), uses("1", g), piece("1", `{"y":2}`)}, with("")},
		"all at once":         {[]string{uses("0", `"id":"a","name":"f","input":{"x":1}`), uses("1", g), piece("1", `{"y":2}`)}, []model.ToolCall{one, two}},
		"a piece for no call": {[]string{uses("0", f), piece("7", `{"z"`), piece("0", `{"x":1}`), uses("1", g), piece("1", `{"y":2}`)}, []model.ToolCall{one, two}},
		"a server's own tool": {[]string{
			uses("0", f), piece("0", `{"x":1}`),
			`{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`, piece("2", `{"q":1}`),
			uses("1", g), piece("1", `{"y":2}`)}, []model.ToolCall{one, two}},
		"ids that are missing, taken, repeated and unfit": {[]string{
			uses("0", `"name":"f","input":{}`), uses("1", `"id":"old","name":"f","input":{}`),
			uses("2", `"id":"a","name":"f","input":{}`), uses("3", `"id":"a","name":"f","input":{}`), uses("4", `"id":"a b","name":"f","input":{}`)},
			[]model.ToolCall{{ID: "call_2", Name: "f", Arguments: "{}"}, {ID: "call_3", Name: "f", Arguments: "{}"}, {ID: "a", Name: "f", Arguments: "{}"},
				{ID: "call_4", Name: "f", Arguments: "{}"}, {ID: "call_5", Name: "f", Arguments: "{}"}}},
	} {
		t.Run(name, func(t *testing.T) {
			events := append(append([]string{begun}, test.events...), ends("tool_use"), stopped)
			request := question
			request.Messages = append(request.Messages,
				model.Message{Role: model.RoleAssistant, ToolCalls: []model.ToolCall{{ID: "old", Name: "f"}}},
				model.Message{Role: model.RoleTool, CallID: "old", Text: "done"})
			got, err := port(t, mcptest.NewModel(t, streams(events...))).Generate(t.Context(), request, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.ToolCalls, test.want) || got.Cut != "" {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestTextAndWhyItEnded(t *testing.T) {
	for name, test := range map[string]struct {
		answer mcptest.ModelAnswer
		shown  []string
		cut    string
	}{
		"pieces": {streams(begun, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`,
			says(""), says("b"), ends("end_turn"), stopped), []string{"a", "b"}, ""},
		"a stop sequence":    {streams(begun, says("a"), ends("stop_sequence"), stopped), []string{"a"}, ""},
		"an unknown reason":  {streams(begun, says("a"), ends("tired"), stopped), []string{"a"}, ""},
		"too long":           {streams(begun, says("a"), ends("max_tokens"), stopped), []string{"a"}, "length limit"},
		"a full context":     {streams(begun, says("a"), ends("model_context_window_exceeded"), stopped), []string{"a"}, "context window"},
		"a refusal":          {streams(begun, ends("refusal"), stopped), nil, "refuses"},
		"a pause":            {streams(begun, says("a"), ends("pause_turn"), stopped), []string{"a"}, "paused"},
		"no message_stop":    {streams(begun, says("a"), ends("end_turn")), []string{"a"}, ""},
		"junk after the end": {streams(begun, says("a"), ends("end_turn"), "{no"), []string{"a"}, ""},
		"what is not known": {streams(`{"type":"ping"}`, begun, `{"type":"news","index":"x","delta":7}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"hologram","text":"hidden"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"hologram_delta","text":"hidden"}}`,
			says("a"), `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}`,
			ends("end_turn"), stopped), []string{"a"}, ""},
		"thoughts": {streams(begun, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x"}}`,
			says("a"), ends("end_turn"), stopped), []string{"a"}, ""},
		"not streamed": {mcptest.ModelPage(200, "application/json",
			`{"type":"message","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"all at once"}],"stop_reason":"end_turn"}`),
			[]string{"all at once"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var shown []string
			got, err := port(t, mcptest.NewModel(t, test.answer)).Generate(t.Context(), question, func(piece string) { shown = append(shown, piece) })
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(shown, test.shown) || got.Text != strings.Join(shown, "") || len(got.ToolCalls) != 0 {
				t.Errorf("shown %q, got %+v; want %q", shown, got, test.shown)
			}
			if (got.Cut == "") != (test.cut == "") || !strings.Contains(got.Cut, test.cut) {
				t.Errorf("cut %q, want %q", got.Cut, test.cut)
			}
		})
	}
}

// What was not reported is absent, and never 0; what is told again replaces what
// was told at the start.
func TestUsageAsReported(t *testing.T) {
	for name, test := range map[string]struct{ start, end, want string }{
		"all": {`{"input_tokens":30,"output_tokens":1,"cache_read_input_tokens":64,"cache_creation_input_tokens":6}`,
			`{"output_tokens":20,"output_tokens_details":{"thinking_tokens":5}}`,
			`{"input":30,"output":20,"cache_read":64,"cache_write":6,"reasoning":5}`},
		"told again": {`{"input_tokens":30,"output_tokens":1}`, `{"input_tokens":31,"output_tokens":2,"cache_read_input_tokens":0}`,
			`{"input":31,"output":2,"cache_read":0}`},
		"nulls":    {`{"input_tokens":9,"cache_read_input_tokens":null}`, `{"output_tokens":null,"output_tokens_details":null}`, `{"input":9}`},
		"none":     {`null`, `null`, `{}`},
		"absurd":   {`{"input_tokens":-4}`, `{"output_tokens":1}`, `{"output":1}`},
		"no count": {`{"input_tokens":"many"}`, `[]`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := streams(`{"type":"message_start","message":{"usage":`+test.start+`}}`, says("a"),
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+test.end+`}`, stopped)
			got, err := port(t, mcptest.NewModel(t, answer)).Generate(t.Context(), question, nil)
			if err != nil {
				t.Fatal(err)
			}
			if usage, _ := json.Marshal(got.Usage); string(usage) != test.want {
				t.Errorf("got %s, want %s", usage, test.want)
			}
		})
	}
}
