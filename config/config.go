package config

import (
	"net/netip"
	"time"
)

// Config is a deployment's configuration. [Default] and [Parse] write every
// default out; the zero value is no configuration.
type Config struct {
	// Store keeps the records of Runs.
	Store Store
	// Model is nil when the file names none; no Run can start then.
	Model *Model
	// Secrets is where the values of credentials come from.
	Secrets Secrets
	// TokenStore keeps the tokens of OAuth grants. When it is PostgreSQL it is
	// that of Store.
	TokenStore Store
	// Tenants is by tenant. A tenant that is not named permits everything.
	Tenants map[string]Tenant
	// Egress is what the process may reach.
	Egress Egress
	// Approvals says which calls are held back.
	Approvals Approvals
	// TrustAnnotations lets a call that was cut off be issued once more when its
	// tool's annotations say that it is read-only or idempotent.
	TrustAnnotations bool
	// Catalogue bounds what is read from servers and shown to the model.
	Catalogue Catalogue
}

// Secrets names the sources of secrets.
type Secrets struct {
	// File is the path of the secrets file; "" for none.
	File string `yaml:"file"`
	// Environment lets secrets be read from the environment.
	Environment bool `yaml:"environment"`
	// IdentityKey is the name of the process's secret that makes the identities of
	// credentials the same on every node; "" makes them anew in each process.
	IdentityKey string `yaml:"identity_key"`
}

// Egress is what the process may reach. Its zero value is every public host over
// https.
type Egress struct {
	// AllowCIDRs opens networks that are closed by default. Their host bits are 0.
	AllowCIDRs []netip.Prefix
	// AllowHTTP opens plain http.
	AllowHTTP bool
	// AllowHosts is, unless it is empty, the only hosts that are open: each a host
	// name, an IP address, or "*." and a domain.
	AllowHosts []string
	// DenyHosts, in the form of AllowHosts, is closed whatever else is said.
	DenyHosts []string
}

// Approvals says which calls are held back.
type Approvals struct {
	// Selectors hold by class: @read-only, @write, @destructive. Left out they are
	// @write and @destructive; empty, which is never nil here, they hold nothing.
	Selectors []string `yaml:"selectors"`
	// Always holds the public names that match, exactly or up to a trailing "*".
	Always []string `yaml:"always"`
	// Never holds none of the public names that match, whatever else is said.
	Never []string `yaml:"never"`
}

// Catalogue bounds what is read from servers and shown to the model.
type Catalogue struct {
	// TTL is how long a tool list is fresh when its server does not say: from 1
	// second to 24 hours.
	TTL time.Duration `yaml:"ttl"`
	// BudgetChars is up to how many characters of tools a server is shown to the
	// model whole; 0 shows every server on demand.
	BudgetChars int `yaml:"budget_chars"`
	// MaxResponseBytes bounds one answer of a server: from 1 KiB to 1 GiB.
	MaxResponseBytes int64 `yaml:"max_response_bytes"`
}

// Default is the configuration of a program that is given no file.
func Default() Config {
	return Config{
		Store:      Store{Kind: Memory},
		TokenStore: Store{Kind: Memory},
		Approvals:  Approvals{Selectors: []string{"@write", "@destructive"}},
		Catalogue:  Catalogue{TTL: 5 * time.Minute, BudgetChars: 20_000, MaxResponseBytes: 16 << 20},
	}
}
