package egress

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

const (
	dialTimeout = 10 * time.Second // the look-up of the name included
	tlsTimeout  = 10 * time.Second
	idleTimeout = 90 * time.Second
	// idleConnections is how many connections to one host are kept, so that as
	// many callers at once do not open new ones all the time.
	idleConnections = 256
	// headerBytes bounds the header of an answer.
	headerBytes = 256 << 10
	// pingAfter and pingTimeout find dead HTTP/2 connections, on which a stream
	// that is silent by nature would wait for ever.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

// judge says what is open. The same judge answers at each request and at each
// dial of a route.
type judge interface {
	// open returns nil for an origin that is open, as far as can be told without a
	// look-up, and failure.EgressDenied otherwise.
	open(origin) error
	// closed says what keeps an address closed, to stand behind "is"; "" is open.
	closed(netip.Addr) string
}

// route is a judge, and the connections that were opened under it. A connection
// never serves a request that another judge decides.
type route struct {
	judge     judge
	transport *http.Transport
}

func newRoute(by judge, resolver *net.Resolver, roots *x509.CertPool) *route {
	dialer := &net.Dialer{Timeout: dialTimeout, Resolver: resolver, Control: guardSocket(by)}
	return &route{judge: by, transport: &http.Transport{
		Proxy:                  nil, // a proxy would dial another address than the judged one
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    tlsTimeout,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: headerBytes,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}}
}

// guardSocket judges the address that a socket is about to be connected to.
func guardSocket(by judge) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return denied(err, "a socket was about to be connected to what is no address")
		}
		if reason := by.closed(to.Addr()); reason != "" {
			return &closedAddress{address: plain(to.Addr()), reason: reason}
		}
		return nil
	}
}

// closedAddress is an address that was not dialled.
type closedAddress struct {
	address netip.Addr
	reason  string
}

func (e *closedAddress) Error() string { return e.address.String() + " is " + e.reason }
