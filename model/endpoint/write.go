package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model"
)

// noProperties is the schema of a tool that came without one.
const noProperties = `{"type":"object","properties":{}}`

// Write encodes a value into a request's body, without the escapes that JSON
// inside HTML would need. It fails with [failure.ModelError].
func Write(body *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return failure.New(failure.KindModelError, "the request to the model cannot be written as JSON", err)
	}
	body.Truncate(body.Len() - 1) // the encoder's newline
	return nil
}

// WriteTool writes the members that describe a tool, the schema under the name
// that an API has for it. The schema is written byte for byte; every encoder of
// JSON would rewrite it. It fails with [failure.ModelError] where that is no JSON.
func WriteTool(body *bytes.Buffer, tool model.Tool, schemaName string) error {
	schema := []byte(tool.InputSchema)
	if len(schema) == 0 {
		schema = []byte(noProperties)
	}
	if !json.Valid(schema) {
		return failure.New(failure.KindModelError,
			fmt.Sprintf("the input schema of %s is no JSON and cannot be offered to the model", tool.Name), nil)
	}
	body.WriteString(`"name":`)
	if err := Write(body, tool.Name); err != nil {
		return err
	}
	if tool.Description != "" {
		body.WriteString(`,"description":`)
		if err := Write(body, tool.Description); err != nil {
			return err
		}
	}
	body.WriteString(`,"` + schemaName + `":`)
	body.Write(schema)
	return nil
}
