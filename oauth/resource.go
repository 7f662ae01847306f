package oauth

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/psych-systems/psych-go/messages"
)

// maxServers is how many of a resource's authorization servers are looked at where
// nobody has named the one to use.
const maxServers = 4

const resourceWellKnown = "/.well-known/oauth-protected-resource"

// ProtectedResource is the metadata of an MCP server (RFC 9728), checked.
type ProtectedResource struct {
	// Resource is the document's resource identifier, byte for byte: what every
	// request of the authorization repeats (RFC 8707).
	Resource string
	// Servers are the issuers of its authorization servers, as listed.
	Servers []string
	// Scopes are its scopes_supported; nil where the document does not say.
	Scopes []string
	// From is the URL that the document was found at.
	From string
}

// resourceCandidate is a place where a resource's metadata may be.
type resourceCandidate struct {
	url string
	// root is the well-known location without a path, whose document may be about
	// the whole origin.
	root bool
}

// DiscoverResource finds the metadata of the MCP server (RFC 9728 section 3, MCP
// 2026-07-28 "Protected Resource Metadata Discovery Requirements"): at the URL that
// the challenge names, else at the well-known location of the server's path, else
// at the one of its root.
//
// absent is true only where the challenge names no metadata and every location
// answered 404 or 410: an MCP server of 2025-03-26, see [Client.LegacyServer].
// Whatever else goes wrong is an error and no absence.
func (c *Client) DiscoverResource(ctx context.Context, challenge Challenge) (resource ProtectedResource, absent bool, err error) {
	own, err := url.Parse(c.Resource)
	if err != nil || own.Host == "" {
		return ProtectedResource{}, false, unusable("the MCP server's own URL cannot be read")
	}
	named := challenge.ResourceMetadata()
	candidates := resourceCandidates(own)
	if named != "" {
		root := named == candidates[len(candidates)-1].url
		candidates = []resourceCandidate{{named, root}}
	}
	var first error
	for _, candidate := range candidates {
		const what = "the MCP server's resource metadata"
		if _, err := c.address(what, candidate.url); err != nil {
			return ProtectedResource{}, false, err
		}
		got, err := c.get(ctx, what, candidate.url, nil)
		switch {
		case err != nil:
			return ProtectedResource{}, false, err
		case got.ok():
			resource, err = readResource(got, candidate, c.Resource)
			return resource, false, err
		case got.busy() || got.status < 400:
			return ProtectedResource{}, false, got.noDocument(what, candidate.url)
		case !got.gone() && first == nil:
			first = got.noDocument(what, candidate.url)
		}
	}
	if first == nil && named != "" {
		first = unusable("the MCP server names %s as its resource metadata, and nothing is there", shown(named))
	}
	return ProtectedResource{}, first == nil, first
}

// resourceCandidates are the well-known locations, the most specific first. Only
// the slash of an empty path is left out (RFC 9728 section 3.1).
func resourceCandidates(own *url.URL) []resourceCandidate {
	origin := own.Scheme + "://" + own.Host
	root := resourceCandidate{origin + resourceWellKnown, true}
	path := own.EscapedPath()
	if path == "/" {
		path = ""
	}
	if own.RawQuery != "" {
		path += "?" + own.RawQuery
	}
	if path == "" {
		return []resourceCandidate{root}
	}
	return []resourceCandidate{{origin + resourceWellKnown + path, false}, root}
}

// readResource checks a document (RFC 9728 section 3.3): it must be about the URL
// that was asked for; the root's may be about the whole origin.
func readResource(got answer, candidate resourceCandidate, own string) (ProtectedResource, error) {
	const what = "the MCP server's resource metadata"
	document, err := got.document(what, candidate.url)
	if err != nil {
		return ProtectedResource{}, err
	}
	told := document.text("resource")
	switch {
	case told == "":
		return ProtectedResource{}, unusable("%s at %s does not say which resource it is about", what, shown(candidate.url))
	case !sameResource(told, own) && !(candidate.root && sameResource(told, originOnly(own))):
		return ProtectedResource{}, unusable("%s at %s is about %s and not about %s",
			what, shown(candidate.url), identifier(told), identifier(own))
	}
	return ProtectedResource{
		Resource: told,
		Servers:  document.list("authorization_servers"),
		Scopes:   scopeTokens(document.list("scopes_supported")),
		From:     candidate.url,
	}, nil
}

// document reads a metadata document.
func (a answer) document(what, where string) (members, error) {
	if read, ok := decode(a.body); ok {
		return read, nil
	}
	if a.isPage() {
		return nil, temporary(nil, "%s at %s answered a page for people and no document", what, shown(where))
	}
	return nil, unusable("%s at %s is no JSON object", what, shown(where))
}

// noDocument is a status in place of a metadata document.
func (a answer) noDocument(what, where string) error {
	status := strings.TrimSpace(http.StatusText(a.status))
	if a.busy() {
		err := temporary(nil, "%s at %s answered %d %s", what, shown(where), a.status, status)
		err.RetryAfter = a.retryAfter()
		return err
	}
	return unusable("%s at %s answered %d %s", what, shown(where), a.status, status)
}

// sameResource compares two resource identifiers. The MCP server's URL is in its
// canonical form, which has no case of scheme and host, no default port, no empty
// path and no needless escapes any more; the other one is seen as it would be in
// that form. A slash at the end of a path and a query tell two resources apart.
func sameResource(a, b string) bool {
	if a == b {
		return true
	}
	canonicalA, errA := messages.CanonicalURL(a)
	canonicalB, errB := messages.CanonicalURL(b)
	return errA == nil && errB == nil && canonicalA == canonicalB
}

// originOnly is a URL up to its path.
func originOnly(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// identifier is a resource or an issuer as a sentence names it: a query is what
// tells two of them apart at times, and is told by its presence alone.
func identifier(raw string) string {
	before, _, query := strings.Cut(raw, "?")
	if scheme, rest, found := strings.Cut(before, "://"); found {
		host, path, slash := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			host = host[at+1:]
		}
		if before = scheme + "://" + host; slash {
			before += "/" + path
		}
	}
	if before = excerpt(before, maxShownURL); query {
		before += " with a query"
	}
	return `"` + before + `"`
}

// PickServer picks the authorization server to use: the one that the Spec names,
// which must be listed, where a terminating slash more or less counts as the same;
// accept is "" where the Spec names none. Then it is the first, within the first
// four, that is a URL.
func PickServer(resource ProtectedResource, accept string) (issuer string, err error) {
	if len(resource.Servers) == 0 {
		return "", unusable("the MCP server's resource metadata names no authorization server")
	}
	if accept == "" {
		for _, listed := range resource.Servers[:min(len(resource.Servers), maxServers)] {
			if u, err := url.Parse(listed); err == nil && u.Host != "" {
				return listed, nil
			}
		}
		return "", unusable("the MCP server's resource metadata names %s, which is no URL of an authorization server",
			identifier(resource.Servers[0]))
	}
	if slices.Contains(resource.Servers, accept) {
		return accept, nil
	}
	for _, listed := range resource.Servers {
		if strings.TrimSuffix(listed, "/") == strings.TrimSuffix(accept, "/") {
			return listed, nil
		}
	}
	return "", unusable("the MCP server's authorization server is %s and not %s, which the Spec names",
		identifier(resource.Servers[0]), identifier(accept))
}
