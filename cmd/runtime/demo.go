package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/model/scripted"
)

// demoFiles are a whole deployment: what a user writes, and nothing else.
//
//go:embed demo/*.yaml
var demoFiles embed.FS

// demoAddress is where the files expect the demo's server.
const demoAddress = "127.0.0.1:8080"

func (p *program) demoCommand() *cobra.Command {
	var asJSON bool
	var keep string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an agent at work for two tenants, with no set-up and no network",
		Long: `Watch an agent at work for two tenants, with no set-up and no network.

The demo starts a real MCP server on loopback, with one token per tenant, and
runs one agent for both tenants at the same time in one process. The model plays
a script. In the end the server's own log shows which token came with which call.`,
		Example: `  runtime demo
  runtime demo --json | tail -1
  runtime demo --keep ./first-agent`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.demo(cmd.Context(), keep, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each record of both Runs as JSON")
	cmd.Flags().StringVar(&keep, "keep", "", "keep the demo's files in `DIR`, as a deployment to start from")
	_ = cmd.MarkFlagDirname("keep")
	return cmd
}

// demo is the whole main job on one machine.
func (p *program) demo(ctx context.Context, keep string, asJSON bool) error {
	desk, err := openDesk(ctx)
	if err != nil {
		return &failed{err}
	}
	defer desk.Close()
	directory, remove, err := demoDirectory(keep)
	if err != nil {
		return err
	}
	defer remove()
	if err := writeDemoFiles(directory, desk.address); err != nil {
		return err
	}
	version, err := readSpec(filepath.Join(directory, "support.yaml"))
	if err != nil {
		return err
	}
	deployed, err := readDeployment(filepath.Join(directory, "runtime.yaml"))
	if err != nil {
		return err
	}
	playing, err := demoModel(directory)
	if err != nil {
		return err
	}
	rt, err := p.startWith(deployed, playing)
	if err != nil {
		return err
	}
	defer closeRuntime(rt)
	told := &demonstration{program: p, runtime: rt, version: version, desk: desk, gate: deployed.options().Approvals}
	if asJSON {
		return told.records(ctx)
	}
	return told.story(ctx)
}

// demoDirectory is where the demo's files go, and what removes them in the end.
func demoDirectory(keep string) (directory string, remove func(), err error) {
	if keep != "" {
		if err := os.MkdirAll(keep, 0o750); err != nil {
			return "", nil, wrong(fmt.Sprintf("the directory %s cannot be made", keep), err)
		}
		return keep, func() {}, nil
	}
	directory, err = os.MkdirTemp("", "runtime-demo-")
	if err != nil {
		return "", nil, &failed{fmt.Errorf("the demo has no place for its files: %w", err)}
	}
	return directory, func() { _ = os.RemoveAll(directory) }, nil
}

// writeDemoFiles writes the files for a server at an address. It never replaces
// a file.
func writeDemoFiles(directory, address string) error {
	names, err := fs.Glob(demoFiles, "demo/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := demoFiles.ReadFile(name)
		if err != nil {
			return err
		}
		path := filepath.Join(directory, filepath.Base(name))
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return wrong(fmt.Sprintf("the demo does not write %s: it exists, or its directory is closed", path), err)
		}
		_, err = file.WriteString(strings.ReplaceAll(string(text), demoAddress, address))
		if err := firstError(err, file.Close()); err != nil {
			return &failed{fmt.Errorf("the demo could not write %s: %w", path, err)}
		}
	}
	return nil
}

// demoModel plays each tenant's script to the Run that was asked its question.
func demoModel(directory string) (psych.Model, error) {
	scripts := map[string]model.Port{}
	for _, asked := range demoRuns {
		file := filepath.Join(directory, asked.tenant+".yaml")
		text, err := readFile(file, "the script")
		if err != nil {
			return nil, err
		}
		script, err := scripted.Parse(file, text)
		if err != nil {
			return nil, err
		}
		scripts[asked.input] = script
	}
	return psych.UseModel(byInput(scripts)), nil
}

// byInput is a model for each input.
type byInput map[string]model.Port

// Generate implements [model.Port].
func (b byInput) Generate(ctx context.Context, request model.Request, onText func(piece string)) (model.Response, error) {
	return b[request.Messages[0].Text].Generate(ctx, request, onText)
}
