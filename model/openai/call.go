package openai

import (
	"encoding/json"
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
	// ending follows the arguments' nesting, so that they are not read again with
	// each piece.
	ending nesting
}

// calls are the tool calls of one answer.
type calls struct {
	// begun holds the calls in the order in which they began.
	begun []*call
	// byIndex and byID hold the latest call with a number and with an id.
	byIndex, byID map[string]*call
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
		if target.index != "" {
			remember(&c.byIndex, target.index, target)
		}
	}
	if target.id == "" && piece.ID != "" {
		target.id = string(piece.ID)
		remember(&c.byID, target.id, target)
	}
	// A name comes once, again with each piece, or in pieces before the arguments.
	if name != target.name && target.arguments.Len() == 0 {
		target.name += name
	}
	target.arguments.WriteString(arguments)
	target.ending.follow(arguments)
}

func remember(calls *map[string]*call, key string, one *call) {
	if *calls == nil {
		*calls = make(map[string]*call)
	}
	(*calls)[key] = one
}

// find looks for the latest call with the piece's index; without an index for
// that with its id; where neither leads anywhere and the piece has no name that
// could begin a call, it is the latest of all.
func (c *calls) find(piece callDelta) *call {
	if piece.Index != "" {
		return c.byIndex[string(piece.Index)]
	}
	if one := c.byID[string(piece.ID)]; one != nil {
		return one
	}
	namesNew := piece.ID != "" && piece.Function.Name != ""
	if namesNew || len(c.begun) == 0 {
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
func (c *call) isWhole() bool { return c.ending.ended && json.Valid([]byte(c.arguments.String())) }

// nesting follows the braces of an object that comes in pieces. Whether it is
// JSON is not its affair.
type nesting struct {
	depth           int
	quoted, escaped bool
	// ended says that the object has ended and nothing but white space follows.
	ended, broken bool
}

func (n *nesting) follow(piece string) {
	for i := range len(piece) {
		c := piece[i]
		switch {
		case n.broken:
			return
		case n.escaped:
			n.escaped = false
		case n.quoted:
			n.escaped, n.quoted = c == '\\', c != '"'
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		case n.ended:
			n.ended, n.broken = false, true
		case c == '"':
			n.quoted = true
		case c == '{' || c == '[':
			n.depth++
		case c == '}' || c == ']':
			n.depth--
			n.ended, n.broken = n.depth == 0 && c == '}', n.depth < 0
		}
	}
}
