package spec

import (
	"time"

	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
)

// Spec describes an agent. It is data: the tools of its servers are discovered,
// never declared.
type Spec struct {
	// Name begins with a letter or "_" and has at most 128 letters, digits, "_",
	// "." and "-".
	Name string `yaml:"name"`
	// Instructions may have several lines, or none.
	Instructions string `yaml:"instructions"`
	Model        Model  `yaml:"model"`
	// MCPServers have different names.
	MCPServers []Server `yaml:"mcp_servers"`
	// Tools names tools of the embedding program. The names are public as they
	// are: none is that of a built-in tool or begins as a server's tools do.
	Tools  []string `yaml:"tools"`
	Limits Limits   `yaml:"limits"`
}

// Model names a model; its endpoint belongs to the deployment.
type Model struct {
	Model string `yaml:"model"`
}

// Server is an MCP server.
type Server struct {
	// Name is the Spec's alias of the server: formed as a Spec's name, without
	// "__" in it and without "_" at its end.
	Name string `yaml:"name"`
	// URL is absolute, http or https, without user information and fragment.
	URL string `yaml:"url"`
	// Transport is Streamable HTTP when empty.
	Transport messages.Transport `yaml:"transport"`
	// Credential is a name, never a value; "" sends none. A server with OAuth has
	// none.
	Credential string `yaml:"credential"`
	// Allow is the patterns that tools must match, exactly or up to a trailing
	// "*"; empty grants all that the tenant permits.
	Allow []string `yaml:"allow"`
	// Optional lets a Run go on without the server while it cannot be reached.
	Optional bool `yaml:"optional"`
	// Preload shows the server's tools to the model whole (true) or on demand
	// (false); nil decides by their size.
	Preload *bool `yaml:"preload"`
	// Session is [SessionShared] when empty.
	Session Session `yaml:"session"`
	// OAuth is nil for a server without OAuth.
	OAuth *OAuth `yaml:"oauth"`
}

// Session says who uses a connection's session.
type Session string

// The sessions.
const (
	// SessionShared is one session for all Runs of a pool key.
	SessionShared Session = "shared"
	// SessionRun gives each Run its own, for old servers that keep state in it.
	SessionRun Session = "run"
)

// Grant is the Spec's plane over the server's tools.
func (s Server) Grant() narrow.Grant {
	if len(s.Allow) == 0 {
		return narrow.All()
	}
	return narrow.Of(s.Allow...)
}

// OAuth says how a server's grant is obtained (MCP 2026-07-28, authorization).
// The client is the preregistered one, else the document at CIMDURL, else one
// that is registered.
type OAuth struct {
	// Grant is [GrantClientCredentials] when empty.
	Grant string `yaml:"grant"`
	// PreregisteredClientID needs Issuer, so that no other authorization server
	// gets to see the client.
	PreregisteredClientID string `yaml:"preregistered_client_id"`
	// ClientSecretCredential is the name of the preregistered client's secret.
	ClientSecretCredential string `yaml:"client_secret_credential"`
	// Issuer is the authorization server that is accepted; "" is the one that the
	// MCP server names.
	Issuer string `yaml:"issuer"`
	// Scopes are asked for besides those that the server's challenge names.
	Scopes []string `yaml:"scopes"`
	// TokenEndpointAuthMethod is client_secret_basic, client_secret_post,
	// private_key_jwt or none; nil goes by the authorization server's metadata.
	TokenEndpointAuthMethod *string `yaml:"token_endpoint_auth_method"`
	// PrivateKeyCredential is the name of the key for private_key_jwt.
	PrivateKeyCredential *string `yaml:"private_key_credential"`
	// CIMDURL is where the Client ID Metadata Document is.
	CIMDURL string `yaml:"cimd_url"`
	// AllowDynamicRegistration is true when nil (RFC 7591).
	AllowDynamicRegistration *bool `yaml:"allow_dynamic_registration"`
	// ApplicationType is native when empty, or web.
	ApplicationType string `yaml:"application_type"`
	// ClientName is psych when empty.
	ClientName string `yaml:"client_name"`
	// RedirectURIs are https, or http to loopback.
	RedirectURIs []string `yaml:"redirect_uris"`
}

// The grants.
const (
	GrantClientCredentials = "client_credentials"
	GrantAuthorizationCode = "authorization_code"
)

// Limits bounds a Run.
type Limits struct {
	// MaxTurns is 32 when 0, and at most 1000.
	MaxTurns int `yaml:"max_turns"`
	// Deadline is 10 minutes when 0, and at most 24 hours.
	Deadline time.Duration `yaml:"deadline"`
}
