package psych_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/config"
	"github.com/psych-systems/psych-go/spec"
)

// read returns a file of the project.
func read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fenced returns the blocks of a language in a document.
func fenced(document, language string) []string {
	var blocks []string
	for _, found := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(document, -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}

// commands returns the indented commands of a document.
func commands(document string) []string {
	var lines []string
	for line := range strings.Lines(document) {
		if command, ok := strings.CutPrefix(line, "    "); ok && regexp.MustCompile(`^(make|go|runtime) `).MatchString(command) {
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}

func run(t testing.TB, dir, command string) string {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "-c", command)
	shell.Dir = dir
	// A make within a make speaks of that.
	shell.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "MAKE") })
	var out bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &out
	if err := shell.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out.String())
	}
	return out.String()
}

// TestEveryCommandOfTheReadmeRuns runs each of them but "make test", which is
// what runs this test, and "make fuzz", which it runs too.
func TestEveryCommandOfTheReadmeRuns(t *testing.T) {
	written := commands(read(t, "README.md"))
	if len(written) < 5 || written[0] != "make demo" || written[1] != "make test" {
		t.Fatalf("the README's first commands are %q", written)
	}
	for _, command := range written {
		switch {
		case command == "make test":
		case command == "make fuzz":
			if plan := run(t, ".", "make -n test"); !strings.Contains(plan, strings.TrimSpace(run(t, ".", "make -n fuzz"))) {
				t.Errorf("make test does not run what make fuzz runs:\n%s", plan)
			}
		case strings.HasPrefix(command, "go mod "):
			// These belong to the reader's own module; the next test runs them.
		default:
			if out := run(t, ".", command); out == "" {
				t.Errorf("%s prints nothing", command)
			}
		}
	}
}

// TestEveryCommandOfTheOtherDocumentsIsPartOfTheTests finds that what the make
// targets in them run is in a package of tests, all of which "make test" runs; with
// -table or not, the measures are made.
func TestEveryCommandOfTheOtherDocumentsIsPartOfTheTests(t *testing.T) {
	documents, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, document := range append(documents, "bench/RESULTS.md") {
		for _, command := range commands(read(t, document)) {
			found++
			plan := run(t, ".", strings.Replace(command, "make ", "make -n ", 1))
			tested := regexp.MustCompile(`(?m)^go test .*\./([a-z]+)`).FindStringSubmatch(plan)
			if tested == nil {
				t.Errorf("%s: %s runs no tests:\n%s", document, command, plan)
				continue
			}
			if tests, err := filepath.Glob(tested[1] + "/*_test.go"); err != nil || len(tests) == 0 {
				t.Errorf("%s: %s tests %s, which has no tests", document, command, tested[1])
			}
		}
	}
	if found < 2 {
		t.Errorf("%d commands were found", found)
	}
}

// TestTheReadmesCodeBuildsInAModuleOfItsOwn embeds the project as the README
// says.
func TestTheReadmesCodeBuildsInAModuleOfItsOwn(t *testing.T) {
	document := read(t, "README.md")
	blocks := fenced(document, "go")
	if len(blocks) != 1 || strings.Count(blocks[0], "\n") > 12 {
		t.Fatalf("the README has %d pieces of code", len(blocks))
	}
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source := fmt.Sprintf(`package main

import (
	"context"
	"fmt"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/spec"
)

func key(context.Context) (secret.Text, error) { return secret.NewText("k"), nil }

func embed(ctx context.Context, text []byte) {
%s	_, _ = result, err
}

func main() { embed(context.Background(), nil) }
`, blocks[0])
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "go mod init example.com/embedding && cp "+filepath.Join(root, "go.sum")+" .")
	for _, command := range commands(document) {
		if strings.HasPrefix(command, "go mod ") {
			run(t, dir, strings.ReplaceAll(command, "../psych-go", root))
		}
	}
	run(t, dir, "go vet ./...")
}

// TestTheDocumentsSpecsAndConfigurationsAreValid reads every YAML block.
func TestTheDocumentsSpecsAndConfigurationsAreValid(t *testing.T) {
	blocks := slices.Concat(fenced(read(t, "README.md"), "yaml"), fenced(read(t, "docs/configuration.md"), "yaml"))
	specs, configurations := 0, 0
	for _, block := range blocks {
		switch {
		case strings.HasPrefix(block, "name:"):
			specs++
			if _, err := spec.Parse("block", []byte(block)); err != nil {
				t.Errorf("%v in\n%s", err, block)
			}
		case strings.HasPrefix(block, "model:"), strings.HasPrefix(block, "store:"):
			configurations++
			if _, err := config.Parse("block", []byte(block)); err != nil {
				t.Errorf("%v in\n%s", err, block)
			}
		}
	}
	if specs != 2 || configurations != 2 {
		t.Errorf("%d Specs and %d configurations were read", specs, configurations)
	}
}

// TestWhatTheArchitectureSaysIsProvedIs looks for each test that the table of
// faults names, and for one in each of its rows.
func TestWhatTheArchitectureSaysIsProvedIs(t *testing.T) {
	_, section, found := strings.Cut(read(t, "docs/architecture.md"), "## What peers do wrong, and where it is proved\n")
	section, _, _ = strings.Cut(section, "\n## ")
	tests := map[string]bool{}
	for _, one := range packages(t) {
		files, err := filepath.Glob(filepath.Join(one.Dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(read(t, file), -1) {
				tests[test[1]] = true
			}
		}
	}
	rows := 0
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("nothing proves %s", line)
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("there is no test %s", name[1])
			}
		}
	}
	if !found || rows < 20 {
		t.Errorf("the table has %d rows", rows)
	}
}
