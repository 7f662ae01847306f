package mcptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Members of _meta that revision 2026-07-28 reserves.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// isModern reports whether a request speaks 2026-07-28, for a server of two eras.
func isModern(r Request) bool {
	_, inMeta := metaOf(r)[metaVersion]
	return inMeta || r.Header.Get(versionHeader) == Version20260728
}

func metaOf(r Request) map[string]json.RawMessage {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(r.Params, &params)
	return params.Meta
}

// answerModern answers as revision 2026-07-28 says (Streamable HTTP, Request
// Metadata and Server Validation).
func (s *Server) answerModern(x *Exchange, tools []Tool) reply {
	r := x.Request
	switch {
	case r.HTTPMethod != http.MethodPost:
		return reply{status: http.StatusMethodNotAllowed}
	case r.Method != "" && len(r.ID) == 0:
		return reply{status: http.StatusAccepted}
	case !r.isRequest():
		return x.failure(http.StatusBadRequest, codeInvalidRequest, "Invalid request")
	}
	if refusal, refused := s.validate(x, tools); refused {
		return refusal
	}
	switch r.Method {
	case "server/discover":
		versions := []string{Version20260728}
		if s.legacy != "" {
			versions = append(versions, s.legacy)
		}
		encoded, _ := json.Marshal(versions)
		return x.result(complete(fmt.Sprintf(`{"supportedVersions":%s,"capabilities":%s%s,%s}`,
			encoded, s.capabilities(), s.instructionsMember(), s.caching())))
	case "tools/list":
		result, found := s.list(x, tools)
		if !found {
			return x.failure(http.StatusBadRequest, codeInvalidParams, "Invalid cursor")
		}
		return x.result(complete(strings.TrimSuffix(result, "}") + "," + s.caching() + "}"))
	case "tools/call":
		if result, found := s.call(x, tools); found {
			return x.result(complete(result))
		}
		return x.failure(http.StatusBadRequest, codeInvalidParams, "Unknown tool: "+r.Tool)
	case "subscriptions/listen":
		return s.listen(r)
	default:
		return x.failure(http.StatusNotFound, codeMethodNotFound, "Method not found")
	}
}

// validate refuses a request whose metadata is missing or at odds with its headers.
func (s *Server) validate(x *Exchange, tools []Tool) (refusal reply, refused bool) {
	r := x.Request
	meta := metaOf(r)
	var version string
	_ = json.Unmarshal(meta[metaVersion], &version)
	header := r.Header.Get(versionHeader)
	mismatch := func(format string, args ...any) (reply, bool) {
		return x.failure(http.StatusBadRequest, codeHeaderMismatch, "Header mismatch: "+fmt.Sprintf(format, args...)), true
	}
	switch {
	case r.Method == "initialize", header != "" && header == version && version != Version20260728:
		refusal := x.failure(http.StatusBadRequest, codeUnsupportedVersion, "Unsupported protocol version")
		refusal.message = strings.TrimSuffix(refusal.message, "}}") +
			fmt.Sprintf(`,"data":{"supported":[%q],"requested":%s}}}`, Version20260728, quote(version))
		return refusal, true
	case header == "":
		return mismatch("%s is missing", versionHeader)
	case version == "":
		return x.failure(http.StatusBadRequest, codeInvalidParams, "Missing _meta field "+metaVersion), true
	case len(meta[metaCapabilities]) == 0:
		return x.failure(http.StatusBadRequest, codeInvalidParams, "Missing _meta field "+metaCapabilities), true
	case header != version:
		return mismatch("%s %q does not match the body's %q", versionHeader, header, version)
	case r.Header.Get("Mcp-Method") != r.Method:
		return mismatch("Mcp-Method %q does not match the body's %q", r.Header.Get("Mcp-Method"), r.Method)
	}
	if r.Method != "tools/call" {
		return reply{}, false
	}
	if name, ok := decodeHeader(r.Header.Get("Mcp-Name")); !ok || name != r.Tool {
		return mismatch("Mcp-Name %q does not match the body's %q", r.Header.Get("Mcp-Name"), r.Tool)
	}
	if odd := oddParamHeader(r, tools); odd != "" {
		return mismatch("%s", odd)
	}
	return reply{}, false
}

// caching is the members that make a result cacheable.
func (s *Server) caching() string {
	return fmt.Sprintf(`"ttlMs":%d,"cacheScope":%q`, s.ttl.Milliseconds(), s.cacheScope)
}

// complete adds to a result what every result of the revision carries, where it is
// an object that does not say so itself. The rest stays byte for byte.
func complete(result string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(result), &members) != nil || members == nil {
		return result
	}
	added := ""
	if _, says := members["resultType"]; !says {
		added += `"resultType":"complete",`
	}
	if _, says := members["_meta"]; !says {
		added += fmt.Sprintf(`"_meta":{%q:%s},`, metaServerInfo, serverInfo)
	}
	if len(members) == 0 {
		added = strings.TrimSuffix(added, ",")
	}
	return "{" + added + strings.TrimSpace(result)[1:]
}

// listen opens a subscription: acknowledged first, with what it grants.
func (s *Server) listen(r Request) reply {
	var params struct {
		Notifications struct {
			Tools bool `json:"toolsListChanged"`
		} `json:"notifications"`
	}
	_ = json.Unmarshal(r.Params, &params)
	st := &stream{subscription: string(r.ID), tools: params.Notifications.Tools && s.listChanged}
	granted := "{}"
	if st.tools {
		granted = `{"toolsListChanged":true}`
	}
	st.greeting = event(fmt.Sprintf(
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{%q:%s},"notifications":%s}}`,
		metaSubscription, st.subscription, granted))
	st.farewell = event(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","_meta":{%q:%s}}}`,
		st.subscription, metaSubscription, st.subscription))
	return reply{open: st}
}
