package spec

import (
	"encoding/json"

	"github.com/gowebpki/jcs"
)

// object is a part of the canonical form. Values are put into it with put,
// which leaves out what has its default; what is set directly is always there.
type object map[string]any

func put[T comparable](o object, name string, value, fallback T) {
	if value != fallback {
		o[name] = value
	}
}

func putList[T any](o object, name string, values []T) {
	if len(values) > 0 {
		o[name] = values
	}
}

func putPointer[T any](o object, name string, value *T) {
	if value != nil {
		o[name] = *value
	}
}

// canonical returns the canonical form of a Spec in which every default is
// written out.
func canonical(s Spec) ([]byte, error) {
	encoded, err := json.Marshal(s.canonical())
	if err != nil {
		return nil, err
	}
	return jcs.Transform(encoded)
}

func (s Spec) canonical() object {
	servers := make([]object, len(s.MCPServers))
	for i, server := range s.MCPServers {
		servers[i] = server.canonical()
	}
	limits := object{}
	put(limits, "max_turns", s.Limits.MaxTurns, defaultMaxTurns)
	put(limits, "deadline", s.Limits.Deadline.String(), defaultDeadline.String())

	o := object{"name": s.Name, "model": object{"model": s.Model.Model}}
	put(o, "instructions", s.Instructions, "")
	putList(o, "mcp_servers", servers)
	putList(o, "tools", s.Tools)
	if len(limits) > 0 {
		o["limits"] = limits
	}
	return o
}

func (s Server) canonical() object {
	o := object{"name": s.Name, "url": s.URL}
	put(o, "transport", s.Transport, defaultTransport)
	put(o, "credential", s.Credential, "")
	putList(o, "allow", s.Allow)
	put(o, "optional", s.Optional, false)
	putPointer(o, "preload", s.Preload)
	put(o, "session", s.Session, defaultSession)
	if s.OAuth != nil {
		o["oauth"] = s.OAuth.canonical()
	}
	return o
}

func (o OAuth) canonical() object {
	form := object{}
	put(form, "grant", o.Grant, defaultGrant)
	put(form, "preregistered_client_id", o.PreregisteredClientID, "")
	put(form, "client_secret_credential", o.ClientSecretCredential, "")
	put(form, "issuer", o.Issuer, "")
	putList(form, "scopes", o.Scopes)
	putPointer(form, "token_endpoint_auth_method", o.TokenEndpointAuthMethod)
	putPointer(form, "private_key_credential", o.PrivateKeyCredential)
	put(form, "cimd_url", o.CIMDURL, "")
	put(form, "allow_dynamic_registration", o.mayRegister(), defaultRegistration)
	put(form, "application_type", o.ApplicationType, defaultApplicationType)
	put(form, "client_name", o.ClientName, defaultClientName)
	putList(form, "redirect_uris", o.RedirectURIs)
	return form
}
