package psych

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/psych-systems/psych-go/actors/run"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
	"github.com/psych-systems/psych-go/offer"
)

// HostTool is a tool of the embedding program; make one with [NewTool].
type HostTool struct {
	name, description string
	class             narrow.Class
	schema            json.RawMessage
	call              func(ctx context.Context, scope messages.Scope, arguments json.RawMessage) (run.HostResult, error)
	// err is why the tool cannot be used; [New] reports it.
	err error
}

// ReadOnly marks a tool that changes nothing.
func (t HostTool) ReadOnly() HostTool { t.class = narrow.ReadOnly; return t }

// Destructive marks a tool whose effects cannot be undone.
func (t HostTool) Destructive() HostTool { t.class = narrow.Destructive; return t }

// NewTool makes a tool of a function. The input schema is derived from In, which
// must be a struct or a map: fields are named by their json tags, described by
// their jsonschema tags, and required unless they have omitempty. The model
// reads Out as it is when it is a string, else as JSON; an error is told to the
// model by its text. Without [HostTool.ReadOnly] or [HostTool.Destructive] the
// tool's class is write.
//
// The function runs on a goroutine of its own, under the Run's context, which
// ends with the Run. It may be called concurrently.
func NewTool[In, Out any](name, description string, fn func(ctx context.Context, scope messages.Scope, in In) (Out, error)) HostTool {
	tool := HostTool{name: name, description: description, class: narrow.Write}
	schema, err := jsonschema.For[In](nil)
	if err == nil && schema.Type != "object" {
		err = fmt.Errorf("the input of a tool must be a struct or a map")
	}
	if err == nil {
		tool.schema, err = json.Marshal(schema)
	}
	if err != nil {
		tool.err = failure.New(failure.KindSpecInvalid,
			fmt.Sprintf("the host tool %q has no usable input type: %v", name, err), err)
	}
	tool.call = func(ctx context.Context, scope messages.Scope, arguments json.RawMessage) (run.HostResult, error) {
		var in In
		if err := json.Unmarshal(arguments, &in); err != nil {
			return run.HostResult{}, failure.New(failure.KindInvalidArguments,
				fmt.Sprintf("the arguments of %s cannot be used: %v", name, err), err)
		}
		out, err := fn(ctx, scope, in)
		if err != nil {
			return run.HostResult{}, toolError(name, err)
		}
		return hostResult(name, out)
	}
	return tool
}

// toolError is a host tool's error as the model reads it.
func toolError(name string, err error) error {
	if _, typed := errors.AsType[failure.Failure](err); typed {
		return err
	}
	sentence := err.Error()
	if sentence == "" {
		sentence = fmt.Sprintf("the tool %s failed without saying why", name)
	}
	return failure.New(failure.KindMcpToolError, sentence, err)
}

func hostResult(name string, out any) (run.HostResult, error) {
	if text, ok := out.(string); ok {
		return run.HostResult{Text: text}, nil
	}
	encoded, err := json.Marshal(out)
	if err != nil {
		return run.HostResult{}, failure.New(failure.KindInternal,
			fmt.Sprintf("the result of %s cannot be written as JSON", name), err)
	}
	return run.HostResult{Text: string(encoded), Structured: encoded}, nil
}

// hosts is the registered host tools by name.
type hosts map[string]HostTool

func newHosts(tools []HostTool) (hosts, error) {
	registered := make(hosts, len(tools))
	for _, tool := range tools {
		if tool.err != nil {
			return nil, tool.err
		}
		if _, twice := registered[tool.name]; twice {
			return nil, failure.New(failure.KindNameConflict,
				fmt.Sprintf("the host tool %q is registered twice", tool.name), nil)
		}
		registered[tool.name] = tool
	}
	return registered, nil
}

// Offered implements [run.Hosts].
func (h hosts) Offered(names []string) []offer.HostTool {
	offered := make([]offer.HostTool, 0, len(names))
	for _, name := range names {
		if tool, ok := h[name]; ok {
			offered = append(offered, offer.HostTool{
				Name: tool.name, Description: tool.description, InputSchema: tool.schema, Class: tool.class,
			})
		}
	}
	return offered
}

// Call implements [run.Hosts].
func (h hosts) Call(ctx context.Context, scope messages.Scope, name string, arguments json.RawMessage) (run.HostResult, error) {
	return h[name].call(ctx, scope, slices.Clone(arguments))
}
