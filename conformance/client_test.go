package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"time"

	psych "github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/spec"
)

// alias is what the Spec calls the suite's server.
const alias = "suite"

// client is the client under test: one Run against the suite's server, whose
// model is an agent that knows the scenario. It returns the exit code.
func client(url string) int {
	if err := converse(url); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func converse(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), scenarioTime)
	defer cancel()
	agent, err := newAgent(os.Getenv("MCP_CONFORMANCE_CONTEXT"))
	if err != nil {
		return err
	}
	runtime, err := psych.New(psych.Options{
		Model:     psych.UseModel(agent),
		MCP:       &psych.MCP{BudgetChars: 1 << 20},
		Approvals: approval.Rules{Never: []string{"*"}},
		Egress: egress.Policy{AllowHTTP: true, AllowCIDRs: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
		}},
	})
	if err != nil {
		return err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = runtime.Close(ending)
	}()
	version, err := spec.New(spec.Spec{
		Name: "conformance", Model: spec.Model{Model: "agent"},
		MCPServers: []spec.Server{{Name: alias, URL: url}},
	})
	if err != nil {
		return err
	}
	run, err := runtime.Start(ctx, messages.Scope{Tenant: "suite"}, version, "Go through the scenario.")
	if err != nil {
		return err
	}
	for record := range run.Records() {
		line, err := json.Marshal(record)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, string(line))
	}
	_, err = run.Wait(ctx)
	return err
}
