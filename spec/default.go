package spec

import (
	"slices"
	"time"

	"github.com/psych-systems/psych-go/messages"
)

const (
	defaultMaxTurns          = 32
	defaultDeadline          = 10 * time.Minute
	defaultTransport         = messages.TransportHTTP
	defaultSession           = SessionShared
	defaultGrant             = GrantClientCredentials
	defaultRegistration      = true
	defaultApplicationType   = applicationNative
	defaultClientName        = "psych"
	applicationNative        = "native"
	applicationWeb           = "web"
	methodClientSecretBasic  = "client_secret_basic"
	methodClientSecretPost   = "client_secret_post"
	methodPrivateKeyJWT      = "private_key_jwt"
	methodNoneAuthentication = "none"
)

// withDefaults returns a copy that shares nothing with s and in which every
// default is written out.
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
	s.Transport = orDefault(s.Transport, defaultTransport)
	s.Session = orDefault(s.Session, defaultSession)
	s.Allow = slices.Clone(s.Allow)
	slices.Sort(s.Allow)
	s.Allow = slices.Compact(s.Allow)
	s.Preload = copied(s.Preload)
	if s.OAuth != nil {
		s.OAuth = new(s.OAuth.withDefaults())
	}
	return s
}

func (o OAuth) withDefaults() OAuth {
	o.Grant = orDefault(o.Grant, defaultGrant)
	o.Scopes = slices.Clone(o.Scopes)
	o.TokenEndpointAuthMethod = copied(o.TokenEndpointAuthMethod)
	o.PrivateKeyCredential = copied(o.PrivateKeyCredential)
	o.AllowDynamicRegistration = new(o.mayRegister())
	o.ApplicationType = orDefault(o.ApplicationType, defaultApplicationType)
	o.ClientName = orDefault(o.ClientName, defaultClientName)
	o.RedirectURIs = slices.Clone(o.RedirectURIs)
	return o
}

func (o OAuth) mayRegister() bool {
	if o.AllowDynamicRegistration == nil {
		return defaultRegistration
	}
	return *o.AllowDynamicRegistration
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
