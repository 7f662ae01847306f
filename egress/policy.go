package egress

import (
	"fmt"
	"net/netip"

	"github.com/psych-systems/psych-go/failure"
)

// Policy is what may be reached. Its zero value is every public host over https.
type Policy struct {
	// AllowCIDRs opens networks that are closed by default, such as 10.0.0.0/8 or
	// fd00::/8. An IPv6 network that stands for IPv4 addresses (NAT64, 6to4) opens
	// those of them that are open themselves.
	AllowCIDRs []netip.Prefix
	// AllowHTTP opens plain http, to every open address. It opens no address.
	AllowHTTP bool
	// AllowHosts is, unless it is empty, the only hosts that are open. Each is a
	// host name, an IP address, or "*." and a domain, which stands for every host
	// beneath that domain and not for the domain itself. It opens no address.
	AllowHosts []string
	// DenyHosts, in the form of AllowHosts, is closed whatever else is said. An IP
	// address in it is closed also to names that resolve to it.
	DenyHosts []string
}

// rules is a policy that was checked, for look-ups.
type rules struct {
	addresses *addressRules
	allowHTTP bool
	hosts     hostRules
}

// newRules checks the policy of the setting with that name.
func newRules(setting string, policy Policy) (*rules, error) {
	addresses, err := newAddressRules(setting, policy.AllowCIDRs)
	if err != nil {
		return nil, err
	}
	hosts, err := newHostRules(setting, policy)
	if err != nil {
		return nil, err
	}
	return &rules{addresses: addresses, allowHTTP: policy.AllowHTTP, hosts: hosts}, nil
}

// narrow returns the rules of a tenant: these, and its policy.
func (r *rules) narrow(tenant string, policy Policy) (*rules, error) {
	setting := fmt.Sprintf("tenants.%s.egress", tenant)
	if len(policy.AllowCIDRs) > 0 || policy.AllowHTTP {
		return nil, invalid("%s may only narrow what is open: allow_cidrs and allow_http belong to the process", setting)
	}
	hosts, err := newHostRules(setting, policy)
	if err != nil {
		return nil, err
	}
	narrowed := *r
	narrowed.hosts = r.hosts.narrow(hosts)
	return &narrowed, nil
}

func newHostRules(setting string, policy Policy) (hostRules, error) {
	denied, err := readPatterns(setting+".deny_hosts", policy.DenyHosts)
	if err != nil {
		return hostRules{}, err
	}
	only, err := readPatterns(setting+".allow_hosts", policy.AllowHosts)
	if err != nil {
		return hostRules{}, err
	}
	read := hostRules{denied: setOf(denied)}
	if len(only) > 0 {
		read.only = setOf(only)
	}
	return read, nil
}

func readPatterns(setting string, texts []string) ([]host, error) {
	patterns := make([]host, len(texts))
	for i, text := range texts {
		pattern, err := patternOf(text)
		if err != nil {
			return nil, invalid(`%s holds %q, which is neither a host name, nor an IP address, nor "*." and a domain`, setting, text)
		}
		patterns[i] = pattern
	}
	return patterns, nil
}

// open implements [judge].
func (r *rules) open(to origin) error {
	switch {
	case r.hosts.denied.matches(to.host):
		return denied(nil, "the host %s is closed by egress.deny_hosts, of the process or of the tenant", to.host)
	case r.hosts.only != nil && !r.hosts.only.matches(to.host):
		return denied(nil, "the host %s is not among those that egress.allow_hosts opens, of the process and of the tenant", to.host)
	case to.scheme == "http" && !r.allowHTTP:
		return denied(nil, "%s is plain http, which egress.allow_http does not open", to)
	}
	if !to.host.address.IsValid() {
		return nil
	}
	if reason := r.closed(to.host.address); reason != "" {
		return denied(nil, "%s is %s", to.host, reason)
	}
	return nil
}

// closed implements [judge].
func (r *rules) closed(address netip.Addr) string {
	if r.hosts.denied.matches(host{address: plain(address)}) {
		return deniedAddress
	}
	return r.addresses.closed(address)
}

// deniedAddress is an address that a host rule closes.
const deniedAddress = "an address that egress.deny_hosts closes"

func denied(cause error, format string, args ...any) error {
	return failure.New(failure.KindEgressDenied, fmt.Sprintf(format, args...), cause)
}

func invalid(format string, args ...any) error {
	return failure.New(failure.KindSpecInvalid, fmt.Sprintf(format, args...), nil)
}
