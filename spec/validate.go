package spec

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
)

const (
	maxTurns    = 1000
	maxDeadline = 24 * time.Hour
)

var (
	namePattern       = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.-]{0,127}$`)
	credentialPattern = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_./-]{0,127}$`)
	authMethods       = []string{"client_secret_basic", "client_secret_post", "private_key_jwt", "none"}
)

// problem is what is wrong with a Spec, and where.
type problem struct{ path, why string }

func at(path, format string, args ...any) *problem {
	return &problem{path: path, why: fmt.Sprintf(format, args...)}
}

// validate returns the first problem, nil for a valid Spec.
func validate(s Spec) *problem {
	switch {
	case !namePattern.MatchString(s.Name):
		return at("$.name", "the name %q must match %s", s.Name, namePattern)
	case s.Model.Model == "":
		return at("$.model.model", "the Spec must name a model")
	case s.Limits.MaxTurns < 0 || s.Limits.MaxTurns > maxTurns:
		return at("$.limits.max_turns", "max_turns must be from 1 to %d", maxTurns)
	case s.Limits.Deadline < 0 || s.Limits.Deadline > maxDeadline:
		return at("$.limits.deadline", "the deadline must be longer than 0 and at most %s", maxDeadline)
	}
	seen := map[string]bool{}
	for i, server := range s.MCPServers {
		path := fmt.Sprintf("$.mcp_servers[%d]", i)
		if found := validateServer(path, server); found != nil {
			return found
		}
		if seen[server.Name] {
			return at(path+".name", "the server alias %q stands twice", server.Name)
		}
		seen[server.Name] = true
	}
	return validateTools(s)
}

func validateServer(path string, s Server) *problem {
	if found := validateAlias(path, s.Name); found != nil {
		return found
	}
	if _, err := messages.CanonicalURL(s.URL); err != nil {
		return at(path+".url", "%v", err)
	}
	switch {
	case s.Transport == "stdio":
		return at(path+".transport", "stdio is no transport here: the runtime serves many tenants and owns no subprocesses; put the server behind Streamable HTTP")
	case s.Transport != "" && s.Transport != messages.TransportHTTP && s.Transport != messages.TransportSSE:
		return at(path+".transport", "the transport %q is neither http nor sse", string(s.Transport))
	case s.Credential != "" && !credentialPattern.MatchString(s.Credential):
		return at(path+".credential", "the credential must be a name that matches %s, never a value", credentialPattern)
	case s.Session != "" && s.Session != SessionShared && s.Session != SessionRun:
		return at(path+".session", "the session %q is neither shared nor run", string(s.Session))
	case s.OAuth != nil && s.Credential != "":
		return at(path+".credential", "a server has either a credential or oauth, not both")
	}
	for i, pattern := range s.Allow {
		if !narrow.ValidPattern(pattern) {
			return at(fmt.Sprintf("%s.allow[%d]", path, i), "the pattern %q must be a tool's name, or the beginning of one with a \"*\" at its end", pattern)
		}
	}
	if s.OAuth != nil {
		return validateOAuth(path+".oauth", *s.OAuth)
	}
	return nil
}

func validateAlias(path, alias string) *problem {
	switch {
	case !namePattern.MatchString(alias):
		return at(path+".name", "the server alias %q must match %s", alias, namePattern)
	case strings.Contains(alias, "__"):
		return at(path+".name", "the server alias %q must not have \"__\" in it, which divides server and tool", alias)
	case strings.HasSuffix(alias, "_"):
		return at(path+".name", "the server alias %q must not end in \"_\"", alias)
	}
	return nil
}

