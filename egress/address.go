package egress

import (
	"net/netip"

	"code.dny.dev/ssrf"
)

// addressRules is which addresses a policy opens.
type addressRules struct{ guardian *ssrf.Guardian }

// newAddressRules opens the networks, and beside them what is public.
func newAddressRules(setting string, opened []netip.Prefix) (*addressRules, error) {
	var v4, v6 []netip.Prefix
	for _, network := range opened {
		switch {
		case !network.IsValid():
			return nil, invalid("%s.allow_cidrs holds a network that is not valid", setting)
		case network.Addr().Is4In6():
			return nil, invalid("%s.allow_cidrs holds %s, an IPv4 network in the form of IPv6; write it as IPv4", setting, network)
		case network.Addr().Is4():
			v4 = append(v4, network)
		default:
			v6 = append(v6, network)
		}
	}
	var metadata4, metadata6 []netip.Prefix
	for _, address := range metadata {
		one := netip.PrefixFrom(address, address.BitLen())
		if address.Is4() {
			metadata4 = append(metadata4, one)
		} else {
			metadata6 = append(metadata6, one)
		}
	}
	return &addressRules{guardian: ssrf.New(
		ssrf.WithAnyPort(),
		ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
		ssrf.WithDeniedV4Prefixes(metadata4...), ssrf.WithDeniedV6Prefixes(metadata6...),
	)}, nil
}

// closed says what keeps an address closed: what it is and which setting opens
// it, to stand behind "is". It is "" for an open address.
func (r *addressRules) closed(address netip.Addr) string {
	address = plain(address)
	if r.guardian.SafeAddr(address) != nil {
		return class(address) + ", which egress.allow_cidrs does not open"
	}
	inner, form := embedded(address)
	if inner.IsValid() && r.guardian.SafeAddr(inner) != nil {
		return form + " that stands for " + inner.String() + ", " + class(inner) + ", which egress.allow_cidrs does not open"
	}
	return ""
}

// metadata is the addresses at which clouds tell a machine its secrets. Most lie
// in networks that are closed anyway; Azure's 168.63.129.16 is a public address.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"),
	netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
}

var (
	shared  = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598
	sixFour = netip.MustParsePrefix("2002::/16")     // RFC 3056
)

// embedded returns the IPv4 address that a gateway would pass a connection on
// to, and what the form is called; the zero address for none.
func embedded(address netip.Addr) (inner netip.Addr, form string) {
	bytes := address.As16()
	switch {
	case ssrf.IPv6NAT64Prefix.Contains(address):
		return netip.AddrFrom4([4]byte(bytes[12:16])), "a NAT64 address"
	case sixFour.Contains(address):
		return netip.AddrFrom4([4]byte(bytes[2:6])), "a 6to4 address"
	}
	return netip.Addr{}, ""
}

// class says what an address is, for a sentence. It decides nothing.
func class(address netip.Addr) string {
	for _, known := range metadata {
		if address == known {
			return "a cloud metadata address"
		}
	}
	_, form := embedded(address)
	switch {
	case form != "":
		return form
	case address.IsLoopback():
		return "a loopback address"
	case address.IsPrivate():
		return "a private address"
	case address.IsLinkLocalUnicast():
		return "a link-local address"
	case address.IsMulticast():
		return "a multicast address"
	case address.IsUnspecified():
		return "the unspecified address"
	case shared.Contains(address):
		return "a carrier's shared address"
	}
	return "a special-purpose address"
}
