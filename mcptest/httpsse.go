package mcptest

import "net/http"

// answerSSE answers as the HTTP+SSE transport of revision 2024-11-05 says: GET
// opens a session's stream, and POST takes messages, whose replies go there.
func (s *Server) answerSSE(x *Exchange, tools []Tool) reply {
	r := x.Request
	switch {
	case r.HTTPMethod == http.MethodGet && x.http.URL.Path == "/sse":
		id := s.newSession()
		return reply{open: &stream{session: id, tools: s.listChanged, greeting: "event: endpoint\ndata: /messages?session=" + id + "\n\n"}}
	case r.HTTPMethod != http.MethodPost || x.http.URL.Path != "/messages":
		return reply{status: http.StatusMethodNotAllowed}
	case r.lost || x.sessionStream() == nil:
		return reply{status: http.StatusNotFound}
	case !r.isRequest():
		return reply{status: http.StatusAccepted}
	default:
		return s.lifecycle(x, Version20241105, tools)
	}
}

// replyStream is the stream that the ordinary reply to this request goes to; nil
// when it goes into the response.
func (x *Exchange) replyStream() *stream {
	if !x.server.sse || !x.Request.isRequest() {
		return nil
	}
	if _, refusal := x.server.admit(x.Request); refusal != nil {
		return nil
	}
	return x.sessionStream()
}

// answerOn makes the reply and sends it on a session's stream. The response to the
// request is over by then, so the tool's context is the stream's.
func (x *Exchange) answerOn(st *stream) {
	x.http = x.http.WithContext(st.ctx)
	st.write(event(x.Reply()))
}

// sessionStream is the stream of an HTTPSSE session; nil when it is closed.
func (x *Exchange) sessionStream() *stream {
	if !x.server.sse || x.Request.HTTPMethod != http.MethodPost {
		return nil
	}
	id := x.http.URL.Query().Get("session")
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	for _, st := range x.server.streams {
		if st.session == id {
			return st
		}
	}
	return nil
}
