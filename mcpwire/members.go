package mcpwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// depthLimit is how deep an answer may nest. Real ones nest a few dozen levels;
// everything beneath the limit is safe for every decoder that sees it later.
const depthLimit = 1000

var (
	errNotJSON = errors.New("not JSON")
	errTooDeep = errors.New("JSON nested too deep")
)

// cursor finds where JSON values end without decoding them. It checks structure
// only: whoever uses a value checks it with json.Valid first.
type cursor struct {
	data []byte
	at   int
}

// next is the first byte that is not white space, without passing it; 0 at the end.
func (c *cursor) next() byte {
	for c.at < len(c.data) {
		switch b := c.data[c.at]; b {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return b
		}
	}
	return 0
}

// pass steps over one byte, which must be the given one.
func (c *cursor) pass(b byte) bool {
	if c.next() != b {
		return false
	}
	c.at++
	return true
}

// text steps over a string and returns what is between its quotes, undecoded.
func (c *cursor) text() ([]byte, error) {
	if !c.pass('"') {
		return nil, errNotJSON
	}
	start := c.at
	for {
		quote := bytes.IndexByte(c.data[c.at:], '"')
		if quote < 0 {
			return nil, errNotJSON
		}
		end := c.at + quote
		c.at = end + 1
		slashes := 0
		for end-slashes-1 >= start && c.data[end-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return c.data[start:end], nil
		}
	}
}

// value steps over one value and returns it.
func (c *cursor) value() ([]byte, error) {
	first := c.next()
	start := c.at
	switch first {
	case '"':
		if _, err := c.text(); err != nil {
			return nil, err
		}
	case '{', '[':
		if err := c.container(); err != nil {
			return nil, err
		}
	default:
		for c.at < len(c.data) && isScalar(c.data[c.at]) {
			c.at++
		}
	}
	if c.at == start {
		return nil, errNotJSON
	}
	return c.data[start:c.at], nil
}

func (c *cursor) container() error {
	depth := 0
	for c.at < len(c.data) {
		switch c.data[c.at] {
		case '"':
			if _, err := c.text(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
			if depth > depthLimit {
				return errTooDeep
			}
		case '}', ']':
			depth--
		}
		c.at++
		if depth == 0 {
			return nil
		}
	}
	return errNotJSON
}

func isScalar(b byte) bool {
	return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || b == '-' || b == '+' || b == '.' || b == 'E'
}

// eachMember visits the members of a JSON object in order; a name that comes
// twice is visited twice. Values are parts of the object's bytes.
func eachMember(object []byte, visit func(name, value []byte)) error {
	c := cursor{data: object}
	if !c.pass('{') {
		return errNotJSON
	}
	for first := true; !c.pass('}'); first = false {
		if !first && !c.pass(',') {
			return errNotJSON
		}
		name, err := c.text()
		if err != nil {
			return err
		}
		if bytes.IndexByte(name, '\\') >= 0 {
			var decoded string
			if json.Unmarshal(c.data[c.at-len(name)-2:c.at], &decoded) != nil {
				return errNotJSON
			}
			name = []byte(decoded)
		}
		if !c.pass(':') {
			return errNotJSON
		}
		value, err := c.value()
		if err != nil {
			return err
		}
		if end := c.next(); end != ',' && end != '}' {
			return errNotJSON // a number that is cut off is another number
		}
		visit(name, value)
	}
	return c.end()
}

// eachLastMember visits the last members of an object of which only the end is
// there, last one first, up to one whose value is an object or an array.
func eachLastMember(end []byte, visit func(name, value []byte)) {
	rest := bytes.TrimRight(end, jsonSpace)
	rest, whole := bytes.CutSuffix(rest, []byte{'}'})
	for whole {
		var name, value []byte
		if rest, value, whole = cutLastScalar(rest); !whole {
			return
		}
		if rest, whole = bytes.CutSuffix(rest, []byte{':'}); !whole {
			return
		}
		rest = bytes.TrimRight(rest, jsonSpace)
		if rest, name, whole = cutLastScalar(rest); !whole || name[0] != '"' {
			return
		}
		visit(name[1:len(name)-1], value)
		rest, whole = bytes.CutSuffix(rest, []byte{','})
	}
}

const jsonSpace = " \t\r\n"

// cutLastScalar cuts off a text's last scalar, with white space around it.
func cutLastScalar(text []byte) (rest, scalar []byte, found bool) {
	text = bytes.TrimRight(text, jsonSpace)
	start := len(text)
	if start > 0 && text[start-1] == '"' {
		start = lastQuote(text[:start-1])
	} else {
		for start > 0 && isScalar(text[start-1]) {
			start--
		}
	}
	if start < 0 || start == len(text) {
		return nil, nil, false
	}
	return bytes.TrimRight(text[:start], jsonSpace), text[start:], true
}

// lastQuote is where a text has its last quote that is not escaped; -1 for none.
func lastQuote(text []byte) int {
	for at := bytes.LastIndexByte(text, '"'); at >= 0; at = bytes.LastIndexByte(text[:at], '"') {
		slashes := 0
		for at-slashes > 0 && text[at-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return at
		}
	}
	return -1
}

// eachElement visits the elements of a JSON array in order.
func eachElement(array []byte, visit func(value []byte)) error {
	c := cursor{data: array}
	if !c.pass('[') {
		return errNotJSON
	}
	for first := true; !c.pass(']'); first = false {
		if !first && !c.pass(',') {
			return errNotJSON
		}
		value, err := c.value()
		if err != nil {
			return err
		}
		visit(value)
	}
	return c.end()
}

func (c *cursor) end() error {
	if c.next() != 0 || c.at != len(c.data) {
		return errNotJSON
	}
	return nil
}

// firstByte is the first byte of a JSON text that is not white space, 0 for none.
func firstByte(text []byte) byte {
	c := cursor{data: text}
	return c.next()
}

// absent says that a member is missing or null.
func absent(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// textOf decodes a JSON string; ok is false for anything else.
func textOf(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 && json.Valid(value) {
		return validText(inner), true
	}
	return text, json.Unmarshal(value, &text) == nil
}

// validText is text with each byte that is not UTF-8 replaced, as encoding/json
// does it.
func validText(text []byte) string {
	return strings.Map(func(r rune) rune { return r }, string(text))
}
