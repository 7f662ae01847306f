package conformance_test

import (
	"context"
	"embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/psych-systems/psych-go/mcptest/npm"
)

// scenarioTime bounds one scenario, the start of Node.js included.
const scenarioTime = 2 * time.Minute

//go:embed package.json package-lock.json
var pinned embed.FS

// suite is the installed suite and the Node.js that runs it.
type suite struct{ directory, node string }

func install(t *testing.T) suite {
	t.Helper()
	directory := npm.Install(t, "conformance", pinned)
	return suite{
		directory: filepath.Join(directory, "node_modules/@modelcontextprotocol/conformance"),
		node:      npm.Pinned(t, directory),
	}
}

// requirements is what a revision demands, in the suite's own words.
type requirements struct {
	Client    []string `yaml:"client"`
	NotScored []struct {
		Scenario string `yaml:"scenario"`
		Leg      string `yaml:"leg"`
		Reason   string `yaml:"reason"`
	} `yaml:"not_scored"`
}

func (s suite) requirements(t *testing.T, revision string) requirements {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.directory, "requirements", revision+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var read requirements
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// check is one judgement of the suite.
type check struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Status       string `json:"status"`
	ErrorMessage string `json:"errorMessage"`
}

func (c check) complains() bool { return c.Status == "FAILURE" || c.Status == "WARNING" }

// run has the suite play one scenario to this binary and returns its judgements.
func (s suite) run(t *testing.T, scenario, revision string) []check {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scenarioTime)
	defer cancel()
	results := t.TempDir()
	command := exec.CommandContext(ctx, s.node, filepath.Join(s.directory, "dist/index.js"), "client",
		"--command", self, "--scenario", scenario, "--spec-version", revision,
		"--output-dir", results, "--timeout", "60000")
	command.Env = append(os.Environ(), asClient+"=1")
	command.WaitDelay = time.Second
	output, ended := command.CombinedOutput()
	files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the suite wrote %d results: %v\n%s", len(files), err, output)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []check
	if err := json.Unmarshal(text, &checks); err != nil {
		t.Fatal(err)
	}
	// The suite fails where a check complains, and where the client itself failed.
	if ended != nil && !slices.ContainsFunc(checks, check.complains) {
		t.Errorf("the suite is not content: %v\n%s", ended, output)
	}
	return checks
}

// succeeded counts the checks of an id, or of any for "", that succeeded.
func succeeded(checks []check, id string) int {
	count := 0
	for _, one := range checks {
		if one.Status == "SUCCESS" && (id == "" || one.ID == id) {
			count++
		}
	}
	return count
}

// isAuthorization reports whether a scenario is about OAuth.
func isAuthorization(scenario string) bool { return strings.HasPrefix(scenario, "auth/") }
