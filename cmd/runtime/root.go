package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// program is what all commands share: the process's streams, and the flags that
// each command has.
type program struct {
	in        io.Reader
	out, errs io.Writer
	// err is standard error, on a terminal above the live line.
	err io.Writer
	// live is the terminal's live line; nil where standard error is no terminal.
	live *live
	// width is of standard error, in characters.
	width func() int

	logLevel string
	logJSON  bool
}

// execute runs one command line and returns the exit code. The first interrupt
// ends the command's context; after it, interrupts kill the process again.
func execute(args []string, in io.Reader, out, errs io.Writer) int {
	written := &output{Writer: out}
	p := &program{in: in, out: written, errs: errs, err: errs, width: func() int { return widthOf(errs) }}
	if isTerminal(errs) {
		p.live = newLive(errs, p.width)
		p.err = p.live
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := p.root()
	root.SetArgs(args)
	err := written.verdict(root.ExecuteContext(ctx))
	if p.live != nil {
		p.live.Leave()
	}
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(p.err, "runtime: %s\n", printable(err.Error()))
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return exitCode(err)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "runtime",
		Short: "Run agents over MCP servers, each tenant's tools and tokens apart",
		Long: `Runtime runs agents over MCP servers for many tenants in one process, and
keeps each tenant's tools and tokens apart.

To see it at work, with no set-up and no network:

  runtime demo`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return wrong(fmt.Sprintf("%v; %s --help lists the flags", err, cmd.CommandPath()), err)
	})
	flags := root.PersistentFlags()
	flags.StringVar(&p.logLevel, "log-level", "warn", "what to log: error, warn, info or debug")
	flags.BoolVar(&p.logJSON, "log-json", false, "log as JSON")
	_ = root.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(logLevels, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(p.demoCommand(), p.runCommand(), p.probeCommand(), p.toolsCommand(), p.checkCommand())
	return root
}

// knownCommand refuses what is no command; cobra's own sentence takes several
// lines.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	sentence := fmt.Sprintf("there is no command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		sentence += fmt.Sprintf("; did you mean %q?", near[0])
	} else {
		sentence += "; runtime --help lists them"
	}
	return wrong(sentence, nil)
}

// one takes exactly one argument, which is called what.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
			return nil
		case 0:
			return wrong(fmt.Sprintf("%s is missing: %s", what, cmd.UseLine()), nil)
		default:
			return wrong(fmt.Sprintf("%q is one argument too many: %s", args[1], cmd.UseLine()), nil)
		}
	}
}

// documents completes the names of files that hold YAML or JSON.
func documents(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// version is what the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	built := info.Main.Version
	if built == "" {
		built = "(devel)"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) > 12 && built == "(devel)" {
			built += " " + setting.Value[:12]
		}
	}
	return built + ", " + info.GoVersion
}
