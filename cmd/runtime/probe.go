package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
)

// probed is what probing a server found.
type probed struct {
	OK bool `json:"ok"`
	// Server is the server's host, with its port where the URL names one.
	Server          string         `json:"server"`
	URL             string         `json:"url"`
	ProtocolVersion string         `json:"protocol_version"`
	ToolCount       int            `json:"tool_count"`
	Tools           []probedTool   `json:"tools"`
	Error           *journal.Error `json:"error"`
}

type probedTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Class       string `json:"class"`
}

func (p *program) probeCommand() *cobra.Command {
	var place place
	var transport, credential string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "probe URL",
		Short: "Connect to a server as a Run would and list its tools, or say why not",
		Long: `Connect to a server as a Run would: through the same egress, with the same
credential, in the same scope. List its tools, or say why that fails.`,
		Example: `  runtime probe https://mcp.example.com/github
  runtime probe https://mcp.example.com/github --credential github-token --scope acme/ann --config runtime.yaml`,
		Args:              one("URL"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			target := psych.ProbeTarget{URL: args[0], Transport: messages.Transport(transport), Credential: credential}
			report, err := p.probe(cmd.Context(), place, target)
			if exitCode(err) == exitWrong {
				return err
			}
			found := probedOf(target, report, err)
			if asJSON {
				return firstError(err, p.printJSON(found))
			}
			if err == nil {
				printProbed(p.out, found)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&transport, "transport", string(messages.TransportHTTP), "http (Streamable HTTP) or sse (the older HTTP+SSE)")
	flags.StringVar(&credential, "credential", "", "the `NAME` of the credential to send; none without it")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	place.flags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("transport", cobra.FixedCompletions([]string{"http", "sse"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (p *program) probe(ctx context.Context, place place, target psych.ProbeTarget) (psych.ProbeReport, error) {
	if target.Transport == "stdio" {
		return psych.ProbeReport{}, wrong("stdio is no transport here: the runtime serves many tenants and owns no subprocesses; put the server behind Streamable HTTP", nil)
	}
	scope, err := messages.ParseScope(place.scope)
	if err != nil {
		return psych.ProbeReport{}, err
	}
	// A key can be made of what the user typed, or the user typed something wrong.
	if _, err := messages.NewPoolKey(scope, target.URL, target.Transport, ""); err != nil {
		return psych.ProbeReport{}, err
	}
	rt, err := p.start(place.config)
	if err != nil {
		return psych.ProbeReport{}, err
	}
	defer closeRuntime(rt)
	return rt.Probe(ctx, scope, target)
}

func probedOf(target psych.ProbeTarget, report psych.ProbeReport, err error) probed {
	server, shown := target.URL, target.URL
	if parsed, invalid := url.Parse(target.URL); invalid == nil {
		server = parsed.Host
		// A query may hold what is nobody's business.
		parsed.RawQuery = ""
		shown = parsed.String()
	}
	found := probed{
		OK: err == nil, Server: server, URL: shown, ProtocolVersion: report.ProtocolVersion,
		ToolCount: len(report.Tools), Tools: make([]probedTool, len(report.Tools)),
	}
	for i, tool := range report.Tools {
		found.Tools[i] = probedTool{tool.GetName(), tool.GetDescription(), tool.GetClass()}
	}
	if err != nil {
		found.Error = &journal.Error{Kind: failure.KindOf(err), Message: err.Error()}
	}
	return found
}

func printProbed(out io.Writer, found probed) {
	fmt.Fprintf(out, "%s speaks %s and lists %s\n", found.Server, printable(found.ProtocolVersion), plural(found.ToolCount, "tool"))
	if found.ToolCount == 0 {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\nTOOL\tCLASS\tDESCRIPTION\n")
	for _, tool := range found.Tools {
		fmt.Fprintf(table, "%s\t%s\t%s\n", printable(tool.Name), tool.Class, shorten(printable(tool.Description), 80))
	}
	_ = table.Flush()
}
