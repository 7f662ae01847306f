package mcpwire

import (
	"strconv"
)

// Message is one request or notification to send. Its id is given by the
// [Exchanger]; a notification has none.
type Message struct {
	// Method is the JSON-RPC method.
	Method string
	// Params is the raw params object; nil for none.
	Params []byte
	// Name is what the Mcp-Name header says (2026-07-28): the tool's name.
	Name string
	// Headers are the Mcp-Param headers of a tool call (2026-07-28).
	Headers []ParamHeader
	// Credential is the name of the credential to send along; "" for none.
	Credential string
	// Version is what the MCP-Protocol-Version header says while none is
	// negotiated; "" for no header.
	Version string
}

// ParamHeader is a tool's argument as a header (2026-07-28, "Custom Headers from
// Tool Parameters").
type ParamHeader struct {
	// Name is the whole header name in canonical form, Value is encoded.
	Name, Value string
}

// encode is the message as JSON-RPC 2.0; an id of 0 makes a notification.
func (m *Message) encode(id int64) []byte {
	const frame = len(`{"jsonrpc":"2.0","id":-9223372036854775808,"method":"","params":}`)
	b := make([]byte, 0, frame+len(m.Method)+len(m.Params))
	b = append(b, `{"jsonrpc":"2.0",`...)
	if id != 0 {
		b = append(b, `"id":`...)
		b = strconv.AppendInt(b, id, 10)
		b = append(b, ',')
	}
	b = append(b, `"method":"`...)
	b = append(b, m.Method...)
	b = append(b, '"')
	if m.Params != nil {
		b = append(b, `,"params":`...)
		b = append(b, m.Params...)
	}
	return append(b, '}')
}
