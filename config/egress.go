package config

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/egress"
)

// writtenEgress is [Egress] as a file holds it.
type writtenEgress struct {
	AllowCIDRs []string `yaml:"allow_cidrs"`
	AllowHTTP  bool     `yaml:"allow_http"`
	AllowHosts []string `yaml:"allow_hosts"`
	DenyHosts  []string `yaml:"deny_hosts"`
}

func (e writtenEgress) read(found *document.Problems) Egress {
	read := Egress{AllowHTTP: e.AllowHTTP, AllowHosts: e.AllowHosts, DenyHosts: e.DenyHosts}
	for i, written := range e.AllowCIDRs {
		path := document.Index("$.egress.allow_cidrs", i)
		network, err := netip.ParsePrefix(written)
		switch {
		case err != nil:
			found.Add(path, "%.80q must be a network such as 10.0.0.0/8, or 10.1.2.3/32 for one address", written)
		case network.Addr().Is4In6():
			found.Add(path, "%.80q stands for IPv4 addresses; write it as IPv4", written)
		case network != network.Masked():
			found.Add(path, "%.80q has bits behind its prefix; the network is %s", written, network.Masked())
		}
		read.AllowCIDRs = append(read.AllowCIDRs, network)
	}
	validateHosts("$.egress.allow_hosts", e.AllowHosts, found)
	validateHosts("$.egress.deny_hosts", e.DenyHosts, found)
	return read
}

// hostPattern is a host name, or one behind "*."; letters may be of any script
// (RFC 5890).
var hostPattern = regexp.MustCompile(`^(\*\.)?[\pL\pN_]([\pL\pM\pN_-]*)(\.[\pL\pN_][\pL\pM\pN_-]*)*\.?$`)

func validateHosts(path string, hosts []string, found *document.Problems) {
	for i, written := range hosts {
		_, err := netip.ParseAddr(strings.Trim(written, "[]"))
		if err != nil && (len(written) > 255 || !hostPattern.MatchString(written)) || !egress.ValidHost(written) {
			found.Add(document.Index(path, i), `%.80q must be a host name, an IP address, or "*." and a domain, without scheme, port and path`, written)
		}
	}
}