func validateOAuth(path string, o OAuth) *problem {
	method := ""
	if o.TokenEndpointAuthMethod != nil {
		method = *o.TokenEndpointAuthMethod
	}
	switch {
	case o.Grant != "" && o.Grant != GrantClientCredentials && o.Grant != GrantAuthorizationCode:
		return at(path+".grant", "the grant %q is neither client_credentials nor authorization_code", o.Grant)
	case o.TokenEndpointAuthMethod != nil && !slices.Contains(authMethods, method):
		return at(path+".token_endpoint_auth_method", "the method %q is none of %s", method, strings.Join(authMethods, ", "))
	case method == "private_key_jwt" && o.PrivateKeyCredential == nil:
		return at(path+".token_endpoint_auth_method", "private_key_jwt needs private_key_credential")
	case strings.HasPrefix(method, "client_secret_") && o.PreregisteredClientID != "" && o.ClientSecretCredential == "":
		return at(path+".token_endpoint_auth_method", "%s needs client_secret_credential", method)
	case method == "none" && (o.Grant == "" || o.Grant == GrantClientCredentials):
		return at(path+".token_endpoint_auth_method", "client_credentials needs a client that authenticates itself, so the method cannot be none")
	case o.ClientSecretCredential != "" && o.PreregisteredClientID == "":
		return at(path+".client_secret_credential", "a client secret needs preregistered_client_id")
	case o.PreregisteredClientID != "" && o.Issuer == "":
		return at(path+".preregistered_client_id", "a preregistered client needs the issuer that may receive it")
	case o.ClientSecretCredential != "" && !credentialPattern.MatchString(o.ClientSecretCredential):
		return at(path+".client_secret_credential", "client_secret_credential must be a name that matches %s, never a value", credentialPattern)
	case o.PrivateKeyCredential != nil && !credentialPattern.MatchString(*o.PrivateKeyCredential):
		return at(path+".private_key_credential", "private_key_credential must be a name that matches %s, never a value", credentialPattern)
	case o.ApplicationType != "" && o.ApplicationType != applicationNative && o.ApplicationType != applicationWeb:
		return at(path+".application_type", "the application type %q is neither native nor web", o.ApplicationType)
	case o.Issuer != "" && !secureURL(o.Issuer):
		return at(path+".issuer", "the issuer must be an https URL without query and fragment")
	case o.CIMDURL != "" && (!secureURL(o.CIMDURL) || strings.Count(o.CIMDURL, "/") < 3):
		return at(path+".cimd_url", "cimd_url must be an https URL with a path, without query and fragment")
	}
	for i, scope := range o.Scopes {
		if scope == "" || strings.ContainsAny(scope, " \"\\\t\n") {
			return at(fmt.Sprintf("%s.scopes[%d]", path, i), "the scope %q is no single scope token (RFC 6749 section 3.3)", scope)
		}
	}
	for i, uri := range o.RedirectURIs {
		if parsed, err := url.Parse(uri); err != nil || parsed.Scheme == "" || strings.Contains(uri, "#") ||
			parsed.Scheme == "javascript" || parsed.Scheme == "data" || parsed.Scheme == "file" {
			return at(fmt.Sprintf("%s.redirect_uris[%d]", path, i), "the redirect URI %q must be an absolute URI without a fragment", uri)
		}
	}
	return nil
}

// secureURL reports whether a URL is https, or http to loopback, without user
// information, query and fragment.
func secureURL(raw string) bool {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.Host == "" || parsed.User != nil || strings.ContainsAny(raw, "?#") {
		return false
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	loopback := parsed.Hostname() == "localhost" || err == nil && address.IsLoopback()
	return parsed.Scheme == "https" || parsed.Scheme == "http" && loopback
}

// validateTools checks the host tools' names, which are public as they are.
func validateTools(s Spec) *problem {
	for i, tool := range s.Tools {
		path := fmt.Sprintf("$.tools[%d]", i)
		switch {
		case !narrow.Legal(tool):
			return at(path, "the host tool %q must have 1 to %d characters of [A-Za-z0-9_-]", tool, narrow.MaxName)
		case slices.Contains(s.Tools[:i], tool):
			return at(path, "the host tool %q stands twice", tool)
		case narrow.Reserved(tool):
			return at(path, "the host tool %q has the name of a built-in tool", tool)
		}
		for _, server := range s.MCPServers {
			if strings.HasPrefix(tool, narrow.Prefix(server.Name)) {
				return at(path, "the host tool %q wears the prefix of the server %q and could be taken for one of its tools", tool, server.Name)
			}
		}
	}
	return nil
}
