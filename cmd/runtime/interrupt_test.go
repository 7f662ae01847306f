package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/mcptest"
)

// directoryOf writes files into a directory of the test's own.
func directoryOf(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestAnInterruptEndsTheRunAndTellsItsEnd(t *testing.T) {
	for _, format := range []string{"--json", "--json=false"} {
		t.Run(format, func(t *testing.T) {
			released := make(chan struct{})
			t.Cleanup(func() { close(released) })
			model := mcptest.NewModel(t, mcptest.Say("never").Held(released))
			cmd := exec.Command("runtime", "run", "support.yaml", "--config", "runtime.yaml", "--input", "hello", format)
			cmd.Dir = directoryOf(t, map[string]string{
				"support.yaml": "name: support\nmodel: {model: parrot}\n",
				"runtime.yaml": "model: {api: openai, base_url: '" + model.URL() + "'}\n",
			})
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			model.WaitFor(1)
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != exitInterrupted {
				t.Errorf("it ends with %v", err)
			}
			if !strings.HasSuffix(stderr.String(), "runtime: the run was cancelled\n") {
				t.Errorf("it says %q", stderr.String())
			}
			end := stderr.String()
			if format == "--json" {
				end = stdout.String()
			}
			if !strings.Contains(end, string(journal.StateAborted)) {
				t.Errorf("the Run's end is not told in %q", end)
			}
		})
	}
}

func TestAnInterruptEndsTheWaitForInput(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	cmd := exec.Command("runtime", "run", "support.yaml", "--input", "-", "--log-level", "debug")
	cmd.Dir = directoryOf(t, map[string]string{"support.yaml": "name: support\nmodel: {model: parrot}\n"})
	cmd.Stdin = reader
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	// More than a pipe holds: the write ends once the program reads.
	if _, err := writer.Write(bytes.Repeat([]byte("x"), 256<<10)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != exitInterrupted {
		t.Errorf("it ends with %v and says %q", err, stderr.String())
	}
}
