package openai

import (
	"encoding/json"
	"slices"
	"strings"
)

// callDelta is a piece of a tool call as it streams in.
type callDelta struct {
	Index    loose `json:"index"`
	ID       loose `json:"id"`
	Function struct {
		Name      loose `json:"name"`
		Arguments loose `json:"arguments"`
	} `json:"function"`
}

// call is a tool call as far as it is known.
type call struct {
	index, id, name string
	arguments       strings.Builder
}

// calls are the tool calls of one answer.
type calls struct {
	// begun holds the calls in the order in which they began.
	begun []*call
}

// add finds the call that a piece belongs to, or begins one, and takes it in.
func (c *calls) add(piece callDelta) {
	name, arguments := string(piece.Function.Name), string(piece.Function.Arguments)
	if name == "" && arguments == "" && piece.ID == "" {
		return
	}
	target := c.find(piece)
	if target == nil || target.isOver(piece) {
		target = &call{index: string(piece.Index)}
		c.begun = append(c.begun, target)
	}
	if target.id == "" {
		target.id = string(piece.ID)
	}
	// A name comes once, again with each piece, or in pieces before the arguments.
	if name != target.name && target.arguments.Len() == 0 {
		target.name += name
	}
	target.arguments.WriteString(arguments)
}

// find looks for the latest call with the piece's index; without an index for
// that with its id; where neither leads anywhere and the piece has no name that
// could begin a call, it is the latest of all.
func (c *calls) find(piece callDelta) *call {
	for _, one := range slices.Backward(c.begun) {
		if piece.Index != "" && one.index == string(piece.Index) ||
			piece.Index == "" && piece.ID != "" && one.id == string(piece.ID) {
			return one
		}
	}
	namesNew := piece.ID != "" && piece.Function.Name != ""
	if piece.Index != "" || namesNew || len(c.begun) == 0 {
		return nil
	}
	return c.begun[len(c.begun)-1]
}

// isOver reports that a piece begins another call although its index, its id or
// its place says that it continues this one: some endpoints number every call 0,
// some leave out the number, the id or both.
func (c *call) isOver(piece callDelta) bool {
	name, id := string(piece.Function.Name), string(piece.ID)
	switch {
	case id != "" && c.id != "" && id != c.id:
		return name != "" || c.isWhole()
	case name == "" || c.name == "":
		return false
	case c.isWhole():
		return name != c.name || strings.TrimSpace(string(piece.Function.Arguments)) != ""
	default:
		return name != c.name && piece.Index == "" && id == ""
	}
}

// isWhole reports that the arguments so far are a whole JSON object.
func (c *call) isWhole() bool {
	arguments := c.arguments.String()
	return strings.HasSuffix(strings.TrimSpace(arguments), "}") && json.Valid([]byte(arguments))
}
