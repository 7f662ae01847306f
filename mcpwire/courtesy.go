package mcpwire

import (
	"context"
	"encoding/json"
	"strconv"
)

// Methods that this package sends or meets.
const (
	methodCancelled    = "notifications/cancelled"
	methodInitialize   = "initialize"
	methodInitialized  = "notifications/initialized"
	methodDiscover     = "server/discover"
	methodListen       = "subscriptions/listen"
	methodAcknowledged = "notifications/subscriptions/acknowledged"
	methodListChanged  = "notifications/tools/list_changed"
	methodCallTool     = "tools/call"
	methodListTools    = "tools/list"
	methodPing         = "ping"
)

const (
	// mostAnswers bounds the answers that are under way to one server's requests;
	// a server that asks faster than it listens goes without.
	mostAnswers = 8
	// longestID bounds, in bytes, the id of a server's request.
	longestID = 256
)

// meet takes a message of the server's own: a notification, or before 2026-07-28
// a request, which is answered so that the server does not wait for ever.
func (s *streamable) meet(m *inbound, agreed *agreement, credential string) {
	if !m.request() {
		if changed := s.changed.Load(); changed != nil {
			(*changed)(m.method)
		}
		return
	}
	if agreed == nil || agreed.modern {
		return
	}
	body := answerTo(m)
	if body == nil || s.answering.Add(1) > mostAnswers {
		s.answering.Add(-1)
		return
	}
	if !s.courtesy("answer", func(ctx context.Context) *Fault {
		defer s.answering.Add(-1)
		return s.post(ctx, agreed, &Message{Credential: credential}, body)
	}) {
		s.answering.Add(-1)
	}
}

// answerTo is our answer to a server's request: we are there, and that is all.
func answerTo(m *inbound) []byte {
	if len(m.id) > longestID || !json.Valid(m.id) {
		return nil
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), m.id...)
	if m.method == methodPing {
		return append(b, `,"result":{}}`...)
	}
	return append(b, `,"error":{"code":-32601,"message":"this client offers no such method"}}`...)
}

// cancelled tells an older server that nobody waits for a request any more; in
// 2026-07-28 the end of the connection tells it.
func (s *streamable) cancelled(fault *Fault, agreed *agreement, id int64, credential string) {
	if agreed == nil || agreed.modern || fault.Class != ClassCancelled && fault.Class != ClassTimeout {
		return
	}
	m := cancellation(id, credential)
	s.courtesy("cancellation", func(ctx context.Context) *Fault {
		return s.post(ctx, agreed, m, m.encode(0))
	})
}

func cancellation(id int64, credential string) *Message {
	params := append([]byte(`{"requestId":`), strconv.FormatInt(id, 10)...)
	params = append(params, `,"reason":"the caller stopped waiting"}`...)
	return &Message{Method: methodCancelled, Params: params, Credential: credential}
}
