package mcptest

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"

	codeMethodNotFound     = -32601
	codeInvalidRequest     = -32600
	codeInvalidParams      = -32602
	codeHeaderMismatch     = -32020
	codeUnsupportedVersion = -32022
)

// answer makes the ordinary answer to a request; a tools/call runs its tool.
func (s *Server) answer(x *Exchange) reply {
	if besides := s.besides(x); besides != nil {
		return *besides
	}
	tools, refusal := s.admit(x.Request)
	switch {
	case refusal != nil:
		return *refusal
	case s.sse:
		return s.answerSSE(x, tools)
	case s.modern && (s.legacy == "" || isModern(x.Request)):
		return s.answerModern(x, tools)
	default:
		return s.answerLegacy(x, tools)
	}
}

// admit judges a request by its HTTP side alone, and returns the tools that its
// token opens.
func (s *Server) admit(r Request) (tools []Tool, refusal *reply) {
	if refusal := s.denies(r); refusal != nil {
		return nil, refusal
	}
	tools, ok := s.authorized(r)
	if !ok {
		return nil, &reply{status: http.StatusUnauthorized, header: map[string]string{
			"WWW-Authenticate": `Bearer realm="mcptest", error="invalid_token"`,
		}}
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != s.Origin() {
		return nil, &reply{status: http.StatusForbidden}
	}
	if status := s.unacceptable(r); status != 0 {
		return nil, &reply{status: status}
	}
	return tools, nil
}

// unacceptable is the status for a request whose media types are not what the
// transport demands of clients; 0 for nothing.
func (s *Server) unacceptable(r Request) int {
	if r.HTTPMethod == http.MethodPost && !isMedia(r.Header.Get("Content-Type"), "application/json") {
		return http.StatusUnsupportedMediaType
	}
	var wanted []string
	switch {
	case r.HTTPMethod == http.MethodGet:
		wanted = []string{"text/event-stream"}
	case r.HTTPMethod == http.MethodPost && !s.sse:
		wanted = []string{"application/json", "text/event-stream"}
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	for _, media := range wanted {
		if !slices.ContainsFunc(strings.Split(accept, ","), func(one string) bool { return isMedia(one, media) }) {
			return http.StatusNotAcceptable
		}
	}
	return 0
}

func isMedia(value, media string) bool {
	got, _, err := mime.ParseMediaType(strings.TrimSpace(value))
	return err == nil && (got == media || got == "*/*")
}

// authorized returns the tools that a request's token opens.
func (s *Server) authorized(r Request) (tools []Tool, ok bool) {
	if s.authenticate == nil {
		return s.currentTools(), true
	}
	tools, ok = s.authenticate(r.Token())
	if tools == nil {
		tools = s.currentTools()
	}
	return tools, ok
}

func (x *Exchange) result(raw string) reply {
	return reply{message: x.fill(`{"jsonrpc":"2.0","id":$ID,"result":`) + raw + `}`}
}

func (x *Exchange) failure(status, code int, message string) reply {
	return reply{status: status, message: x.fill(`{"jsonrpc":"2.0","id":$ID,"error":`) +
		fmt.Sprintf(`{"code":%d,"message":%s}}`, code, quote(message))}
}

// list answers tools/list: a page, and the cursor of the next one.
func (s *Server) list(x *Exchange, tools []Tool) (result string, found bool) {
	var params struct {
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(x.Request.Params, &params)
	begin := 0
	if params.Cursor != "" {
		var err error
		if begin, err = strconv.Atoi(params.Cursor); err != nil || begin < 0 || begin > len(tools) {
			return "", false
		}
	}
	end := len(tools)
	if s.pageSize > 0 {
		end = min(end, begin+s.pageSize)
	}
	page := make([]json.RawMessage, 0, end-begin)
	for _, t := range tools[begin:end] {
		page = append(page, t.definition())
	}
	result = `{"tools":` + rawArray(page)
	if end < len(tools) {
		result += `,"nextCursor":"` + strconv.Itoa(end) + `"`
	}
	return result + `}`, true
}

// rawArray joins raw values as they are; encoding/json would compact them.
func rawArray(values []json.RawMessage) string {
	text := []byte{'['}
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, v...)
	}
	return string(append(text, ']'))
}

// call answers tools/call.
func (s *Server) call(x *Exchange, tools []Tool) (result string, found bool) {
	for _, t := range tools {
		if t.Name != x.Request.Tool {
			continue
		}
		if t.Call == nil {
			return Text("ok").json(), true
		}
		var params struct {
			Arguments json.RawMessage `json:"arguments"`
		}
		_ = json.Unmarshal(x.Request.Params, &params)
		return t.Call(x.Context(), Call{
			Tool: t.Name, Arguments: params.Arguments, Header: x.Request.Header, Token: x.Request.Token(),
			notify: func(method, params string) {
				x.Event(`{"jsonrpc":"2.0","method":` + quote(method) + `,"params":` + params + `}`)
			},
		}).json(), true
	}
	return "", false
}

// lifecycle answers what the older revisions share: everything but the transport.
func (s *Server) lifecycle(x *Exchange, version string, tools []Tool) reply {
	switch x.Request.Method {
	case "initialize":
		return x.result(s.initialized(version))
	case "ping":
		return x.result(`{}`)
	case "tools/list":
		if result, found := s.list(x, tools); found {
			return x.result(result)
		}
		return x.failure(0, codeInvalidParams, "Invalid cursor")
	case "tools/call":
		if result, found := s.call(x, tools); found {
			return x.result(result)
		}
		return x.failure(0, codeInvalidParams, "Unknown tool: "+x.Request.Tool)
	default:
		return x.failure(0, codeMethodNotFound, "Method not found")
	}
}

// initialized is the result of initialize.
func (s *Server) initialized(version string) string {
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":%s%s}`,
		version, s.capabilities(), serverInfo, s.instructionsMember())
}

const serverInfo = `{"name":"mcptest","version":"1"}`

func (s *Server) capabilities() string {
	return fmt.Sprintf(`{"tools":{"listChanged":%t}}`, s.listChanged)
}

func (s *Server) instructionsMember() string {
	if s.instructions == "" {
		return ""
	}
	return `,"instructions":` + quote(s.instructions)
}
