package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/psych-systems/psych-go/failure"
)

// Transport is how a server is spoken to.
type Transport string

// The transports. Stdio is none of them: this runtime owns no subprocesses.
const (
	TransportHTTP Transport = "http" // Streamable HTTP
	TransportSSE  Transport = "sse"  // HTTP+SSE of 2024-11-05
)

// PoolKey is the identity of one connection. Two calls share a connection
// exactly when their keys are equal. It is comparable, has one constructor, and
// holds no secret: the credential appears as an identity, which is neither its
// name nor made readable from its value.
type PoolKey struct {
	scope              Scope
	url                string
	transport          Transport
	credentialIdentity string
}

// NewPoolKey returns the key of a connection. The URL is made canonical: lower
// case scheme and host, no default port, "/" for an empty path, unreserved
// characters not percent-encoded and other encodings in upper case (RFC 3986
// section 6.2.2); its path and query are otherwise kept. An empty
// credentialIdentity means no credential. It fails with [failure.SpecInvalid]
// on a URL that is not absolute http or https, or that has user information or
// a fragment.
func NewPoolKey(scope Scope, rawURL string, transport Transport, credentialIdentity string) (PoolKey, error) {
	if _, err := NewScope(scope.Tenant, scope.Principal); err != nil {
		return PoolKey{}, err
	}
	if transport != TransportHTTP && transport != TransportSSE {
		return PoolKey{}, failure.New(failure.KindSpecInvalid,
			fmt.Sprintf("transport %q is neither http nor sse", string(transport)), nil)
	}
	canonical, err := CanonicalURL(rawURL)
	if err != nil {
		return PoolKey{}, err
	}
	return PoolKey{scope: scope, url: canonical, transport: transport, credentialIdentity: credentialIdentity}, nil
}

// PoolKeyOf reads a key that came in a message, through [NewPoolKey].
func PoolKeyOf(key *Key) (PoolKey, error) {
	return NewPoolKey(
		Scope{Tenant: key.GetTenant(), Principal: key.GetPrincipal()},
		key.GetUrl(), Transport(key.GetTransport()), key.GetCredentialIdentity())
}

// Message is the key as messages carry it.
func (k PoolKey) Message() *Key {
	return &Key{
		Tenant: k.scope.Tenant, Principal: k.scope.Principal, Url: k.url,
		Transport: string(k.transport), CredentialIdentity: k.credentialIdentity,
	}
}

// Scope is on whose behalf the connection is used.
func (k PoolKey) Scope() Scope { return k.scope }

// URL is the server's canonical URL.
func (k PoolKey) URL() string { return k.url }

// Transport is how the server is spoken to.
func (k PoolKey) Transport() Transport { return k.transport }

// CredentialIdentity tells credentials apart; "" for none.
func (k PoolKey) CredentialIdentity() string { return k.credentialIdentity }

// Digest is the key's name: 32 lower-case hexadecimal digits that no two keys
// share. Connection actors are named by it.
func (k PoolKey) Digest() string {
	hash := sha256.New()
	for _, part := range []string{k.scope.Tenant, k.scope.Principal, k.url, string(k.transport), k.credentialIdentity} {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// CanonicalURL is the form of a server's URL in which equal servers are equal
// strings; see [NewPoolKey].
func CanonicalURL(raw string) (string, error) {
	invalid := func(why string) (string, error) {
		return "", failure.New(failure.KindSpecInvalid, "the server URL "+why, nil)
	}
	parsed, err := url.Parse(raw)
	if err != nil {
		return invalid("is not a URL")
	}
	parsed.Scheme = strings.ToLower(parsed.Scheme)
	switch {
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return invalid("must begin with http:// or https://")
	case parsed.Hostname() == "":
		return invalid("has no host")
	case parsed.User != nil:
		return invalid("must not hold a user name or password; name a credential instead")
	case parsed.Fragment != "" || strings.Contains(raw, "#"):
		return invalid("must not have a fragment")
	}
	host, port := strings.ToLower(parsed.Hostname()), parsed.Port()
	if address, zone, zoned := strings.Cut(host, "%"); zoned {
		if zone == "" || slices.ContainsFunc([]byte(zone), func(c byte) bool { return !isUnreserved(c) }) {
			return invalid("has an IPv6 zone that is no name")
		}
		host = address + "%25" + zone // RFC 6874
	}
	if number, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || number == 0) {
		return invalid("has a port that is not from 1 to 65535")
	}
	if (parsed.Scheme == "http" && port == "80") || (parsed.Scheme == "https" && port == "443") {
		port = ""
	}
	switch {
	case port != "":
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	path := canonicalEscapes(parsed.EscapedPath())
	if path == "" {
		path = "/"
	}
	canonical := parsed.Scheme + "://" + host + path
	if parsed.RawQuery != "" || parsed.ForceQuery {
		canonical += "?" + canonicalEscapes(parsed.RawQuery)
	}
	return canonical, nil
}

// canonicalEscapes decodes the escapes of unreserved characters and writes the
// others in upper case (RFC 3986 sections 6.2.2.1 and 6.2.2.2). A percent sign
// that begins no escape stands for itself and is escaped: what is decoded behind
// it must not make it begin one.
func canonicalEscapes(escaped string) string {
	if !strings.Contains(escaped, "%") {
		return escaped
	}
	var out strings.Builder
	for i := 0; i < len(escaped); i++ {
		if escaped[i] != '%' {
			out.WriteByte(escaped[i])
			continue
		}
		if i+2 >= len(escaped) {
			out.WriteString("%25")
			continue
		}
		decoded, err := hex.DecodeString(escaped[i+1 : i+3])
		switch {
		case err != nil:
			out.WriteString("%25")
			continue
		case isUnreserved(decoded[0]):
			out.WriteByte(decoded[0])
		default:
			out.WriteString(strings.ToUpper(escaped[i : i+3]))
		}
		i += 2
	}
	return out.String()
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}
