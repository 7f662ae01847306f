package mcptest

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

const resourceWellKnown = "/.well-known/oauth-protected-resource"

// Protection is how a server asks for tokens. Its zero value says all that a client
// needs, at both locations and in the challenge, and wants no scope.
type Protection struct {
	// Resource is the identifier of the server as a resource, which is the audience of
	// its tokens; "" is its URL. $URL and $ORIGIN stand for the server's own.
	Resource string
	// Metadata changes the resource's metadata before it is served.
	Metadata func(document map[string]any)
	// Challenge changes the parameters of a challenge; with none left the answer has no
	// challenge.
	Challenge func(status int, params map[string]string)
	// Scopes is the scopes that an operation needs, by what [Server.On] takes, such as
	// "tools/list" or [CallOf]: the narrowest counts. [Any] is every other operation.
	Scopes map[string][]string
	// Open is the operations that need no token.
	Open []string
	// Within makes the authorization server a part of the MCP server's own origin, as
	// revision 2025-03-26 had it; there is no resource metadata then.
	Within bool
}

// protection is a [Protection] at work.
type protection struct {
	Protection
	authorization *AuthorizationServer
}

// Protected makes the server take the tokens of an authorization server, and no
// others: what is not about its resource, has ended or was revoked is answered 401,
// and what lacks a scope 403, each with a challenge (RFC 6750 section 3, RFC 9728
// section 5.1). What it serves there can be scripted by path, as in
// On("/.well-known/oauth-protected-resource/mcp", Status(503, "", "")).
func Protected(by *AuthorizationServer, how Protection) Option {
	return func(s *settings) { s.protection = &protection{how, by} }
}

// MetadataURL is where a [Protected] server's metadata is, for its path.
func (s *Server) MetadataURL() string {
	return s.Origin() + resourceWellKnown + strings.TrimPrefix(s.URL(), s.Origin())
}

func (s *Server) resource() string {
	return strings.NewReplacer("$URL", s.URL(), "$ORIGIN", s.Origin()).Replace(orElse(s.protection.Resource, "$URL"))
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// besides answers what is no MCP request of a protected server; nil for what is one.
func (s *Server) besides(x *Exchange) *reply {
	if s.protection == nil {
		return nil
	}
	path := x.Request.path()
	if s.protection.Within {
		if s.isEndpoint(path) {
			answer := s.protection.authorization.answerFor(x)
			return &answer
		}
		return nil
	}
	if x.Request.HTTPMethod != http.MethodGet || path != resourceWellKnown && path != resourceWellKnown+strings.TrimPrefix(s.URL(), s.Origin()) {
		return nil
	}
	document := map[string]any{
		"resource": s.resource(), "authorization_servers": []string{s.protection.authorization.Issuer()},
		"bearer_methods_supported": []string{"header"},
	}
	if scopes := s.protection.all(); len(scopes) > 0 {
		document["scopes_supported"] = scopes
	}
	if s.protection.Metadata != nil {
		s.protection.Metadata(document)
	}
	return &reply{message: jsonOf(document)}
}

func (s *Server) isEndpoint(path string) bool {
	return slices.Contains([]string{AuthorizeEndpoint, TokenEndpoint, RegisterEndpoint, RevokeEndpoint}, path) ||
		slices.Contains(s.protection.authorization.Locations(), path)
}

// answerFor answers a request that came to the MCP server which the authorization
// server is a part of.
func (a *AuthorizationServer) answerFor(x *Exchange) reply {
	a.record(x.Request)
	return a.answer(x)
}

// adopt makes the authorization server a part of an origin.
func (a *AuthorizationServer) adopt(origin string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.origin = origin
}

// all is every scope that an operation needs, sorted.
func (p *protection) all() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(p.Scopes))...))))
}

// needs is the scopes that a request needs.
func (p *protection) needs(r Request) []string {
	for _, what := range []string{CallOf(r.Tool), r.Method, r.HTTPMethod, Any} {
		if scopes, named := p.Scopes[what]; named && r.About(what) {
			return scopes
		}
	}
	return nil
}

// denies is the answer to a request without a good token; nil where it has one.
func (s *Server) denies(r Request) *reply {
	p := s.protection
	if p == nil || slices.ContainsFunc(p.Open, r.About) {
		return nil
	}
	needed := p.needs(r)
	challenge := map[string]string{}
	if !p.Within {
		challenge["resource_metadata"] = s.MetadataURL()
	}
	owner, good := p.authorization.good(r.Token())
	if !good || owner.Resource != s.resource() {
		if len(needed) > 0 {
			challenge["scope"] = strings.Join(needed, " ")
		}
		if r.Header.Get("Authorization") != "" {
			challenge["error"] = "invalid_token"
		}
		return p.refusal(http.StatusUnauthorized, challenge)
	}
	missing := slices.DeleteFunc(slices.Clone(needed), func(one string) bool { return slices.Contains(owner.Scopes, one) })
	if len(missing) == 0 {
		return nil
	}
	challenge["error"], challenge["scope"] = "insufficient_scope", strings.Join(missing, " ")
	return p.refusal(http.StatusForbidden, challenge)
}

func (p *protection) refusal(status int, params map[string]string) *reply {
	if p.Challenge != nil {
		p.Challenge(status, params)
	}
	refusal := &reply{status: status}
	if len(params) > 0 {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(params)) {
			parts = append(parts, name+`="`+params[name]+`"`)
		}
		refusal.header = map[string]string{"WWW-Authenticate": "Bearer " + strings.Join(parts, ", ")}
	}
	return refusal
}

// Tokens are the bearer tokens that came, each once and in the order of their first
// coming.
func (s *Server) Tokens() (tokens []string) {
	for _, r := range s.Requests(Any) {
		if token := r.Token(); token != "" && !slices.Contains(tokens, token) {
			tokens = append(tokens, token)
		}
	}
	return tokens
}
