package egress

import (
	"net/netip"
	"net/url"
)

// endpoint judges for the model: its own origin is open, whatever its addresses
// are, and nothing else is.
type endpoint struct {
	origin origin
	// denied is the process's, and wins here too.
	denied hostSet
}

// ValidEndpoint reports whether a model's base URL has an origin that can be
// judged.
func ValidEndpoint(baseURL string) bool {
	_, err := newEndpoint(baseURL, nil)
	return err == nil
}

// newEndpoint reads the base URL of a model.
func newEndpoint(baseURL string, denials hostSet) (*endpoint, error) {
	parsed, err := url.Parse(baseURL)
	if err != nil {
		return nil, invalid("the model's base URL is not a URL")
	}
	at, err := originOf(parsed)
	if err != nil {
		return nil, invalid("the model's base URL cannot be used: %s", err)
	}
	if denials.matches(at.host) {
		return nil, denied(nil, "the model's host %s is closed by egress.deny_hosts", at.host)
	}
	return &endpoint{origin: at, denied: denials}, nil
}

// open implements [judge].
func (e *endpoint) open(to origin) error {
	if to == e.origin {
		return nil
	}
	return denied(nil, "%s is not %s, where the model is, and nothing else is open to the model's client", to, e.origin)
}

// closed implements [judge].
func (e *endpoint) closed(address netip.Addr) string {
	if e.denied.matches(host{address: plain(address)}) {
		return deniedAddress
	}
	return ""
}
