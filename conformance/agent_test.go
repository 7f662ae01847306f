package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/psych-systems/psych-go/model"
)

// agent stands in for a model. It makes the calls that the scenario plans, or
// else calls each tool that it is offered once.
type agent struct{ planned []plannedCall }

// plannedCall is a call that the suite wants to see.
type plannedCall struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// newAgent reads what the suite tells its clients about a scenario, if anything.
func newAgent(scenario string) (*agent, error) {
	var given struct {
		ToolCalls []plannedCall `json:"toolCalls"`
	}
	if scenario == "" {
		return &agent{}, nil
	}
	if err := json.Unmarshal([]byte(scenario), &given); err != nil {
		return nil, fmt.Errorf("the suite's context cannot be read: %w", err)
	}
	return &agent{planned: given.ToolCalls}, nil
}

// Generate implements [model.Port].
func (a *agent) Generate(_ context.Context, request model.Request, _ func(string)) (model.Response, error) {
	var calls []plannedCall
	switch turn := turnOf(request.Messages); {
	case turn == 1 && len(a.planned) > 0:
		calls = a.planned
	case turn == 1:
		calls = oneOfEach(request.Tools)
	case turn == 2:
		calls = corrected(a.planned)
	}
	response := model.Response{Text: "done"}
	for i, call := range calls {
		arguments, err := json.Marshal(call.Arguments)
		if err != nil {
			return model.Response{}, err
		}
		response.ToolCalls = append(response.ToolCalls, model.ToolCall{
			ID: fmt.Sprintf("%d-%d", len(request.Messages), i), Name: prefix + call.Name, Arguments: string(arguments),
		})
	}
	return response, nil
}

// prefix begins the public names of the suite's tools.
const prefix = alias + "__"

// turnOf is the turn that a conversation has come to, from 1.
func turnOf(conversation []model.Message) int {
	turn := 1
	for _, message := range conversation {
		if message.Role == model.RoleAssistant {
			turn++
		}
	}
	return turn
}

// corrected is the planned calls that had a null where the schema has none, which
// the runtime refuses, with that argument left out.
func corrected(planned []plannedCall) (calls []plannedCall) {
	for _, call := range planned {
		without := map[string]any{}
		for name, value := range call.Arguments {
			if value != nil {
				without[name] = value
			}
		}
		if len(without) < len(call.Arguments) {
			calls = append(calls, plannedCall{Name: call.Name, Arguments: without})
		}
	}
	return calls
}

// oneOfEach calls each tool with arguments that its schema requires.
func oneOfEach(tools []model.Tool) (calls []plannedCall) {
	for _, tool := range tools {
		var schema struct {
			Required   []string `json:"required"`
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
		}
		// A schema that is not of this shape gets a call without arguments.
		_ = json.Unmarshal(tool.InputSchema, &schema)
		arguments := map[string]any{}
		for _, name := range schema.Required {
			arguments[name] = example(schema.Properties[name].Type, tools)
		}
		calls = append(calls, plannedCall{Name: tool.Name[len(prefix):], Arguments: arguments})
	}
	return calls
}

// example is a value of a type. An object is the first tool's own schema, which
// the scenario about schemas wants to have back as it came.
func example(kind any, tools []model.Tool) any {
	switch kind {
	case "number", "integer":
		return 2
	case "boolean":
		return true
	case "object":
		return tools[0].InputSchema
	case "array":
		return []any{}
	default:
		return "text"
	}
}
