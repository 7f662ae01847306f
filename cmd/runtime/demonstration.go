package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
	"github.com/psych-systems/psych-go/offer"
	"github.com/psych-systems/psych-go/spec"
)

// demoRuns is what each tenant's user asks, in the order of the story.
var demoRuns = []struct{ tenant, input string }{
	{"acme", "Order 1042 arrived broken: refund it, and delete it. And where is order 1043?"},
	{"globex", "Refund order 77, and tell me what is in order 1042."},
}

// demonstration is one showing of the demo.
type demonstration struct {
	*program
	runtime *psych.Runtime
	version spec.Version
	desk    *desk
	gate    approval.Rules
}

// start begins the Runs of all tenants at once.
func (d *demonstration) start(ctx context.Context) ([]*psych.Run, error) {
	runs := make([]*psych.Run, len(demoRuns))
	for i, asked := range demoRuns {
		started, err := d.runtime.Start(ctx, messages.Scope{Tenant: asked.tenant}, d.version, asked.input)
		if err != nil {
			return nil, err
		}
		runs[i] = started
	}
	return runs, nil
}

// records prints the records of all Runs as they happen.
func (d *demonstration) records(ctx context.Context) error {
	runs, err := d.start(ctx)
	if err != nil {
		return err
	}
	var printing sync.Mutex
	var following sync.WaitGroup
	failures := make([]error, len(runs))
	for i, run := range runs {
		following.Go(func() {
			for record := range run.Records() {
				printing.Lock()
				failures[i] = firstError(failures[i], d.printJSON(record))
				printing.Unlock()
			}
		})
	}
	following.Wait()
	return firstError(firstError(failures...), d.verify(runs))
}

// story prints what happened for people: tenant by tenant, although the Runs go
// on at the same time.
func (d *demonstration) story(ctx context.Context) error {
	paint, width := paintFor(d.out), min(widthOf(d.out), 110)
	d.say(paint.head("One process, one MCP server, one agent, two tenants"), "")
	d.say("  server   "+d.desk.URL()+", Streamable HTTP, one token per tenant",
		"  agent    support.yaml, version "+d.version.Hash()[:12],
		"  egress   closed but for 127.0.0.1", "")
	if err := d.offers(ctx, paint); err != nil {
		return err
	}
	runs, err := d.start(ctx)
	if err != nil {
		return err
	}
	for i, run := range runs {
		d.say("", paint.head(demoRuns[i].tenant+" asks: ")+demoRuns[i].input)
		told := newStory(paint, width-2)
		for record := range run.Records() {
			lines := told.Lines(record)
			switch entry := record.Entry.(type) {
			case journal.RunStarted:
				continue // the heading says it
			case journal.RunFinished:
				lines = append(lines, told.tell(paint.head, "answer", entry.Text)...)
			}
			d.say(indented(lines)...)
		}
	}
	if err := d.verify(runs); err != nil {
		return err
	}
	d.proof(paint)
	return nil
}

// offers prints each tool of the server, and what becomes of it for each tenant.
func (d *demonstration) offers(ctx context.Context, paint paint) error {
	classes := map[string]string{}
	fates := map[string]map[string]string{}
	for _, asked := range demoRuns {
		found, err := d.runtime.Tools(ctx, messages.Scope{Tenant: asked.tenant}, d.version)
		if err != nil {
			return err
		}
		fates[asked.tenant] = map[string]string{}
		for _, tool := range found.Tools {
			classes[tool.Name] = tool.Class
			fates[asked.tenant][tool.Name] = d.fate(tool)
		}
	}
	row := func(cells ...string) string {
		return strings.TrimRight(fmt.Sprintf("  %-21s %-12s %-21s %s", cells[0], cells[1], cells[2], cells[3]), " ")
	}
	d.say(paint.head(row("What is offered", "class", "to acme", "to globex")))
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		cells := []string{name, classes[name]}
		for _, asked := range demoRuns {
			cells = append(cells, cmp.Or(fates[asked.tenant][name], "not shown to its token"))
		}
		d.say(row(cells...))
	}
	return nil
}

// fate is what becomes of a tool on its way to the model.
func (d *demonstration) fate(tool offer.Explained) string {
	if tool.ExcludedBy != "" {
		return "no: " + string(tool.ExcludedBy) + " plane"
	}
	if held, _ := d.gate.Hold(tool.Name, narrow.Class(tool.Class)); held {
		return "yes, calls are held"
	}
	return "yes"
}

// verify holds the server's audit against the records: the calls that came with
// a tenant's token are exactly those that the tenant's Run made.
func (d *demonstration) verify(runs []*psych.Run) error {
	if slices.ContainsFunc(d.desk.audit.Entries(), func(entry audited) bool { return entry.Tenant == "" }) {
		return &failed{errors.New("a request came to the server without a token that it knows")}
	}
	for i, run := range runs {
		tenant := demoRuns[i].tenant
		result, err := run.Wait(context.Background())
		if err != nil {
			return &failed{err}
		}
		if result.State != journal.StateCompleted {
			return &failed{fmt.Errorf("the Run of %s ended %s", tenant, result.State)}
		}
		var made, came []string
		for record := range run.Records() {
			if call, ok := record.Entry.(journal.ToolCallStarted); ok {
				made = append(made, call.Tool+" "+compact(call.Arguments))
			}
		}
		for _, call := range d.calls(tenant) {
			came = append(came, call.Tool+" "+call.Arguments)
		}
		slices.Sort(made)
		slices.Sort(came)
		if !slices.Equal(made, came) {
			return &failed{fmt.Errorf("the Run of %s made the calls %v, but its token came with %v", tenant, made, came)}
		}
	}
	return nil
}

// calls is the calls that came with a tenant's token.
func (d *demonstration) calls(tenant string) []audited {
	return slices.DeleteFunc(d.desk.audit.Entries(), func(entry audited) bool {
		return entry.Tenant != tenant || entry.Tool == ""
	})
}

// proof prints the server's audit, after it was verified.
func (d *demonstration) proof(paint paint) {
	d.say("", paint.head("What the server saw"))
	for _, asked := range demoRuns {
		requests := 0
		for _, entry := range d.desk.audit.Entries() {
			if entry.Tenant == asked.tenant {
				requests++
			}
		}
		var calls []string
		for _, call := range d.calls(asked.tenant) {
			calls = append(calls, call.Tool+" "+call.Arguments)
		}
		d.say(fmt.Sprintf("  %-18s %d requests, %d of them calls:", asked.tenant+"'s token", requests, len(calls)))
		d.say("    " + strings.Join(calls, ", "))
	}
	d.say("  "+paint.good("Every call came with the token of the tenant whose Run made it, and no other."), "",
		"runtime demo --keep DIR keeps the files behind this: a Spec, a configuration, secrets, and the model's scripts.")
}

func (d *demonstration) say(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(d.out, line)
	}
}

func indented(lines []string) []string {
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return lines
}
