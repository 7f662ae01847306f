package messages

import (
	"fmt"
	"strings"

	"github.com/psych-systems/psych-go/failure"
)

// Scope is on whose behalf something happens. It travels with everything. The
// zero value is no scope and is refused wherever one is needed.
type Scope struct {
	Tenant string `json:"tenant"`
	// Principal is the tenant's user or service; "" is the tenant itself.
	Principal string `json:"principal"`
}

// NewScope returns the scope of a tenant's principal. It fails with
// [failure.SpecInvalid] when the tenant is empty or either has a control
// character.
func NewScope(tenant, principal string) (Scope, error) {
	if tenant == "" {
		return Scope{}, failure.New(failure.KindSpecInvalid, "a scope needs a tenant", nil)
	}
	for _, part := range []string{tenant, principal} {
		if strings.ContainsFunc(part, isControl) {
			return Scope{}, failure.New(failure.KindSpecInvalid, "a scope must not have control characters", nil)
		}
	}
	return Scope{Tenant: tenant, Principal: principal}, nil
}

// ParseScope reads TENANT or TENANT/PRINCIPAL; the first slash divides.
func ParseScope(text string) (Scope, error) {
	tenant, principal, divided := strings.Cut(text, "/")
	if divided && principal == "" {
		return Scope{}, failure.New(failure.KindSpecInvalid,
			fmt.Sprintf("scope %q has a slash but no principal behind it", text), nil)
	}
	return NewScope(tenant, principal)
}

// String is TENANT or TENANT/PRINCIPAL.
func (s Scope) String() string {
	if s.Principal == "" {
		return s.Tenant
	}
	return s.Tenant + "/" + s.Principal
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
