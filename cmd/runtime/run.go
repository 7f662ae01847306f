package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
)

// inputLimit bounds a Run's input, in bytes.
const inputLimit = 1 << 20

func (p *program) runCommand() *cobra.Command {
	var place place
	var input string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "run SPEC --input TEXT",
		Short: "Run an agent once, to its end",
		Long: `Run an agent once, to its end. The answer goes to standard output, what happens
meanwhile to standard error; with --json each record goes to standard output, one
a line, as it happens.

The model's endpoint comes from the configuration:

  model: {api: openai, base_url: https://api.openai.com/v1, credential: model-key}
  secrets: {file: secrets.yaml}`,
		Example: `  runtime run support.yaml --input "Where is order 1043?" --config runtime.yaml --scope acme
  runtime run support.yaml --input - --json < question.txt | tail -1`,
		Args:              one("SPEC"),
		ValidArgsFunction: documents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("input") {
				return wrong("--input is missing: give the text, or - to read it from standard input", nil)
			}
			return p.run(cmd.Context(), place, args[0], input, asJSON)
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "the `TEXT` for the agent; - reads standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each record as JSON")
	_ = cmd.RegisterFlagCompletionFunc("input", cobra.NoFileCompletions)
	place.flags(cmd)
	return cmd
}

func (p *program) run(ctx context.Context, place place, file, input string, asJSON bool) error {
	scope, err := messages.ParseScope(place.scope)
	if err != nil {
		return err
	}
	version, err := readSpec(file)
	if err != nil {
		return err
	}
	if input, err = p.inputOf(ctx, input); err != nil {
		return err
	}
	deployed, err := readDeployment(place.config)
	if err != nil {
		return err
	}
	model, err := deployed.model()
	if err != nil {
		return err
	}
	rt, err := p.startWith(deployed, model)
	if err != nil {
		return err
	}
	defer closeRuntime(rt)
	doing := &activity{}
	started, err := rt.Start(ctx, scope, version, input, psych.OnText(doing.Say))
	if err != nil {
		return err
	}
	if err := p.follow(started, doing, asJSON); err != nil {
		return err
	}
	result, err := started.Wait(context.Background())
	if err != nil {
		return &failed{err}
	}
	if asJSON {
		return nil
	}
	return p.answer(result.Text)
}

// follow tells a Run's records until its last.
func (p *program) follow(started *psych.Run, doing *activity, asJSON bool) error {
	story := newStory(paintFor(p.errs), p.width())
	if p.live != nil && !asJSON {
		p.live.Follow(doing.Describe)
		defer p.live.Leave()
	}
	for record := range started.Records() {
		if asJSON {
			if err := p.printJSON(record); err != nil {
				started.Cancel()
				return err
			}
			continue
		}
		doing.Record(record, time.Now())
		p.tell(story, record)
	}
	return nil
}

func (p *program) tell(story *story, record journal.Record) {
	if lines := story.Lines(record); len(lines) > 0 {
		_, _ = io.WriteString(p.err, strings.Join(lines, "\n")+"\n")
	}
}

// answer writes a Run's answer: byte for byte, except on a terminal, which the
// model is not to steer.
func (p *program) answer(text string) error {
	if isTerminal(p.out) {
		text = printableLines(text)
	}
	if _, err := fmt.Fprintln(p.out, text); err != nil {
		return &failed{fmt.Errorf("the answer could not be written to standard output")}
	}
	return nil
}

// inputOf is the input itself, or for "-" what standard input holds.
func (p *program) inputOf(ctx context.Context, input string) (string, error) {
	if input == "-" {
		read, err := p.readInput(ctx)
		if err != nil {
			return "", err
		}
		input = read
	}
	switch {
	case len(input) > inputLimit:
		return "", wrong(fmt.Sprintf("the input is larger than %d bytes", inputLimit), nil)
	case !utf8.ValidString(input):
		return "", wrong("the input is not UTF-8 text", nil)
	case strings.TrimSpace(input) == "":
		return "", wrong("the input is empty", nil)
	default:
		return input, nil
	}
}

// readInput reads standard input to its end. An interrupt ends the wait; the
// read itself then ends with the process.
func (p *program) readInput(ctx context.Context) (string, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(p.in, inputLimit+1))
		done <- read{data, err}
	}()
	select {
	case got := <-done:
		if got.err != nil {
			return "", wrong("standard input could not be read", got.err)
		}
		return strings.TrimSuffix(string(got.data), "\n"), nil
	case <-ctx.Done():
		return "", &failed{fmt.Errorf("the run was interrupted before it began")}
	}
}
