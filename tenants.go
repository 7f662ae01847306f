package psych

import (
	"fmt"
	"sync/atomic"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/narrow"
)

// planes is the tenants' planes, looked up in memory and replaced as a whole.
type planes struct {
	describe func(scope messages.Scope, alias string) string
	current  atomic.Pointer[map[string]plane]
}

// plane is one tenant's plane, prepared for look-ups.
type plane struct {
	// servers is the reserved aliases, to canonical URLs.
	servers  map[string]string
	grants   map[string]narrow.Grant
	closed   bool
	describe map[string]string
}

func newPlanes(tenants map[string]Tenant, describe func(messages.Scope, string) string) (*planes, error) {
	prepared, err := prepare(tenants)
	if err != nil {
		return nil, err
	}
	p := &planes{describe: describe}
	p.current.Store(&prepared)
	return p, nil
}

// prepare checks the tenants and makes their planes.
func prepare(tenants map[string]Tenant) (map[string]plane, error) {
	prepared := make(map[string]plane, len(tenants))
	for name, tenant := range tenants {
		one := plane{
			servers: map[string]string{}, grants: map[string]narrow.Grant{},
			closed: tenant.Allow != nil, describe: tenant.Describe,
		}
		for alias, url := range tenant.Servers {
			canonical, err := messages.CanonicalURL(url)
			if err != nil {
				return nil, failure.New(failure.KindSpecInvalid, fmt.Sprintf("tenant %q, server %q: %v", name, alias, err), err)
			}
			one.servers[alias] = canonical
		}
		for alias, patterns := range tenant.Allow {
			for _, pattern := range patterns {
				if !narrow.ValidPattern(pattern) {
					return nil, failure.New(failure.KindSpecInvalid, fmt.Sprintf(
						"tenant %q, server %q: the pattern %q must be a tool's name, or the beginning of one with a \"*\" at its end",
						name, alias, pattern), nil)
				}
			}
			one.grants[alias] = narrow.Of(patterns...)
		}
		prepared[name] = one
	}
	return prepared, nil
}

// Grant implements [run.Planes].
func (p *planes) Grant(tenant, alias string) narrow.Grant {
	plane, known := (*p.current.Load())[tenant]
	if !known || !plane.closed {
		return narrow.All()
	}
	if grant, named := plane.grants[alias]; named {
		return grant
	}
	return narrow.None()
}

// Describe implements [run.Planes].
func (p *planes) Describe(scope messages.Scope, alias string) string {
	if line := p.describe(scope, alias); line != "" {
		return line
	}
	return (*p.current.Load())[scope.Tenant].describe[alias]
}

// admit refuses a server whose alias the tenant reserves for another URL.
func (p *planes) admit(tenant, alias, canonicalURL string) error {
	reserved, known := (*p.current.Load())[tenant].servers[alias]
	if !known || reserved == canonicalURL {
		return nil
	}
	return failure.New(failure.KindAccessDenied,
		fmt.Sprintf("the tenant reserves the server alias %q for another URL", alias), nil)
}
