package config

import (
	"strings"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
	"github.com/psych-systems/psych-go/spec"
)

// Tenant is what one tenant permits.
type Tenant struct {
	// Servers reserves aliases: in this tenant a Spec may use such an alias for
	// this URL only.
	Servers map[string]string `yaml:"servers"`
	// Allow is the patterns that each server's tools must match, by alias. Nil
	// permits everything. Otherwise a server that it does not name is closed, and
	// so is one whose list is empty.
	Allow map[string][]string `yaml:"allow,nonnull"`
	// Egress narrows what the process may reach.
	Egress TenantEgress `yaml:"egress"`
	// Describe says what each server is for, by alias. 400 characters reach the
	// model.
	Describe map[string]string `yaml:"describe"`
}

// TenantEgress narrows the egress of the process for one tenant.
type TenantEgress struct {
	// DenyHosts is closed in this tenant: each a host name, an IP address, or "*."
	// and a domain.
	DenyHosts []string `yaml:"deny_hosts"`
}

// WhyNot implements document.Explainer.
func (TenantEgress) WhyNot(field string) string {
	if strings.HasPrefix(field, "allow_") {
		return "a tenant only narrows what the process may reach, so what is open belongs to the egress of the process"
	}
	return ""
}

func validateTenants(tenants map[string]Tenant, found *document.Problems) {
	for name, tenant := range tenants {
		path := document.Join("$.tenants", name)
		if fault := tenantFault(name); fault != "" {
			found.Add(path, "the tenant %.80q %s", name, fault)
		}
		tenant.validate(path, found)
	}
}

func tenantFault(name string) string {
	if _, err := messages.NewScope(name, ""); err != nil || strings.TrimSpace(name) != name {
		return "must be a name without control characters and without space around it"
	}
	switch {
	case name == "*":
		return "is no tenant; there are no settings for all of them"
	case strings.Contains(name, "/"):
		return `must not have "/" in it, behind which a principal stands`
	default:
		return ""
	}
}

func (t Tenant) validate(path string, found *document.Problems) {
	for alias, url := range t.Servers {
		at := document.Join(path+".servers", alias)
		validateAlias(at, alias, found)
		if _, err := messages.CanonicalURL(url); err != nil {
			found.Add(at, "%v", err)
		}
	}
	for alias, patterns := range t.Allow {
		at := document.Join(path+".allow", alias)
		validateAlias(at, alias, found)
		for i, pattern := range patterns {
			if !narrow.ValidPattern(pattern) {
				found.Add(document.Index(at, i), "the pattern %.80q must be a tool's name, or how one begins with a \"*\" at its end", pattern)
			}
		}
	}
	for alias := range t.Describe {
		validateAlias(document.Join(path+".describe", alias), alias, found)
	}
	validateHosts(path+".egress.deny_hosts", t.Egress.DenyHosts, found)
}

func validateAlias(path, alias string, found *document.Problems) {
	if fault := spec.AliasFault(alias); fault != "" {
		found.Add(path, "the server alias %.80q %s", alias, fault)
	}
}
