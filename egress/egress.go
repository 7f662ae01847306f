package egress

import (
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
)

// The bounds of the response ceiling, in bytes.
const (
	MinCeiling     = 1 << 10
	DefaultCeiling = 16 << 20
	MaxCeiling     = 1 << 30
)

// Options is what an [Egress] is made from. The zero value opens public hosts
// over https, for every tenant.
type Options struct {
	// Policy is the process's: what any tenant may reach at most.
	Policy Policy
	// Tenants narrows the policy by tenant, with AllowHosts and DenyHosts. A tenant
	// that is not in it has the process's policy.
	Tenants map[string]Policy
	// MaxResponseBytes is the ceiling for one answer, after decompression; 0 is
	// DefaultCeiling.
	MaxResponseBytes int64
	// RootCAs are the authorities whose certificates are believed; nil is the
	// system's.
	RootCAs *x509.CertPool
	// Resolver looks up host names; nil is the system's.
	Resolver *net.Resolver
	// Logger is told of what was refused; nil is silence.
	Logger *zap.Logger
}

// Egress is the one way out of a process. It is safe for concurrent use.
type Egress struct {
	options Options
	process *rules
	ceiling atomic.Int64
	// routes is nil once the egress is closed.
	routes atomic.Pointer[routes]

	// mu is held to replace routes and to use models.
	mu     sync.Mutex
	models map[origin]*route
}

// routes is the way of each tenant. It is never changed, only replaced.
type routes struct {
	process *route
	tenants map[string]*route
	// byKey has one route for each effective policy. The rest of a policy is the
	// process's and the same for all, so the host rules are the key.
	byKey map[string]*route
}

// New makes an egress. It fails with [failure.SpecInvalid] where a policy or the
// ceiling cannot be used.
func New(options Options) (*Egress, error) {
	if options.Logger == nil {
		options.Logger = zap.NewNop()
	}
	if options.MaxResponseBytes == 0 {
		options.MaxResponseBytes = DefaultCeiling
	}
	process, err := newRules("egress", options.Policy)
	if err != nil {
		return nil, err
	}
	e := &Egress{options: options, process: process, models: map[origin]*route{}}
	if err := e.SetMaxResponseBytes(options.MaxResponseBytes); err != nil {
		return nil, err
	}
	planned, err := e.plan(options.Tenants, nil)
	if err != nil {
		return nil, err
	}
	e.routes.Store(planned)
	return e, nil
}

// plan makes the routes of all tenants. It keeps the connections of a route that
// stays the same.
func (e *Egress) plan(tenants map[string]Policy, kept map[string]*route) (*routes, error) {
	planned := &routes{tenants: make(map[string]*route, len(tenants)), byKey: map[string]*route{}}
	add := func(by *rules) *route {
		key := by.hosts.key()
		found, known := planned.byKey[key]
		if !known {
			if found, known = kept[key]; !known {
				found = newRoute(by, e.options.Resolver, e.options.RootCAs)
			}
			planned.byKey[key] = found
		}
		return found
	}
	planned.process = add(e.process)
	for tenant, policy := range tenants {
		narrowed, err := e.process.narrow(tenant, policy)
		if err != nil {
			return nil, err
		}
		planned.tenants[tenant] = add(narrowed)
	}
	return planned, nil
}

// SetTenants replaces the policies of all tenants, for the next request of every
// client. A request that is under way goes on. It fails with
// [failure.SpecInvalid], and changes nothing, where a policy cannot be used, and
// with [failure.Cancelled] on a closed egress.
func (e *Egress) SetTenants(tenants map[string]Policy) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.routes.Load()
	if before == nil {
		return errClosed
	}
	planned, err := e.plan(tenants, before.byKey)
	if err != nil {
		return err
	}
	e.routes.Store(planned)
	for key, old := range before.byKey {
		if _, stays := planned.byKey[key]; !stays {
			old.transport.CloseIdleConnections()
		}
	}
	return nil
}

// tenant is the route of a tenant as it is now; nil when closed.
func (e *Egress) tenant(name string) *route {
	now := e.routes.Load()
	if now == nil {
		return nil
	}
	if found, known := now.tenants[name]; known {
		return found
	}
	return now.process
}

// Client returns a client for a tenant, under the tenant's policy as it is at
// each request; "" is the process. It has no deadline of its own: each request
// brings one.
func (e *Egress) Client(tenant string) *http.Client {
	return &http.Client{Transport: &guard{
		egress: e, logger: e.options.Logger.With(zap.String("tenant", tenant)),
		route: func() *route { return e.tenant(tenant) },
	}}
}

// ModelClient returns a client to which the origin of a base URL is open, by the
// URL's scheme and whatever its addresses are, and nothing else. It fails with
// [failure.SpecInvalid] where the URL cannot be used, and with
// [failure.EgressDenied] where the process's DenyHosts closes its host.
func (e *Egress) ModelClient(baseURL string) (*http.Client, error) {
	by, err := newEndpoint(baseURL, e.process.hosts.denied)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	opened, known := e.models[by.origin]
	if !known {
		opened = newRoute(by, e.options.Resolver, e.options.RootCAs)
		e.models[by.origin] = opened
	}
	return &http.Client{Transport: &guard{
		egress: e, logger: e.options.Logger, model: true,
		route: func() *route {
			if e.routes.Load() == nil {
				return nil
			}
			return opened
		},
	}}, nil
}

// Judge says whether a tenant may go to a URL, as far as can be told without
// looking up a name: by its scheme, its host, and the address where it holds one.
// It fails with [failure.EgressDenied].
func (e *Egress) Judge(tenant, rawURL string) error {
	target, err := url.Parse(rawURL)
	if err != nil {
		return denied(nil, "the URL cannot be read")
	}
	to, err := originOf(target)
	if err != nil {
		return err
	}
	route := e.tenant(tenant)
	if route == nil {
		return errClosed
	}
	return route.judge.open(to)
}

// MaxResponseBytes is the ceiling for one answer, in bytes.
func (e *Egress) MaxResponseBytes() int64 { return e.ceiling.Load() }

// SetMaxResponseBytes sets the ceiling from the next answer on, for the whole
// process. It fails with [failure.SpecInvalid] outside
// MinCeiling to MaxCeiling.
func (e *Egress) SetMaxResponseBytes(limit int64) error {
	if limit < MinCeiling || limit > MaxCeiling {
		return invalid("catalogue.max_response_bytes is %d, which is outside %d to %d", limit, MinCeiling, MaxCeiling)
	}
	e.ceiling.Store(limit)
	return nil
}

// Close takes no more requests and closes the connections that are kept. Requests
// that are under way end in their own time, and their connections with them.
func (e *Egress) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.routes.Swap(nil)
	if before == nil {
		return
	}
	for _, opened := range before.byKey {
		opened.transport.CloseIdleConnections()
	}
	for _, opened := range e.models {
		opened.transport.CloseIdleConnections()
	}
}
