package egress

import (
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// host is what a URL or a host rule names, in its one canonical form: either a
// name (lower case, in ASCII, without the root's dot) or an address. The zero
// value is no host.
type host struct {
	// name is "" for an address. That of a wildcard rule begins with a dot.
	name string
	// address is never IPv4-mapped and has no zone.
	address netip.Addr
}

var errNotAHost = errors.New("not a host")

// hostOf reads a host as the host part of a URL writes it, without brackets.
// Names outside ASCII are converted as net/http does (RFC 5891, UTS 46).
func hostOf(text string) (host, error) {
	if !isASCII(text) {
		converted, err := idna.Lookup.ToASCII(text)
		if err != nil {
			return host{}, errNotAHost
		}
		text = converted
	}
	text = strings.TrimRight(strings.ToLower(text), ".")
	if text == "" {
		return host{}, errNotAHost
	}
	if address, err := netip.ParseAddr(text); err == nil {
		return host{address: plain(address)}, nil
	}
	return host{name: text}, nil
}

// String is the name or the address.
func (h host) String() string {
	if h.name == "" {
		return h.address.String()
	}
	return h.name
}

// plain returns the address itself where it is written as an IPv4-mapped IPv6
// address, and without its zone: neither makes it another one.
func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
