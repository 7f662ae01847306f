package offer

import (
	"strings"

	"github.com/psych-systems/psych-go/narrow"
)

// Explained is a tool as an operator sees it.
type Explained struct {
	Name     string `json:"name"`
	Server   string `json:"server"`
	Tool     string `json:"tool"`
	Class    string `json:"class"`
	Deferred bool   `json:"deferred"`
	Callable bool   `json:"callable"`
	// ExcludedBy is the plane that took the tool away; "" while it is callable.
	ExcludedBy narrow.Plane `json:"excluded_by"`
}

// Explain tells of each tool whether it is callable and, if not, which plane
// took it away: the callable ones first, in the order in which the model sees
// them. Of a server that cannot be reached, only the tools that the Spec names
// exactly are known.
func (o *Offer) Explain() []Explained {
	var callable, excluded []Explained
	for _, tool := range o.table.All() {
		row := Explained{
			Name: tool.Public, Server: tool.Server, Class: string(tool.Class),
			Deferred: tool.Deferred, Callable: true,
		}
		if tool.Server != "" {
			row.Tool = tool.Name
		}
		callable = append(callable, row)
	}
	for _, server := range o.servers {
		excluded = append(excluded, explainExcluded(server)...)
	}
	return append(callable, excluded...)
}

func explainExcluded(server Server) []Explained {
	var rows []Explained
	add := func(name, class string) {
		if ok, plane := narrow.Callable(name, server.planes()); !ok {
			rows = append(rows, Explained{
				Name: narrow.PublicName(server.Alias, name), Server: server.Alias, Tool: name,
				Class: class, ExcludedBy: plane,
			})
		}
	}
	for _, tool := range server.Snapshot.GetTools() {
		add(tool.GetName(), tool.GetClass())
	}
	if server.Snapshot == nil {
		for _, pattern := range server.Spec.Patterns() {
			if !strings.HasSuffix(pattern, "*") {
				add(pattern, "")
			}
		}
	}
	return rows
}
