package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gowebpki/jcs"

	"github.com/psych-systems/psych-go/document"
	"github.com/psych-systems/psych-go/failure"
)

// Version is a valid Spec with its hash. It is immutable; the zero value is no
// version.
type Version struct {
	spec      Spec
	hash      string
	canonical []byte
}

// Parse reads a Spec from YAML or JSON. It fails with [failure.SpecInvalid],
// whose sentence begins with FILE:LINE.
func Parse(file string, data []byte) (Version, error) {
	var written Spec
	source, err := document.Decode(file, data, &written)
	if err != nil {
		return Version{}, err
	}
	problem := validate(written)
	for _, limit := range []string{"$.limits.max_turns", "$.limits.deadline"} {
		if problem == nil && source.Has(limit) && written.Limits.unset(limit) {
			problem = at(limit, "a limit that is written out must be more than 0")
		}
	}
	if problem != nil {
		return Version{}, source.Invalid(problem.path, "%s", problem.why)
	}
	return version(written)
}

// New makes the version of a Spec that a program built. It fails with
// [failure.SpecInvalid], whose sentence begins with the field's path.
func New(written Spec) (Version, error) {
	if problem := validate(written); problem != nil {
		return Version{}, failure.New(failure.KindSpecInvalid,
			strings.TrimPrefix(problem.path, "$.")+": "+problem.why, nil)
	}
	return version(written)
}

func version(written Spec) (Version, error) {
	complete := written.withDefaults()
	complete.Instructions = lines(complete.Instructions)
	encoded, err := json.Marshal(canonical(complete))
	if err != nil {
		return Version{}, failure.New(failure.KindInternal, "the Spec has no canonical form", err)
	}
	form, err := jcs.Transform(encoded)
	if err != nil {
		return Version{}, failure.New(failure.KindInternal, "the Spec has no canonical form", err)
	}
	sum := sha256.Sum256(form)
	return Version{spec: complete, hash: hex.EncodeToString(sum[:]), canonical: form}, nil
}

// Hash names the version: the SHA-256 of its canonical form, in hexadecimal.
func (v Version) Hash() string { return v.hash }

// Spec is a copy of the Spec in which every default is written out.
func (v Version) Spec() Spec { return v.spec.withDefaults() }

// Canonical is a copy of the canonical form.
func (v Version) Canonical() []byte { return slices.Clone(v.canonical) }

// lines turns CRLF and CR line ends into LF.
func lines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// object is a canonical object; put leaves out what has its default.
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

func canonical(s Spec) object {
	limits := object{}
	put(limits, "max_turns", s.Limits.MaxTurns, defaultMaxTurns)
	put(limits, "deadline", s.Limits.Deadline.String(), defaultDeadline.String())
	servers := make([]object, len(s.MCPServers))
	for i, server := range s.MCPServers {
		servers[i] = canonicalServer(server)
	}
	o := object{"name": s.Name, "model": object{"model": s.Model.Model}}
	put(o, "instructions", s.Instructions, "")
	putList(o, "mcp_servers", servers)
	putList(o, "tools", s.Tools)
	if len(limits) > 0 {
		o["limits"] = limits
	}
	return o
}

func canonicalServer(s Server) object {
	o := object{"name": s.Name, "url": s.URL}
	put(o, "transport", string(s.Transport), "http")
	put(o, "credential", s.Credential, "")
	putList(o, "allow", s.Allow)
	put(o, "optional", s.Optional, false)
	putPointer(o, "preload", s.Preload)
	put(o, "session", s.Session, SessionShared)
	if s.OAuth != nil {
		o["oauth"] = canonicalOAuth(*s.OAuth)
	}
	return o
}

func canonicalOAuth(a OAuth) object {
	o := object{}
	put(o, "grant", a.Grant, GrantClientCredentials)
	put(o, "preregistered_client_id", a.PreregisteredClientID, "")
	put(o, "client_secret_credential", a.ClientSecretCredential, "")
	put(o, "issuer", a.Issuer, "")
	putList(o, "scopes", a.Scopes)
	putPointer(o, "token_endpoint_auth_method", a.TokenEndpointAuthMethod)
	putPointer(o, "private_key_credential", a.PrivateKeyCredential)
	put(o, "cimd_url", a.CIMDURL, "")
	put(o, "allow_dynamic_registration", *a.AllowDynamicRegistration, true)
	put(o, "application_type", a.ApplicationType, applicationNative)
	put(o, "client_name", a.ClientName, defaultClientName)
	putList(o, "redirect_uris", a.RedirectURIs)
	return o
}
