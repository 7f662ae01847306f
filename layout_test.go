package psych_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/psych-systems/psych-go"

// wires stands for every package but the programs and the test peers.
const wires = "*"

// arrows says which packages of this module a package may import. A package that
// is not in the table, and an arrow that is not, is a decision to be made here
// first. Imports point inward: the pure packages know nothing above them, the
// actors know the messages and the ports that they declare, never each other,
// and only the root and the programs wire.
var arrows = map[string][]string{
	"failure":  {},
	"narrow":   {},
	"model":    {},
	"document": {"failure"},
	"messages": {"failure"},
	"approval": {"failure", "narrow"},
	"secret":   {"failure", "messages"},
	"spec":     {"document", "failure", "messages", "narrow"},
	"journal":  {"failure", "messages", "model"},
	"offer":    {"failure", "journal", "messages", "model", "narrow", "spec"},
	"config":   {"approval", "document", "egress", "failure", "messages", "narrow", "secret", "spec"},
	"egress":   {"failure"},
	"grant":    {"failure", "messages", "oauth", "secret", "tokenstore"},
	"oauth":    {"failure", "messages", "secret"},

	"journal/memory":       {"failure", "journal"},
	"tokenstore":           {"failure", "secret"},
	"tokenstore/memory":    {"tokenstore"},
	"tokenstore/sqlite":    {"failure", "tokenstore"},
	"tokenstore/storetest": {"tokenstore"},
	"model/anthropic":      {"model", "model/endpoint", "secret"},
	"model/endpoint":       {"failure", "model", "secret"},
	"model/openai":         {"model", "model/endpoint", "secret"},
	"model/scripted":       {"document", "failure", "model"},

	"mcpwire":             {"failure", "mcpwire/bounded", "mcpwire/eventstream", "messages", "narrow", "secret"},
	"mcpwire/bounded":     {},
	"mcpwire/eventstream": {"mcpwire/bounded"},

	"actors/async":        {"failure"},
	"actors/supervision":  {"failure", "messages"},
	"actors/pool":         {"actors/async", "actors/supervision", "failure", "messages"},
	"actors/connection":   {"actors/async", "actors/supervision", "failure", "messages", "narrow"},
	"actors/catalog":      {"actors/async", "actors/supervision", "failure", "messages", "narrow"},
	"actors/tokenrefresh": {"actors/async", "actors/supervision", "failure", "messages"},
	"actors/run": {
		"actors/async", "actors/supervision", "approval", "failure", "journal", "messages", "model", "narrow", "offer", "spec",
	},

	"":            {wires},
	"cmd/runtime": {"", wires},
	"bench":       {},
	"conformance": {},

	"mcptest":            {},
	"mcptest/npm":        {"mcptest"},
	"mcptest/everything": {"mcptest/npm"},
	"mcptest/typescript": {"mcptest/npm"},
	"interop":            {},
}

// listed is a package as "go list" tells of it.
type listed struct {
	ImportPath, Dir, Doc               string
	Imports, TestImports, XTestImports []string
}

// name is the package's path within the module.
func (p listed) name() string { return within(p.ImportPath) }

func within(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

func isOurs(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func packages(t *testing.T) []listed {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-json", "./...").Output()
	if err != nil {
		t.Fatalf("the packages cannot be listed: %v", err)
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

func TestImportsPointInward(t *testing.T) {
	found := map[string]bool{}
	for _, one := range packages(t) {
		found[one.name()] = true
		allowed, known := arrows[one.name()]
		if !known {
			t.Errorf("the package %q is not in the table of arrows", one.name())
			continue
		}
		for _, path := range one.Imports {
			if isOurs(path) && !permitted(allowed, within(path)) {
				t.Errorf("%q imports %q, and the table of arrows does not say that it may", one.name(), within(path))
			}
		}
		// A story in a package of its own wires, as the root does; a test within an
		// actor's package does not.
		for _, path := range one.TestImports {
			if other := within(path); isActor(one.name()) && isActor(other) && other != one.name() {
				t.Errorf("a test of %q imports the other actor %q", one.name(), other)
			}
		}
	}
	for name := range arrows {
		if !found[name] {
			t.Errorf("the table of arrows names %q, and there is no such package", name)
		}
	}
}

func permitted(allowed []string, name string) bool {
	peer := strings.HasPrefix(name, "cmd/") || name == "mcptest" || strings.HasPrefix(name, "mcptest/")
	return slices.Contains(allowed, name) || name != "" && !peer && slices.Contains(allowed, wires)
}

// isActor reports whether a package is an actor, and not what actors stand on.
func isActor(name string) bool {
	return strings.HasPrefix(name, "actors/") && name != "actors/async" && name != "actors/supervision"
}

// A machine decides and does nothing, so that every decision can be tested as a
// table: no actor library, no file, no socket, no clock.
func TestMachinesArePure(t *testing.T) {
	impure := regexp.MustCompile(`protoactor|^os$|^net(/|$)|^context$|^sync`)
	machines, err := filepath.Glob("actors/*/machine.go")
	if err != nil || len(machines) == 0 {
		t.Fatalf("no machine was found (%v)", err)
	}
	for _, path := range machines {
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range parsed.Imports {
			if name := strings.Trim(imported.Path.Value, `"`); impure.MatchString(name) {
				t.Errorf("%s imports %s", path, name)
			}
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				if of, ok := selector.X.(*ast.Ident); ok && of.Name == "time" &&
					slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker"}, selector.Sel.Name) {
					t.Errorf("%s looks at the clock", files.Position(selector.Pos()))
				}
			}
			return true
		})
	}
}

func TestPackagesOpenWithAPromise(t *testing.T) {
	opening := regexp.MustCompile(`^(Package|Command) \w+ promises `)
	for _, one := range packages(t) {
		if _, err := os.Stat(filepath.Join(one.Dir, "doc.go")); err != nil {
			t.Errorf("the package %q has no doc.go", one.name())
		} else if !opening.MatchString(one.Doc) {
			t.Errorf("the package %q opens with %q instead of its promise", one.name(), one.Doc)
		}
	}
}

func TestFilesAreReadInOneSitting(t *testing.T) {
	const limit = 500
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, ".pb.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if lines := bytes.Count(text, []byte("\n")); lines > limit {
			t.Errorf("%s has %d lines; %d are the most", path, lines, limit)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// docs/dependencies.md says of each module that this one imports why it is here.
func TestDependenciesAreExplained(t *testing.T) {
	text, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var explained []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllSubmatch(text, -1) {
		explained = append(explained, string(row[1]))
	}
	used := map[string]bool{}
	required := requirements(t)
	for _, one := range packages(t) {
		for _, path := range slices.Concat(one.Imports, one.TestImports, one.XTestImports) {
			for _, candidate := range required {
				if path == candidate || strings.HasPrefix(path, candidate+"/") {
					used[candidate] = true
				}
			}
		}
	}
	for name := range used {
		if !slices.Contains(explained, name) {
			t.Errorf("docs/dependencies.md does not say why %s is here", name)
		}
	}
	for _, name := range explained {
		if !used[name] {
			t.Errorf("docs/dependencies.md explains %s, which nothing imports", name)
		}
	}
}

func requirements(t *testing.T) []string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Require []struct{ Path string } }
	if err := json.Unmarshal(output, &file); err != nil {
		t.Fatal(err)
	}
	paths := make([]string, 0, len(file.Require))
	for _, required := range file.Require {
		paths = append(paths, required.Path)
	}
	return paths
}
