package psych

import (
	"crypto/x509"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/secret"
	"github.com/psych-systems/psych-go/tokenstore"
	"github.com/psych-systems/psych-go/tokenstore/memory"
)

// Options is what a [Runtime] is made from. Only Model is required, and only to
// start Runs.
type Options struct {
	// Model answers for every Run; see [OpenAI] and [UseModel].
	Model Model
	// MCP makes the connections to servers; nil makes a runtime without a pool, in
	// which a Spec that names servers cannot be registered.
	MCP *MCP
	// Tools are the program's own tools, which Specs name; see [NewTool].
	Tools []HostTool
	// Tenants is what each tenant permits; a tenant that is not in it permits
	// everything. [Runtime.SetTenants] replaces it at any time.
	Tenants map[string]Tenant
	// Egress is what the process may reach; its zero value is public addresses
	// over https.
	Egress egress.Policy
	// RootCAs are the authorities whose certificates are believed, of servers and
	// of the model's endpoint; nil is the system's.
	RootCAs *x509.CertPool
	// Approvals decides which calls are held back. Its zero value holds every call
	// of a tool that writes or destroys; nobody can approve yet, so a call that is
	// held is refused.
	Approvals approval.Rules
	// TrustAnnotations lets a call that was cut off be issued once more when its
	// tool's annotations say that it is read-only or idempotent.
	TrustAnnotations bool
	// Store keeps the records; nil keeps them in memory.
	Store journal.Store
	// Logger is told what operators need; nil logs nothing.
	Logger *zap.Logger
	// middleware is how this package's own tests have actors fail.
	middleware middleware
}

// middleware is around the Receive of actors, by their kind.
type middleware struct {
	pool, connection, catalog, tokenrefresh, run []actor.ReceiverMiddleware
}

// MCP is what connections are made from. Its zero value is usable: no
// credentials, and the documented defaults.
type MCP struct {
	// Secrets resolves the credentials that Specs name; nil resolves none.
	Secrets secret.Resolver
	// Describe says what a server is for, to the model. It is asked at each turn
	// and must only look up in memory. Nil, and "" for a server, leave it to the
	// tenant's Describe and then to the server's own instructions.
	Describe func(scope messages.Scope, server string) string
	// CatalogueTTL is how long a tool list is fresh when its server does not say;
	// 0 is 5 minutes.
	CatalogueTTL time.Duration
	// BudgetChars is up to how many characters of tools (names, descriptions,
	// input schemas) a server is shown to the model whole; 0 is 20,000, negative
	// is none.
	BudgetChars int
	// MaxResponseBytes bounds one answer of a server; 0 is 16 MiB.
	// [Runtime.SetMaxResponseBytes] changes it at any time.
	MaxResponseBytes int64
	// MaxConnections bounds the pool; 0 is 10,000.
	MaxConnections int
	// IdleClose is after how long without use a connection is closed, at least a
	// second; 0 is 10 minutes. A Run's own session (session: run) is a use until the
	// Run has ended.
	IdleClose time.Duration
	// ConnectTimeout bounds one attempt to connect, and one fetch of a tool list; 0
	// is 30 seconds.
	ConnectTimeout time.Duration
	// CallTimeout bounds one tool call; 0 leaves it to the Run's deadline.
	CallTimeout time.Duration
	// TokenStore keeps the tokens of OAuth grants, the clients that were registered and
	// the consents; nil keeps them in memory. The program closes it after the runtime.
	TokenStore tokenstore.Store
	// Redirect asks persons to authorize a server (grant: authorization_code). With nil,
	// nobody is asked, and what needs a person ends in AuthorizationRequired.
	Redirect AuthorizationRedirect
	// AuthorizationOverrides is by server URL. Each use is logged.
	AuthorizationOverrides map[string]AuthorizationOverride
}

// Tenant is the plane of one tenant.
type Tenant struct {
	// Servers reserves aliases: in this tenant a Spec may use such an alias for
	// this URL only.
	Servers map[string]string
	// Allow is the patterns that each server's tools must match, by alias. Nil
	// permits everything; otherwise servers that it does not name are closed.
	Allow map[string][]string
	// DenyHosts narrows the process's egress for this tenant.
	DenyHosts []string
	// Describe says what each server is for, by alias.
	Describe map[string]string
}

const (
	defaultCatalogueTTL     = 5 * time.Minute
	defaultBudgetChars      = 20_000
	defaultMaxResponseBytes = 16 << 20
	defaultMaxConnections   = 10_000
	defaultIdleClose        = 10 * time.Minute
	defaultConnectTimeout   = 30 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.MCP != nil {
		mcp := o.MCP.withDefaults()
		o.MCP = &mcp
	}
	return o
}

func (m MCP) withDefaults() MCP {
	if m.Secrets == nil {
		m.Secrets = noSecrets{}
	}
	if m.TokenStore == nil {
		m.TokenStore = memory.New()
	}
	if m.Describe == nil {
		m.Describe = func(messages.Scope, string) string { return "" }
	}
	m.CatalogueTTL = orDefault(m.CatalogueTTL, defaultCatalogueTTL)
	m.BudgetChars = orDefault(m.BudgetChars, defaultBudgetChars)
	m.MaxResponseBytes = orDefault(m.MaxResponseBytes, defaultMaxResponseBytes)
	m.MaxConnections = orDefault(m.MaxConnections, defaultMaxConnections)
	m.IdleClose = orDefault(m.IdleClose, defaultIdleClose)
	m.ConnectTimeout = orDefault(m.ConnectTimeout, defaultConnectTimeout)
	return m
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
