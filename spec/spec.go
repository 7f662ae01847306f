package spec

import (
	"slices"
	"time"

	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
)

// Spec describes an agent. It is data: the tools of its servers are discovered,
// never declared.
type Spec struct {
	Name         string   `yaml:"name"`
	Instructions string   `yaml:"instructions"`
	Model        Model    `yaml:"model"`
	MCPServers   []Server `yaml:"mcp_servers"`
	// Tools names tools of the embedding program.
	Tools  []string `yaml:"tools"`
	Limits Limits   `yaml:"limits"`
}

// Model names a model; its endpoint belongs to the deployment.
type Model struct {
	Model string `yaml:"model"`
}

// Server is an MCP server.
type Server struct {
	// Name is the Spec's alias of the server.
	Name string `yaml:"name"`
	URL  string `yaml:"url"`
	// Transport is Streamable HTTP when empty.
	Transport messages.Transport `yaml:"transport"`
	// Credential is a name, never a value; "" sends none.
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

// OAuth says how a server's grant is obtained.
type OAuth struct {
	// Grant is [GrantClientCredentials] when empty.
	Grant                  string `yaml:"grant"`
	PreregisteredClientID  string `yaml:"preregistered_client_id"`
	ClientSecretCredential string `yaml:"client_secret_credential"`
	Issuer                 string `yaml:"issuer"`
	// Scopes are asked for besides those that the server's challenge names.
	Scopes []string `yaml:"scopes"`
	// TokenEndpointAuthMethod is nil to go by the server's metadata.
	TokenEndpointAuthMethod *string `yaml:"token_endpoint_auth_method"`
	PrivateKeyCredential    *string `yaml:"private_key_credential"`
	CIMDURL                 string  `yaml:"cimd_url"`
	// AllowDynamicRegistration is true when nil.
	AllowDynamicRegistration *bool `yaml:"allow_dynamic_registration"`
	// ApplicationType is native when empty.
	ApplicationType string `yaml:"application_type"`
	// ClientName is psych when empty.
	ClientName   string   `yaml:"client_name"`
	RedirectURIs []string `yaml:"redirect_uris"`
}

// The grants.
const (
	GrantClientCredentials = "client_credentials"
	GrantAuthorizationCode = "authorization_code"
)

// Limits bounds a Run.
type Limits struct {
	// MaxTurns is 32 when 0.
	MaxTurns int `yaml:"max_turns"`
	// Deadline is 10 minutes when 0.
	Deadline time.Duration `yaml:"deadline"`
}

// unset reports whether the limit at a path has no value.
func (l Limits) unset(path string) bool {
	if path == "$.limits.deadline" {
		return l.Deadline == 0
	}
	return l.MaxTurns == 0
}

const (
	defaultMaxTurns   = 32
	defaultDeadline   = 10 * time.Minute
	defaultClientName = "psych"
	applicationNative = "native"
	applicationWeb    = "web"
)

// withDefaults returns a copy in which every default is written out.
func (s Spec) withDefaults() Spec {
	s.MCPServers = slices.Clone(s.MCPServers)
	for i := range s.MCPServers {
		s.MCPServers[i] = s.MCPServers[i].withDefaults()
	}
	s.Tools = slices.Clone(s.Tools)
	s.Limits.MaxTurns = orDefault(s.Limits.MaxTurns, defaultMaxTurns)
	s.Limits.Deadline = orDefault(s.Limits.Deadline, defaultDeadline)
	return s
}

func (s Server) withDefaults() Server {
	s.Transport = orDefault(s.Transport, messages.TransportHTTP)
	s.Session = orDefault(s.Session, SessionShared)
	s.Allow = slices.Clone(s.Allow)
	slices.Sort(s.Allow)
	s.Allow = slices.Compact(s.Allow)
	s.Preload = copied(s.Preload)
	if s.OAuth != nil {
		oauth := s.OAuth.withDefaults()
		s.OAuth = &oauth
	}
	return s
}

func (o OAuth) withDefaults() OAuth {
	o.Grant = orDefault(o.Grant, GrantClientCredentials)
	o.ApplicationType = orDefault(o.ApplicationType, applicationNative)
	o.ClientName = orDefault(o.ClientName, defaultClientName)
	o.Scopes, o.RedirectURIs = slices.Clone(o.Scopes), slices.Clone(o.RedirectURIs)
	o.TokenEndpointAuthMethod = copied(o.TokenEndpointAuthMethod)
	o.PrivateKeyCredential = copied(o.PrivateKeyCredential)
	if o.AllowDynamicRegistration = copied(o.AllowDynamicRegistration); o.AllowDynamicRegistration == nil {
		o.AllowDynamicRegistration = new(true)
	}
	return o
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

func copied[T any](value *T) *T {
	if value == nil {
		return nil
	}
	return new(*value)
}
