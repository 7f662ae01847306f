package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/offer"
)

func (p *program) toolsCommand() *cobra.Command {
	var place place
	var asJSON, explain bool
	cmd := &cobra.Command{
		Use:   "tools SPEC",
		Short: "Show what the model would be offered in a turn that began now",
		Long: `Show what the model would be offered in a turn that began now. With --explain,
show each tool that is not callable too, and what took it away: the tenant, the
Spec, or that its server is unreachable.`,
		Example: `  runtime tools support.yaml --config runtime.yaml --scope acme
  runtime tools support.yaml --config runtime.yaml --scope acme --explain`,
		Args:              one("SPEC"),
		ValidArgsFunction: documents,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := p.tools(cmd.Context(), place, args[0])
			if err != nil {
				return err
			}
			if !explain {
				found.Tools = slices.DeleteFunc(found.Tools, func(tool offer.Explained) bool { return !tool.Callable })
			}
			if asJSON {
				return p.printJSON(found)
			}
			printTools(p.out, found, explain)
			return nil
		},
	}
	cmd.Flags().BoolVar(&explain, "explain", false, "show what is not callable, and why")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	place.flags(cmd)
	return cmd
}

// tools resolves a Spec as a turn would; its lists are never nil.
func (p *program) tools(ctx context.Context, place place, file string) (psych.Tools, error) {
	scope, err := messages.ParseScope(place.scope)
	if err != nil {
		return psych.Tools{}, err
	}
	version, err := readSpec(file)
	if err != nil {
		return psych.Tools{}, err
	}
	rt, err := p.start(place.config)
	if err != nil {
		return psych.Tools{}, err
	}
	defer closeRuntime(rt)
	found, err := rt.Tools(ctx, scope, version)
	if err != nil {
		return psych.Tools{}, err
	}
	for i, server := range found.Servers {
		if !server.Reachable && !version.Spec().MCPServers[i].Optional {
			p.note("a Run would fail: the server %q is not optional and cannot be reached: %s", server.Name, server.Reason)
		}
	}
	found.Servers = append([]journal.OfferedServer{}, found.Servers...)
	found.Tools = append([]offer.Explained{}, found.Tools...)
	return found, nil
}

func printTools(out io.Writer, found psych.Tools, explain bool) {
	for _, server := range found.Servers {
		switch {
		case !server.Reachable:
			fmt.Fprintf(out, "%s is unavailable: %s\n", server.Name, printable(server.Reason))
		case server.Deferred:
			fmt.Fprintf(out, "%s offers %s on demand\n", server.Name, plural(server.ToolCount, "tool"))
		default:
			fmt.Fprintf(out, "%s offers %s\n", server.Name, plural(server.ToolCount, "tool"))
		}
	}
	if len(found.Tools) == 0 {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\nNAME\tCLASS\tSHOWN")
	if explain {
		fmt.Fprint(table, "\tTAKEN AWAY BY")
	}
	fmt.Fprintln(table)
	for _, tool := range found.Tools {
		fmt.Fprintf(table, "%s\t%s\t%s", tool.Name, tool.Class, shown(tool))
		if explain {
			fmt.Fprintf(table, "\t%s", tool.ExcludedBy)
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
}

// shown is how the model comes by a tool.
func shown(tool offer.Explained) string {
	switch {
	case !tool.Callable:
		return "no"
	case tool.Deferred:
		return "on demand"
	default:
		return "yes"
	}
}
