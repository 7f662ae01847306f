package offer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/narrow"
)

// argumentsLimit is how many bytes of arguments a model may send in one call.
const argumentsLimit = 1 << 20

// TenantPlane returns what the tenant permits of a server at this moment.
type TenantPlane func(alias string) narrow.Grant

// Route is what becomes of a call that a model asked for.
type Route struct {
	// Tool is the target: for call_tool the tool that it names.
	Tool Tool
	// Arguments is the target's arguments, a JSON object.
	Arguments json.RawMessage
	// Answer is a built-in's answer, complete; meaningless for other tools.
	Answer string
	// BuiltIn says that Answer is the result and nothing is to be called.
	BuiltIn bool
}

// Route finds the target of a call, narrowing again with the tenant's plane of
// this moment. It never looks into a name: the table decides. A call_tool that
// fails still has its target's public name where its server is known. It fails with
// [failure.UnknownTool] (the sentence offers close names), [failure.AccessDenied]
// (the sentence names the plane) or [failure.InvalidArguments].
func (o *Offer) Route(name, arguments string, tenant TenantPlane) (Route, error) {
	tool, known := o.table.Lookup(name)
	if !known {
		return Route{}, o.unknownTool(name, tenant)
	}
	parsed, err := parseArguments(tool.Public, arguments)
	if err != nil {
		return Route{}, err
	}
	switch {
	case tool.Deferred:
		return Route{}, failure.New(failure.KindUnknownTool, fmt.Sprintf(
			"%s cannot be called by this name: use %s with server %q and tool %q", name, narrow.CallTool, tool.Server, tool.Name), nil)
	case tool.Server != "":
		return o.routeServer(tool, parsed, tenant)
	case name == narrow.ListTools && isBuiltInTool(tool):
		answer, err := o.listTools(parsed, tenant)
		return Route{Tool: tool, Arguments: parsed, Answer: answer, BuiltIn: true}, err
	case name == narrow.GetToolInfo && isBuiltInTool(tool):
		answer, err := o.getToolInfo(parsed, tenant)
		return Route{Tool: tool, Arguments: parsed, Answer: answer, BuiltIn: true}, err
	case name == narrow.CallTool && isBuiltInTool(tool):
		return o.routeCallTool(parsed, tenant)
	default:
		return Route{Tool: tool, Arguments: parsed}, nil
	}
}

func isBuiltInTool(tool Tool) bool { return tool.Server == "" && narrow.Reserved(tool.Public) }

func (o *Offer) routeServer(tool Tool, arguments json.RawMessage, tenant TenantPlane) (Route, error) {
	if plane := o.permitted(tool, tenant); plane != "" {
		return Route{}, denied(tool.Public, plane)
	}
	return Route{Tool: tool, Arguments: arguments}, nil
}

// routeCallTool resolves call_tool to its target: a door, not a bypass.
func (o *Offer) routeCallTool(arguments json.RawMessage, tenant TenantPlane) (Route, error) {
	var call struct {
		Server, Tool string
		Arguments    json.RawMessage
	}
	if err := json.Unmarshal(arguments, &call); err != nil {
		return Route{}, invalidArguments(narrow.CallTool, "they are not of the form that its schema gives", err)
	}
	tool, err := o.serverTool(call.Server, call.Tool, tenant)
	if err != nil {
		named := Tool{}
		if o.server(call.Server) != nil {
			named.Public = narrow.PublicName(call.Server, call.Tool)
		}
		return Route{Tool: named}, err
	}
	parsed, err := parseArguments(tool.Public, string(call.Arguments))
	return Route{Tool: tool, Arguments: parsed}, err
}

// serverTool finds a tool by its server's alias and its own name.
func (o *Offer) serverTool(alias, name string, tenant TenantPlane) (Tool, error) {
	server := o.server(alias)
	if server == nil {
		return Tool{}, o.unknownServer(alias)
	}
	public := narrow.PublicName(alias, name)
	tool, known := o.table.Lookup(public)
	if !known || tool.Server != alias || tool.Name != name {
		return Tool{}, o.missing(*server, name, public, tenant)
	}
	if plane := o.permitted(tool, tenant); plane != "" {
		return Tool{}, denied(public, plane)
	}
	return tool, nil
}

