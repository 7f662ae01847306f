package mcptest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// What a request is about, where that is not a JSON-RPC method. [Server.On],
// [Server.Requests] and [Server.WaitFor] take these, [Tool] names and JSON-RPC
// methods such as "tools/list"; of an [AuthorizationServer] grant types such as
// "refresh_token"; and of both a path that begins with a slash, such as
// "/.well-known/oauth-protected-resource".
const (
	// Any is every request.
	Any = "*"
	// Get is an HTTP GET: the stream of an older revision.
	Get = http.MethodGet
	// Resume is a GET with a Last-Event-ID.
	Resume = "GET Last-Event-ID"
	// Delete is an HTTP DELETE: the end of a session.
	Delete = http.MethodDelete
	// LostSession is a request whose session id the server does not know (any more).
	LostSession = "lost session"
	// Response is a POST that answers a request of the server.
	Response = "response"
)

// CallOf is what calls of one tool are about: On(CallOf("echo"), …) leaves the
// calls of other tools alone.
func CallOf(tool string) string { return "tools/call " + tool }

// Request is one HTTP request as the server saw it.
type Request struct {
	At         time.Time
	HTTPMethod string
	// Proto is the protocol that carried it, such as "HTTP/2.0", and From the
	// client's end of its connection.
	Proto, From string
	// Path is the request's path, with its query.
	Path   string
	Header http.Header
	Body   []byte
	// Method is the JSON-RPC method; "" when the body holds none.
	Method string
	ID     json.RawMessage
	Params json.RawMessage
	// Tool is the tool that a tools/call names.
	Tool string

	lost     bool // its session is unknown
	response bool
}

// Token is the bearer token of the request; "" for none.
func (r Request) Token() string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return token
}

// Session is the request's Mcp-Session-Id; "" for none.
func (r Request) Session() string { return r.Header.Get(sessionHeader) }

// About reports whether the request is about one thing; see [Any] and what follows it.
func (r Request) About(what string) bool {
	if strings.HasPrefix(what, "/") {
		return r.path() == what
	}
	switch what {
	case Any:
		return true
	case Get, Delete:
		return r.HTTPMethod == what
	case Resume:
		return r.HTTPMethod == Get && r.Header.Get("Last-Event-ID") != ""
	case LostSession:
		return r.lost
	case Response:
		return r.response
	}
	if tool, isCall := strings.CutPrefix(what, CallOf("")); isCall {
		return r.Method == "tools/call" && r.Tool == tool
	}
	return r.Method == what || r.grantType() == what
}

// path is the request's path without its query.
func (r Request) path() string {
	path, _, _ := strings.Cut(r.Path, "?")
	return path
}

// Form is the request's query and, where its body is a form, the body's values.
func (r Request) Form() url.Values {
	_, query, _ := strings.Cut(r.Path, "?")
	values, _ := url.ParseQuery(query)
	if isMedia(r.Header.Get("Content-Type"), formMedia) {
		body, _ := url.ParseQuery(string(r.Body))
		for name, several := range body {
			values[name] = append(values[name], several...)
		}
	}
	return values
}

const formMedia = "application/x-www-form-urlencoded"

// grantType is the grant that a token request is for; "" for any other request.
func (r Request) grantType() string {
	if r.HTTPMethod != http.MethodPost {
		return ""
	}
	return r.Form().Get("grant_type")
}

// isRequest reports whether the body is a JSON-RPC request, which wants an answer.
func (r Request) isRequest() bool { return r.Method != "" && len(r.ID) > 0 }

// NewRequest reads one HTTP request, whose body has been read already.
func NewRequest(hr *http.Request, body []byte) Request {
	r := Request{
		At: time.Now(), HTTPMethod: hr.Method, Proto: hr.Proto, From: hr.RemoteAddr, Path: hr.URL.RequestURI(), Header: hr.Header.Clone(), Body: body,
	}
	var message struct {
		Method string          `json:"method"`
		ID     json.RawMessage `json:"id"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &message) != nil {
		return r
	}
	r.Method, r.ID, r.Params = message.Method, message.ID, message.Params
	r.response = message.Method == "" && (len(message.Result) > 0 || len(message.Error) > 0)
	if r.Method == "tools/call" {
		var params struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(r.Params, &params)
		r.Tool = params.Name
	}
	return r
}

// record adds a request to the log and wakes those who wait for it.
func (s *scripted) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, r)
	s.wake()
}

// wake tells those who wait that something changed. Caller holds mu.
func (s *scripted) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Requests are the requests about one thing, oldest first.
func (s *scripted) Requests(what string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests(what)
}

func (s *scripted) requests(what string) []Request {
	var found []Request
	for _, r := range s.log {
		if r.About(what) {
			found = append(found, r)
		}
	}
	return found
}

// Forget empties the log.
func (s *scripted) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// patience is how long a test waits for what should happen at once.
const patience = 10 * time.Second

// WaitFor waits until the log holds n requests about one thing, and returns what
// it holds. It ends the test when they do not come within 10 seconds. Call it on
// the test's goroutine.
func (s *scripted) WaitFor(what string, n int) []Request {
	s.tb.Helper()
	var found []Request
	if !s.wait(func() bool { found = s.requests(what); return len(found) >= n }) {
		s.tb.Fatalf("mcptest: %d of %d requests about %q came in %v", len(found), n, what, patience)
	}
	return found
}

// WaitStreams waits until exactly n streams are open for notifications. It ends
// the test when that is not so within 10 seconds. Call it on the test's goroutine.
func (s *Server) WaitStreams(n int) {
	s.tb.Helper()
	if !s.wait(func() bool { return len(s.streams) == n }) {
		s.tb.Fatalf("mcptest: %d streams are open after %v and not %d", s.Streams(), patience, n)
	}
}

// wait waits until a condition holds; it is judged under mu after each change.
func (s *scripted) wait(holds func() bool) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		s.mu.Lock()
		held, changed := holds(), s.changed
		s.mu.Unlock()
		if held {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		}
	}
}
