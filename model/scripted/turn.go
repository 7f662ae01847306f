package scripted

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model"
)

// Turn is one answer.
type Turn struct {
	// Text is what the model says.
	Text string `yaml:"text"`
	// ToolCalls is what it asks for.
	ToolCalls []Call `yaml:"tool_calls"`
	// Expect is a text that the newest message of the conversation must hold; ""
	// expects nothing. Where it is missing, the turn fails and says so.
	Expect string `yaml:"expect"`
}

// Call is a tool call in an answer.
type Call struct {
	// Name is the tool's public name.
	Name string `yaml:"name"`
	// Arguments is a value that is sent as JSON, or a text that is sent as it is,
	// JSON or not. nil sends {}.
	Arguments any `yaml:"arguments"`
}

// Parse reads a script, in YAML or JSON. It fails with failure.SpecInvalid, whose
// sentence says where in the file it is wrong.
func Parse(file string, data []byte) (*Model, error) {
	var script struct {
		Turns []Turn `yaml:"turns"`
	}
	source, err := document.Decode(file, data, &script)
	if err != nil {
		return nil, err
	}
	var problems document.Problems
	if len(script.Turns) == 0 {
		problems.Add("$.turns", "a script needs at least one turn")
	}
	for i, turn := range script.Turns {
		turn.check(document.Index("$.turns", i), &problems)
	}
	if err := source.First(problems); err != nil {
		return nil, err
	}
	return New(script.Turns...), nil
}

func (t Turn) check(path string, problems *document.Problems) {
	if t.Text == "" && len(t.ToolCalls) == 0 {
		problems.Add(path, "a turn needs a text or tool calls")
	}
	for i, call := range t.ToolCalls {
		at := document.Index(document.Join(path, "tool_calls"), i)
		if call.Name == "" {
			problems.Add(document.Join(at, "name"), "a tool call needs a name")
		}
		switch call.Arguments.(type) {
		case nil, map[string]any, string:
		default:
			problems.Add(document.Join(at, "arguments"), "arguments must be a mapping, or a text that is sent as it is")
		}
	}
}

// disappointed says what a turn expected and did not find; nil when it is content.
func (t Turn) disappointed(turn int, request model.Request) error {
	newest := ""
	if n := len(request.Messages); n > 0 {
		newest = request.Messages[n-1].Text
	}
	if strings.Contains(newest, t.Expect) {
		return nil
	}
	return failure.New(failure.KindModelError,
		fmt.Sprintf("turn %d of the script expected %q in the newest message, which is %q", turn, shorten(t.Expect), shorten(newest)), nil)
}

// shorten keeps what fits into a sentence.
func shorten(text string) string {
	const limit = 100
	if characters := []rune(text); len(characters) > limit {
		return string(characters[:limit]) + "…"
	}
	return text
}

func (c Call) text() (string, error) {
	switch arguments := c.Arguments.(type) {
	case nil:
		return "{}", nil
	case string:
		return arguments, nil
	default:
		encoded, err := json.Marshal(arguments)
		if err != nil {
			return "", failure.New(failure.KindModelError, fmt.Sprintf("the script's arguments for %s are no JSON", c.Name), err)
		}
		return string(encoded), nil
	}
}
