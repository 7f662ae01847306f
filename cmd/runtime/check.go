package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/psych-systems/psych-go"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
	"github.com/psych-systems/psych-go/spec"
)

func (p *program) checkCommand() *cobra.Command {
	var place place
	cmd := &cobra.Command{
		Use:   "check SPEC",
		Short: "Validate a Spec offline and print its Version",
		Long: `Validate a Spec offline and print its Version.

With a configuration, hold the two against each other as well. A server that can
never be reached, or whose alias a tenant reserves for another URL, fails the
check; what only one tenant does not permit is told as a note.`,
		Example: `  runtime check support.yaml
  runtime check support.yaml --config runtime.yaml`,
		Args:              one("SPEC"),
		ValidArgsFunction: documents,
		RunE: func(_ *cobra.Command, args []string) error {
			return p.check(args[0], place.config)
		},
	}
	place.configFlag(cmd)
	return cmd
}

func (p *program) check(file, config string) error {
	version, err := readSpec(file)
	if err != nil {
		return err
	}
	if config != "" {
		deployed, err := readDeployment(config)
		if err != nil {
			return err
		}
		found, err := judge(version.Spec(), deployed.options())
		if err != nil {
			return err
		}
		for _, note := range found.notes {
			p.note("%s", note)
		}
		if len(found.contradictions) > 0 {
			return &failed{fmt.Errorf("%s", strings.Join(found.contradictions, "; "))}
		}
	}
	_, err = fmt.Fprintln(p.out, version.Hash())
	return err
}

// judgement is what can never work although Spec and configuration are valid.
type judgement struct {
	// contradictions hold for everybody who uses the Spec, or show a mistake.
	contradictions []string
	// notes hold for one tenant, which may never use the Spec.
	notes []string
}

// judge holds a Spec against a configuration, without looking up a name.
func judge(definition spec.Spec, options psych.Options) (judgement, error) {
	var found judgement
	policies := map[string]egress.Policy{}
	for name, tenant := range options.Tenants {
		policies[name] = egress.Policy{DenyHosts: tenant.DenyHosts}
	}
	out, err := egress.New(egress.Options{Policy: options.Egress, Tenants: policies})
	if err != nil {
		return found, err
	}
	defer out.Close()
	tenants := slices.Sorted(maps.Keys(options.Tenants))
	for _, server := range definition.MCPServers {
		if err := out.Judge("", server.URL); err != nil {
			found.contradict("the server %q can never be reached: %v", server.Name, err)
			continue
		}
		for _, name := range tenants {
			if err := out.Judge(name, server.URL); err != nil {
				found.note("the tenant %s can never reach the server %q: %v", name, server.Name, err)
			}
			found.judgeTenant(name, options.Tenants[name], server)
		}
	}
	return found, nil
}

// judgeTenant holds one server against one tenant's plane.
func (j *judgement) judgeTenant(name string, tenant psych.Tenant, server spec.Server) {
	if reserved, known := tenant.Servers[server.Name]; known && !sameServer(reserved, server.URL) {
		j.contradict("the tenant %s reserves the server alias %q for %s, but the Spec uses it for %s",
			name, server.Name, reserved, server.URL)
	}
	permits := narrow.All()
	if tenant.Allow != nil {
		permits = narrow.Of(tenant.Allow[server.Name]...)
	}
	if permits.Equal(narrow.None()) {
		j.note("the tenant %s permits no tool of the server %q", name, server.Name)
		return
	}
	for _, tool := range server.Allow {
		if strings.HasSuffix(tool, "*") {
			continue
		}
		planes := narrow.Planes{Tenant: permits, Spec: server.Grant(), Reachable: true}
		if ok, plane := narrow.Callable(tool, planes); !ok {
			j.note("%s can never be called for the tenant %s: the %s does not permit it",
				narrow.PublicName(server.Name, tool), name, plane)
		}
	}
}

func (j *judgement) contradict(format string, args ...any) {
	j.contradictions = append(j.contradictions, fmt.Sprintf(format, args...))
}

func (j *judgement) note(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf(format, args...))
}

// sameServer compares URLs as the pool does.
func sameServer(a, b string) bool {
	first, err := messages.CanonicalURL(a)
	if err != nil {
		return false
	}
	second, err := messages.CanonicalURL(b)
	return err == nil && first == second
}
