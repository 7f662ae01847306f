package mcptest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Message sends one message, JSON-RPC or not, where the server's reply would go:
// as a JSON body, as an event, or on the stream of an HTTPSSE session.
func Message(message string) Behaviour {
	return Do("a message", func(x *Exchange) { x.Send(x.fill(message)) })
}

// Answer replies with that raw result. The tool does not run.
func Answer(result string) Behaviour {
	return Message(`{"jsonrpc":"2.0","id":$ID,"result":` + result + `}`).Named("a raw result")
}

// Error replies with a JSON-RPC error; data is raw JSON, "" for none.
func Error(code int, message, data string) Behaviour {
	text := fmt.Sprintf(`{"code":%d,"message":%s`, code, quote(message))
	if data != "" {
		text += `,"data":` + data
	}
	return Message(`{"jsonrpc":"2.0","id":$ID,"error":` + text + `}}`).Named(fmt.Sprintf("error %d", code))
}

// InputRequired replies that input is needed first (2026-07-28, Multi Round-Trip
// Requests): requests is the raw inputRequests object.
func InputRequired(requests string) Behaviour {
	return Answer(`{"resultType":"input_required","inputRequests":` + requests + `}`).Named("input required")
}

// WrongID replies to a request that nobody made.
func WrongID() Behaviour { return withID(`"nobody asked"`).Named("a reply with a wrong id") }

// NullID replies without saying to what.
func NullID() Behaviour { return withID("null").Named("a reply with a null id") }

func withID(id string) Behaviour {
	return Do("", func(x *Exchange) {
		var members map[string]json.RawMessage
		_ = json.Unmarshal([]byte(x.Reply()), &members)
		members["id"] = json.RawMessage(id)
		encoded, _ := json.Marshal(members) // decoded a line above
		x.Send(string(encoded))
	})
}

// TextError replies with an error that is a text and no object, as gateways do.
func TextError(text string) Behaviour {
	return Message(`{"error":` + quote(text) + `}`).Named("an error that is a text")
}

// Batch replies with an array that holds the reply (legal on 2025-03-26).
func Batch() Behaviour { return Message("[$REPLY]").Named("a batch") }

// Nested replies with a result that is nested so deep. Deeper than 10,000 is more
// than encoding/json reads.
func Nested(depth int) Behaviour {
	return Answer(`{"content":[],"structuredContent":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`).
		Named(fmt.Sprintf("a result %d deep", depth))
}