// permitted narrows a server's tool now: "" permits it, else the plane that
// took it away.
func (o *Offer) permitted(tool Tool, tenant TenantPlane) narrow.Plane {
	server := *o.server(tool.Server)
	server.Tenant = tenant(tool.Server)
	if ok, plane := narrow.Callable(tool.Name, server.planes()); !ok {
		return plane
	}
	return ""
}

func (o *Offer) server(alias string) *Server {
	for i := range o.servers {
		if o.servers[i].Alias == alias {
			return &o.servers[i]
		}
	}
	return nil
}

// unknownTool tells apart a tool that a plane took away from a name that is no
// tool.
func (o *Offer) unknownTool(name string, tenant TenantPlane) error {
	for _, server := range o.servers {
		for _, tool := range server.Snapshot.GetTools() {
			if narrow.PublicName(server.Alias, tool.GetName()) == name {
				return o.missing(server, tool.GetName(), name, tenant)
			}
		}
		if server.Snapshot == nil && strings.HasPrefix(name, narrow.Prefix(server.Alias)) {
			return unavailable(server)
		}
	}
	return failure.New(failure.KindUnknownTool, o.noTool(name), nil)
}

// missing says why a server's tool is not in the table.
func (o *Offer) missing(server Server, name, public string, tenant TenantPlane) error {
	for _, tool := range server.Snapshot.GetTools() {
		if tool.GetName() != name {
			continue
		}
		server.Tenant = tenant(server.Alias)
		if ok, plane := narrow.Callable(name, server.planes()); !ok {
			return denied(public, plane)
		}
		return failure.New(failure.KindUnknownTool,
			fmt.Sprintf("%s was not offered in this turn; it can be called in the next one", public), nil)
	}
	if server.Snapshot == nil {
		return unavailable(server)
	}
	return failure.New(failure.KindUnknownTool, o.noTool(public), nil)
}

func unavailable(server Server) error {
	return failure.New(failure.KindUnknownTool,
		fmt.Sprintf("the server %q is unavailable, its tools cannot be called now: %s", server.Alias, reason(server)),
		server.Unreachable)
}

func (o *Offer) noTool(name string) string {
	sentence := fmt.Sprintf("the tool %q does not exist", shorten(name, 80))
	if near := o.table.Near(name, 3); len(near) > 0 {
		sentence += "; close names are " + strings.Join(near, ", ")
	}
	return sentence
}

func (o *Offer) unknownServer(alias string) error {
	names := make([]string, len(o.servers))
	for i, server := range o.servers {
		names[i] = server.Alias
	}
	return failure.New(failure.KindUnknownTool, fmt.Sprintf(
		"the server %q does not exist; the servers are %s", shorten(alias, 80), strings.Join(names, ", ")), nil)
}

func denied(public string, plane narrow.Plane) error {
	why := map[narrow.Plane]string{
		narrow.PlaneTenant:      "the tenant does not permit it",
		narrow.PlaneSpec:        "the Spec does not grant it",
		narrow.PlaneUnreachable: "its server cannot be reached",
		narrow.PlaneWithheld:    "it is withheld for now",
	}[plane]
	return failure.New(failure.KindAccessDenied, fmt.Sprintf("%s may not be called: %s", public, why), nil)
}

// parseArguments reads a call's arguments. Empty ones mean {}; broken ones are
// never taken for {}.
func parseArguments(tool, arguments string) (json.RawMessage, error) {
	text := strings.TrimSpace(arguments)
	if text == "" {
		return json.RawMessage(`{}`), nil
	}
	if len(text) > argumentsLimit {
		return nil, invalidArguments(tool, fmt.Sprintf("they have %d bytes and %d are allowed", len(text), argumentsLimit), nil)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	var value json.RawMessage
	if err := decoder.Decode(&value); err != nil {
		return nil, invalidArguments(tool, "they are not JSON: "+shorten(text, 200), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, invalidArguments(tool, "something follows the JSON object: "+shorten(text, 200), err)
	}
	if value[0] != '{' {
		return nil, invalidArguments(tool, "they must be a JSON object: "+shorten(text, 200), nil)
	}
	return value, nil
}
