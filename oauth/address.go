package oauth

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// address parses a URL that a document, a challenge or a caller names, and refuses
// what must not be asked: any scheme but https (and http where the MCP server
// itself is http), user information, a fragment, and loopback where the MCP server
// is not there itself (RFC 9728 section 7.7).
func (c *Client) address(what, raw string) (*url.URL, error) {
	target, err := url.Parse(raw)
	switch {
	case err != nil || target.Opaque != "" || target.Hostname() == "":
		return nil, unusable("%s is no URL of a server", what)
	case target.User != nil:
		return nil, unusable("%s holds user information, which is refused", what)
	case strings.Contains(raw, "#"):
		return nil, unusable("%s has a fragment, which is refused", what)
	}
	own, err := url.Parse(c.Resource)
	if err != nil || own.Hostname() == "" {
		return nil, unusable("the MCP server's own URL cannot be read")
	}
	switch {
	case target.Scheme != "https" && target.Scheme != "http":
		return nil, unusable("%s has the scheme %s; only https is used", what, excerpt(target.Scheme, 32))
	case target.Scheme == "http" && own.Scheme != "http":
		return nil, unusable("%s is %s; plain http is refused where the MCP server is https", what, bare(target))
	case isLoopback(target.Hostname()) && !isLoopback(own.Hostname()):
		return nil, unusable("%s is %s, on this machine's loopback; the MCP server is not there, so it is refused", what, bare(target))
	}
	return target, nil
}

// isLoopback reports whether a host means this machine, in any of the forms that a
// resolver would read as such. Names that resolve here are for the egress to find.
func isLoopback(host string) bool {
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		var ok bool
		if address, ok = numeric(host); !ok {
			return false
		}
	}
	address = address.WithZone("").Unmap()
	return address.IsLoopback() || address.IsUnspecified()
}

// numeric reads an IPv4 address as inet_aton does: one to four numbers, each
// decimal, octal or hexadecimal, the last one filling the bytes that are left.
func numeric(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		number, err := strconv.ParseUint(part, 0, 32)
		if err != nil || strings.Contains(part, "_") {
			return netip.Addr{}, false
		}
		bytes := 1
		if i == len(parts)-1 {
			bytes = 5 - len(parts)
		}
		if number >= 1<<(8*bytes) {
			return netip.Addr{}, false
		}
		value = value<<(8*bytes) | number
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// originOf is a URL's scheme, host and port, without the port that the scheme
// implies.
func originOf(u *url.URL) string {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return scheme + "://" + host
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

func sameOrigin(a, b *url.URL) bool { return originOf(a) == originOf(b) }

// bare is a URL as it may be shown: without user information, query and fragment.
func bare(u *url.URL) string { return excerpt(originOf(u)+u.EscapedPath(), maxShownURL) }

// shown is the same of a URL that was not parsed yet.
func shown(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		return bare(u)
	}
	return "an address that cannot be read"
}
