package egress

import (
	"net"
	"net/url"
)

// origin is where a request goes (RFC 6454 section 4), in canonical form; two
// are the same where they are equal.
type origin struct {
	// scheme is http or https.
	scheme string
	host   host
	// port is never "".
	port string
}

// originOf reads the origin of a request's URL. It fails with
// [failure.EgressDenied] where the URL is not one that can be judged.
func originOf(target *url.URL) (origin, error) {
	to := origin{scheme: target.Scheme, port: target.Port()}
	var standard string
	switch to.scheme {
	case "http":
		standard = "80"
	case "https":
		standard = "443"
	case "":
		return origin{}, denied(nil, "the URL has no scheme, such as https")
	default:
		return origin{}, denied(nil, "the URL has the scheme %q, and only https and http can be open", to.scheme)
	}
	if to.port == "" {
		to.port = standard
	}
	if target.User != nil {
		return origin{}, denied(nil, "the URL holds a user name or a password, which belong into a credential")
	}
	var err error
	// An opaque part would be sent instead of what was judged.
	if to.host, err = hostOf(target.Hostname()); err != nil || target.Opaque != "" {
		return origin{}, denied(err, "the URL names no host that can be judged")
	}
	return to, nil
}

// String is the origin as a URL writes it, without a port that is its scheme's own.
func (o origin) String() string { return o.scheme + "://" + o.authority() }

// authority is host and port as a URL writes them.
func (o origin) authority() string {
	if o.scheme == "https" && o.port == "443" || o.scheme == "http" && o.port == "80" {
		if o.host.address.Is6() {
			return "[" + o.host.String() + "]"
		}
		return o.host.String()
	}
	return net.JoinHostPort(o.host.String(), o.port)
}
