package bench_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

var measuring = flag.Bool("table", false, "measure in full, print the table and keep it in RESULTS.md")

// sections are all that is measured, in the table's order.
var sections = []struct {
	name    string
	measure func(t testing.TB, e effort) []row
}{
	{"calls", measureCalls},
	{"a slow neighbour", measureSlowNeighbour},
	{"turns", measureTurns},
	{"an unchanged list", measureUnchangedList},
	{"pool keys", measureKeys},
	{"the first request", measureRequest},
	{"idle connections", measureIdle},
	{"an endless body", measureFlood},
}

// TestTable measures everything, shortly, or with -table in full. No figure of time
// is asserted.
func TestTable(t *testing.T) {
	e := short
	if *measuring {
		e = full
	}
	var table strings.Builder
	table.WriteString("| measure | reached | bound | holds | from |\n| --- | --- | --- | --- | --- |\n")
	for _, section := range sections {
		t.Run(section.name, func(t *testing.T) {
			for _, one := range section.measure(t, e) {
				t.Log(one)
				_, _ = fmt.Fprintln(&table, one)
			}
		})
	}
	if *measuring && !t.Failed() {
		fmt.Print(table.String())
		keep(t, environment()+"\n"+table.String())
	}
}

// keep replaces what stands below the mark in RESULTS.md.
func keep(t *testing.T, results string) {
	const file, mark = "RESULTS.md", "<!-- measured -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	above, _, found := bytes.Cut(text, []byte(mark))
	if !found {
		t.Fatalf("%s has no mark", file)
	}
	if err := os.WriteFile(file, append(append(above, mark...), "\n"+results...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// environment says where the numbers come from.
func environment() string {
	processor := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
				processor = strings.TrimSpace(value)
				break
			}
		}
	}
	kernel, _ := exec.Command("uname", "-sr").Output()
	sdk, _ := exec.Command("go", "list", "-m", "github.com/modelcontextprotocol/go-sdk").Output()
	return fmt.Sprintf("%s, %d processors (%s), %s, %s, GOGC %s.\n",
		runtime.Version(), runtime.GOMAXPROCS(0), processor, strings.TrimSpace(string(kernel)), strings.TrimSpace(string(sdk)), gogc())
}

func gogc() string {
	if set := os.Getenv("GOGC"); set != "" {
		return set
	}
	return "100"
}
