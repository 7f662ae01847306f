package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const script = `
turns:
  - text: Let me look.
    tool_calls:
      - name: shop__find_order
        arguments: {number: 7, "größe": [1.5, true, null]}
      - name: shop__list
      - {name: shop__broken, arguments: '{"a":'}
  - expect: shipped
    text: It is on its way.
`

// grow is the conversation after an answer and the results of its calls.
func grow(request model.Request, answer model.Response, result string) model.Request {
	request.Messages = append(slices.Clone(request.Messages), model.Message{Role: model.RoleAssistant, Text: answer.Text, ToolCalls: answer.ToolCalls})
	for _, call := range answer.ToolCalls {
		request.Messages = append(request.Messages, model.Message{Role: model.RoleTool, CallID: call.ID, Text: result})
	}
	return request
}

func question() model.Request {
	return model.Request{Model: "any", Messages: []model.Message{{Role: model.RoleUser, Text: "Where is my order?"}}}
}

func TestAScriptPlaysFromItsFileToItsEnd(t *testing.T) {
	m, err := scripted.Parse("script.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	var pieces []string
	first, err := m.Generate(t.Context(), question(), func(piece string) { pieces = append(pieces, piece) })
	if err != nil || first.Text != "Let me look." || strings.Join(pieces, "|") != "Let |me |look." || first.RequestBytes < 50 ||
		first.Usage != (model.Usage{}) || first.Cut != "" {
		t.Errorf("got %+v in %q (%v)", first, pieces, err)
	}
	want := []model.ToolCall{
		{ID: "call_1_1", Name: "shop__find_order", Arguments: `{"größe":[1.5,true,null],"number":7}`},
		{ID: "call_1_2", Name: "shop__list", Arguments: `{}`},
		{ID: "call_1_3", Name: "shop__broken", Arguments: `{"a":`},
	}
	if !slices.Equal(first.ToolCalls, want) {
		t.Errorf("got %+v", first.ToolCalls)
	}
	second := grow(question(), first, "It was shipped.")
	last, err := m.Generate(t.Context(), second, nil)
	if err != nil || last.Text != "It is on its way." || len(last.ToolCalls) != 0 {
		t.Errorf("got %+v (%v)", last, err)
	}
	for name, test := range map[string]struct {
		request model.Request
		want    string
	}{
		"nothing is left":       {grow(second, last, ""), "the script has 2 turns and the conversation asks for turn 3"},
		"another result":        {grow(question(), first, "Nobody knows."), `turn 2 of the script expected "shipped" in the newest message, which is "Nobody knows."`},
		"a schema that is none": {model.Request{Tools: []model.Tool{{Name: "a", InputSchema: []byte("{")}}}, "the request to the model cannot be written as JSON"},
	} {
		_, err := m.Generate(t.Context(), test.request, nil)
		if _, ok := errors.AsType[*failure.ModelError](err); !ok || err.Error() != test.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAScriptThatIsWrongIsToldWhere(t *testing.T) {
	for text, want := range map[string]string{
		"turns: []":   "s.yaml:1: a script needs at least one turn",
		"name: x":     "s.yaml:1:",
		"turns: [{}]": "s.yaml:1: a turn needs a text or tool calls",
		"turns:\n - {text: a}\n - tool_calls:\n   - arguments: {}": "s.yaml:4: a tool call needs a name",
		"turns:\n - tool_calls:\n   - name: a\n     arguments: 7":  "s.yaml:4: arguments must be a mapping",
	} {
		_, err := scripted.Parse("s.yaml", []byte(text))
		if _, ok := errors.AsType[*failure.SpecInvalid](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestAFunctionAnswersEachConversationByItself(t *testing.T) {
	m := scripted.Func(func(request model.Request, turn int) (scripted.Turn, error) {
		return scripted.Turn{Text: fmt.Sprintf("%d %s", turn, request.Messages[0].Text)}, nil
	})
	var together sync.WaitGroup
	for i := range 20 {
		together.Go(func() {
			request := question()
			request.Messages[0].Text = strconv.Itoa(i)
			for turn := 1; turn <= 3; turn++ {
				got, err := m.Generate(t.Context(), request, nil)
				if want := fmt.Sprintf("%d %d", turn, i); err != nil || got.Text != want {
					t.Errorf("got %q and not %q (%v)", got.Text, want, err)
				}
				request = grow(request, got, "")
			}
		})
	}
	together.Wait()
}

func TestAFunctionThatFailsIsAModelThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		kind failure.Kind
	}{
		"in its own way": {errors.New("odd"), failure.KindModelError},
		"in a known way": {failure.New(failure.KindEgressDenied, "no", nil), failure.KindEgressDenied},
	} {
		m := scripted.Func(func(model.Request, int) (scripted.Turn, error) { return scripted.Turn{}, test.err })
		if _, err := m.Generate(t.Context(), question(), nil); failure.KindOf(err) != test.kind || !errors.Is(err, test.err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	unspeakable := scripted.New(scripted.Turn{ToolCalls: []scripted.Call{{Name: "a", Arguments: func() {}}}})
	if _, err := unspeakable.Generate(t.Context(), question(), nil); failure.KindOf(err) != failure.KindModelError {
		t.Errorf("got %v", err)
	}
	if _, err := new(scripted.Model).Generate(t.Context(), question(), nil); failure.KindOf(err) != failure.KindModelError {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerStopsWhereItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pieces := 0
	_, err := scripted.New(scripted.Turn{Text: "one two three"}).Generate(ctx, question(), func(string) { pieces++; cancel() })
	if failure.KindOf(err) != failure.KindCancelled || pieces != 1 {
		t.Errorf("got %v after %d pieces", err, pieces)
	}
}

func FuzzAScriptIsPlayedOrRefused(f *testing.F) {
	f.Add([]byte(script))
	f.Add([]byte(`{"turns":[{"text":"a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := scripted.Parse("s.yaml", data)
		if err != nil {
			if failure.KindOf(err) != failure.KindSpecInvalid || !strings.HasPrefix(err.Error(), "s.yaml:") {
				t.Fatalf("got %v", err)
			}
			return
		}
		if _, err := m.Generate(t.Context(), question(), nil); err != nil && failure.KindOf(err) != failure.KindModelError {
			t.Fatalf("got %v", err)
		}
	})
}
