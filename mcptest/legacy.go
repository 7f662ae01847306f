package mcptest

import (
	"fmt"
	"net/http"
	"slices"
)

// answerLegacy answers as the revisions 2025-03-26 to 2025-11-25 say
// (Transports, Streamable HTTP).
func (s *Server) answerLegacy(x *Exchange, tools []Tool) reply {
	r := x.Request
	if refusal, refused := s.refuseSession(x); refused {
		return refusal
	}
	switch r.HTTPMethod {
	case http.MethodGet:
		return s.openLegacy(r)
	case http.MethodDelete:
		return s.endSession(r.Session())
	case http.MethodPost:
	default:
		return reply{status: http.StatusMethodNotAllowed}
	}
	if !r.isRequest() {
		if r.Method == "" && !r.response {
			return x.failure(http.StatusBadRequest, codeInvalidRequest, "Invalid request")
		}
		return reply{status: http.StatusAccepted}
	}
	answer := s.lifecycle(x, s.legacy, tools)
	if r.Method == "initialize" && !s.stateless {
		answer.header = map[string]string{sessionHeader: s.newSession()}
	}
	return answer
}

// refuseSession refuses a request whose session or revision the server does not
// serve.
func (s *Server) refuseSession(x *Exchange) (refusal reply, refused bool) {
	r := x.Request
	switch version := r.Header.Get(versionHeader); {
	case r.Method == "initialize":
		return reply{}, false
	case version != "" && !slices.Contains([]string{Version20251125, Version20250618, Version20250326}, version):
		return x.failure(http.StatusBadRequest, -32000, "Bad Request: Unsupported protocol version"), true
	case s.stateless:
		return reply{}, false
	case r.Session() == "":
		return x.failure(http.StatusBadRequest, -32000, "Bad Request: Mcp-Session-Id header is required"), true
	case r.lost:
		return reply{status: http.StatusNotFound}, true
	}
	return reply{}, false
}

// openLegacy opens the stream of a session, or resumes one that was cut.
func (s *Server) openLegacy(r Request) reply {
	if r.About(Resume) {
		s.mu.Lock()
		defer s.mu.Unlock()
		message, known := s.kept[r.Header.Get("Last-Event-ID")]
		if !known {
			return reply{status: http.StatusNotFound}
		}
		return reply{message: message, open: &stream{greeting: event(message)}, last: true}
	}
	if s.stateless || !s.listChanged {
		return reply{status: http.StatusMethodNotAllowed}
	}
	return reply{open: &stream{session: r.Session(), tools: true}}
}

func (s *Server) newSession() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	id := fmt.Sprintf("session-%d", s.serial)
	s.sessions[id] = true
	return id
}

func (s *Server) endSession(id string) reply {
	if s.stateless {
		return reply{status: http.StatusMethodNotAllowed}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
	for _, st := range s.streams {
		if st.session == id {
			st.end(false)
		}
	}
	return reply{status: http.StatusNoContent}
}

// keep remembers the message that follows an event, and returns the event's id.
func (s *Server) keep(message string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	id := fmt.Sprintf("event-%d", s.serial)
	s.kept[id] = message
	return id
}
