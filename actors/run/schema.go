package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

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
	// schema is nil when the source is no schema that can be checked against, or is
	// larger than that is worth; the server then judges the arguments by itself.
	schema *jsonschema.Resolved
}

func newSchemas() *schemas { return &schemas{compiled: map[string]compiled{}} }

// longestMisfit bounds, in runes, what a sentence says of why arguments do not
// fit: the library repeats them and the schema.
const longestMisfit = 400

// check returns [failure.InvalidArguments] with what does not fit. Arguments that
// could only be checked at a price beyond all bounds are left to the server.
func (s *schemas) check(tool offer.Tool, arguments json.RawMessage) error {
	schema := s.of(tool)
	if schema == nil {
		return nil
	}
	var value any
	err := json.Unmarshal(arguments, &value)
	if err == nil && affordable(schema.Schema(), value) {
		err = schema.Validate(value)
	}
	if err != nil {
		return failure.New(failure.KindInvalidArguments,
			fmt.Sprintf("the arguments of %s do not fit its input schema: %s", tool.Public, misfit(err)), err)
	}
	return nil
}

// misfit is the library's reason on one line, within bounds.
func misfit(err error) string {
	text := err.Error()
	const most = longestMisfit * utf8.UTFMax
	cut := len(text) > most
	if cut {
		text = text[:most]
	}
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "")
	if runes := []rune(text); cut || len(runes) > longestMisfit {
		return string(runes[:min(longestMisfit, len(runes))]) + "…"
	}
	return text
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
	if len(source) == 0 || len(source) > largestSchema || bytes.Count(source, []byte{'{'}) > mostSchemas {
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
