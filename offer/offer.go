package offer

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/narrow"
)

// Server is a server of a Spec as a turn found it.
type Server struct {
	// Alias is the Spec's name of the server.
	Alias string
	// Snapshot is its catalogue; nil while it cannot be reached.
	Snapshot *messages.Snapshot
	// Unreachable says why there is no snapshot; nil when there is one.
	Unreachable error
	// Tenant and Spec are the two planes that configuration decides.
	Tenant, Spec narrow.Grant
	// Preload is the Spec's wish for disclosure; nil decides by size.
	Preload *bool
	// Description is the deployment's line for this scope and server; "" leaves it
	// to the server's own instructions.
	Description string
}

// planes are the server's planes for [narrow.Callable].
func (s Server) planes() narrow.Planes {
	return narrow.Planes{Tenant: s.Tenant, Spec: s.Spec, Reachable: s.Snapshot != nil}
}

// HostTool is a tool of the embedding program.
type HostTool struct {
	Name        string
	Description string
	InputSchema json.RawMessage
	Class       narrow.Class
}

// Tool is a tool that may be called in a turn.
type Tool struct {
	// Public is its public name.
	Public string
	// Server is its server's alias; "" for host tools and built-ins.
	Server string
	// Name is the server's own name of it, byte for byte.
	Name        string
	Description string
	InputSchema json.RawMessage
	Class       narrow.Class
	// Idempotent says that the server's annotations promise it.
	Idempotent bool
	// Deferred says that the model reaches it through call_tool only.
	Deferred bool
}

// Offer is what a turn offers. It is immutable, and shared between turns in
// which nothing changed.
type Offer struct {
	// Shown is what the model is shown, in a stable order: the servers' tools in
	// the Spec's order, the host tools, the built-ins.
	Shown []model.Tool
	// Recorded is the same list as records tell it.
	Recorded []journal.OfferedTool
	// Servers is the Spec's servers, in its order.
	Servers []journal.OfferedServer
	// Lines tells the model about its servers; "" when it has none.
	Lines string

	servers []Server
	hosts   []HostTool
	budget  int
	// table holds every callable tool, the deferred ones too; public names are
	// unique in it.
	table *narrow.Table[Tool]
}

// Resolve computes a turn's offer. When nothing changed since previous (nil for
// none), it returns previous itself. It fails with [failure.NameConflict] when
// two tools share a public name, naming both.
func Resolve(previous *Offer, servers []Server, hosts []HostTool, budget int) (*Offer, error) {
	if previous.same(servers, budget) {
		return previous, nil
	}
	o := &Offer{servers: slices.Clone(servers), hosts: hosts, budget: budget}
	var tools []Tool
	deferring := false
	for _, server := range o.servers {
		offered, callable := resolveServer(server, budget)
		o.Servers = append(o.Servers, offered)
		tools = append(tools, callable...)
		deferring = deferring || offered.Deferred
	}
	for _, host := range hosts {
		tools = append(tools, Tool{
			Public: host.Name, Name: host.Name, Description: host.Description,
			InputSchema: host.InputSchema, Class: host.Class,
		})
	}
	if deferring {
		tools = append(tools, builtIns...)
	}
	entries := make([]narrow.Entry[Tool], len(tools))
	for i, tool := range tools {
		entries[i] = narrow.Entry[Tool]{Public: tool.Public, Owner: owner(tool), Raw: tool.Name, Payload: tool}
	}
	table, err := narrow.NewTable(entries)
	if err != nil {
		return nil, failure.New(failure.KindNameConflict, err.Error(), err)
	}
	o.table = table
	o.show(tools)
	o.Lines = lines(o.servers, o.Servers)
	return o, nil
}

// same reports whether the inputs of a turn are those that o was made from.
// Snapshots are immutable and told apart by their etag.
func (o *Offer) same(servers []Server, budget int) bool {
	if o == nil || o.budget != budget || len(o.servers) != len(servers) {
		return false
	}
	for i, now := range servers {
		before := o.servers[i]
		unchanged := before.Alias == now.Alias &&
			(before.Snapshot == nil) == (now.Snapshot == nil) &&
			before.Snapshot.GetEtag() == now.Snapshot.GetEtag() &&
			before.Snapshot.GetInstructions() == now.Snapshot.GetInstructions() &&
			reason(before) == reason(now) &&
			before.Tenant.Equal(now.Tenant) && before.Spec.Equal(now.Spec) &&
			before.Preload == now.Preload && before.Description == now.Description
		if !unchanged {
			return false
		}
	}
	return true
}

// resolveServer narrows one server's tools and decides how they are disclosed.
func resolveServer(server Server, budget int) (journal.OfferedServer, []Tool) {
	offered := journal.OfferedServer{Name: server.Alias, Reachable: server.Snapshot != nil, Reason: reason(server)}
	var callable []Tool
	chars := 0
	for _, tool := range server.Snapshot.GetTools() {
		if ok, _ := narrow.Callable(tool.GetName(), server.planes()); !ok {
			continue
		}
		chars += int(tool.GetChars())
		callable = append(callable, toolOf(server, tool))
	}
	offered.ToolCount = len(callable)
	offered.Deferred = len(callable) > 0 && narrow.Defer(server.Preload, chars, budget)
	for i := range callable {
		callable[i].Deferred = offered.Deferred
	}
	return offered, callable
}

func toolOf(server Server, tool *messages.Tool) Tool {
	return Tool{
		Public: narrow.PublicName(server.Alias, tool.GetName()), Server: server.Alias, Name: tool.GetName(),
		Description: tool.GetDescription(), InputSchema: tool.GetInputSchema(),
		Class: narrow.Class(tool.GetClass()), Idempotent: tool.GetIdempotent(),
	}
}

func (o *Offer) show(tools []Tool) {
	for _, tool := range tools {
		if tool.Deferred {
			continue
		}
		o.Shown = append(o.Shown, model.Tool{
			Name: tool.Public, Description: tool.Description, InputSchema: tool.InputSchema,
		})
		recorded := journal.OfferedTool{Name: tool.Public, Server: tool.Server, Class: string(tool.Class)}
		if tool.Server != "" {
			recorded.Tool = tool.Name
		}
		o.Recorded = append(o.Recorded, recorded)
	}
}

func owner(tool Tool) string {
	switch {
	case tool.Server != "":
		return fmt.Sprintf("server %q", tool.Server)
	case narrow.Reserved(tool.Public):
		return "a built-in tool"
	default:
		return "a host tool"
	}
}

func reason(server Server) string {
	if server.Unreachable == nil {
		return ""
	}
	return server.Unreachable.Error()
}
