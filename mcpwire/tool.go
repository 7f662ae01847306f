package mcpwire

import (
	"errors"
	"unicode/utf8"

	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
)

// readTool reads one tool of a valid listing. It fails, with why, on one that
// nobody could call. The schema is a part of raw.
func readTool(raw []byte) (*messages.Tool, error) {
	tool := &messages.Tool{}
	var name, description, schema, annotations []byte
	err := eachMember(raw, func(member, value []byte) {
		switch string(member) {
		case "name":
			name = value
		case "description":
			description = value
		case "inputSchema":
			schema = value
		case "annotations":
			annotations = value
		}
	})
	if err != nil {
		return nil, errors.New("it is not a JSON object")
	}
	var ok bool
	if tool.Name, ok = textOf(name); !ok {
		return nil, errors.New("it has no name")
	}
	if tool.Description, ok = textOf(description); !ok && !absent(description) {
		return tool, errors.New("its description is not a text")
	}
	if firstByte(schema) != '{' {
		return tool, errors.New("its input schema is not a JSON object")
	}
	tool.InputSchema = schema
	tool.Chars = int64(utf8.RuneCountInString(tool.Name) + utf8.RuneCountInString(tool.Description) + utf8.RuneCount(schema))
	hints := readAnnotations(annotations)
	tool.Class = string(narrow.ClassOf(hints))
	tool.Idempotent = hints.Repeatable()
	return tool, nil
}

// readAnnotations reads a tool's hints. Hints that cannot be read count as not
// given, but the annotations as there: so nothing odd makes a tool look harmless.
func readAnnotations(raw []byte) *narrow.Annotations {
	if absent(raw) {
		return nil
	}
	hints := &narrow.Annotations{}
	if eachMember(raw, func(name, value []byte) {
		switch string(name) {
		case "readOnlyHint":
			hints.ReadOnly = hint(value)
		case "destructiveHint":
			hints.Destructive = hint(value)
		case "idempotentHint":
			hints.Idempotent = hint(value)
		}
	}) != nil {
		return &narrow.Annotations{}
	}
	return hints
}

func hint(raw []byte) *bool {
	switch string(raw) {
	case "true":
		return new(true)
	case "false":
		return new(false)
	}
	return nil
}
