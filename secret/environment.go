package secret

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/psych-systems/psych-go/messages"
)

// Environment resolves credentials from environment variables whose names are
// given by [EnvironmentName].
type Environment struct{ identities Identities }

var _ Resolver = Environment{}

// NewEnvironment returns the resolver of this process's environment.
func NewEnvironment(identities Identities) Environment { return Environment{identities} }

// Resolve implements [Resolver]. A principal's own variable precedes that of the
// principal "*".
func (e Environment) Resolve(_ context.Context, scope messages.Scope, name string) (Credential, error) {
	if scope.Tenant == anyPrincipal {
		return Credential{}, notFound(scope, name)
	}
	for _, principal := range []string{scope.Principal, anyPrincipal} {
		variable := EnvironmentName(messages.Scope{Tenant: scope.Tenant, Principal: principal}, name)
		if value := os.Getenv(variable); value != "" {
			return e.identities.Of(value), nil
		}
	}
	return Credential{}, notFound(scope, name)
}

// Process returns a secret of the process, whose variable is that of the tenant
// "*" and the principal "*".
func (e Environment) Process(name string) (Text, error) {
	variable := EnvironmentName(messages.Scope{Tenant: anyPrincipal, Principal: anyPrincipal}, name)
	if value := os.Getenv(variable); value != "" {
		return NewText(value), nil
	}
	return Text{}, notKept(name)
}

// EnvironmentName is the variable of a scope's credential: PSYCH_SECRET, the
// tenant, the principal and the name, joined by "__". In each part letters and
// digits stand for themselves and every other byte is written _XX with its two
// hexadecimal digits in upper case; "__" can therefore not occur in a part, and
// no two credentials share a variable. The tenant's own entry for any principal
// has the principal "*", which is written _2A.
func EnvironmentName(scope messages.Scope, name string) string {
	return strings.Join([]string{"PSYCH_SECRET", escaped(scope.Tenant), escaped(scope.Principal), escaped(name)}, "__")
}

func escaped(part string) string {
	var out strings.Builder
	for _, c := range []byte(part) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "_%02X", c)
		}
	}
	return out.String()
}
