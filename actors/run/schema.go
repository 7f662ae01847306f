package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/offer"
)

// schemas checks arguments against tools' own input schemas. A schema is
// compiled once a Run, and again when it changes. It is used by the Run's work,
// concurrently.
type schemas struct {
	mu       sync.Mutex
	compiled map[string]compiled
}

type compiled struct {
	source json.RawMessage
	// schema is nil when the source is no schema that can be checked against; the
	// server then judges the arguments by itself.
	schema *jsonschema.Resolved
}

func newSchemas() *schemas { return &schemas{compiled: map[string]compiled{}} }

// check returns [failure.InvalidArguments] with what does not fit.
func (s *schemas) check(tool offer.Tool, arguments json.RawMessage) error {
	schema := s.of(tool)
	if schema == nil {
		return nil
	}
	var value any
	err := json.Unmarshal(arguments, &value)
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return failure.New(failure.KindInvalidArguments,
			fmt.Sprintf("the arguments of %s do not fit its input schema: %v", tool.Public, err), err)
	}
	return nil
}

func (s *schemas) of(tool offer.Tool) *jsonschema.Resolved {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, found := s.compiled[tool.Public]
	if !found || !bytes.Equal(known.source, tool.InputSchema) {
		known = compiled{source: tool.InputSchema, schema: compile(tool.InputSchema)}
		s.compiled[tool.Public] = known
	}
	return known.schema
}

func compile(source json.RawMessage) *jsonschema.Resolved {
	if len(source) == 0 {
		return nil
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(source, &schema); err != nil {
		return nil
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil
	}
	return resolved
}
