package secret

import (
	"context"

	"github.com/psych-systems/psych-go/messages"
)

// Resolver finds credentials by name. Implementations are safe for concurrent
// use and answer freshly at each call: a rotated secret is seen at its next use.
type Resolver interface {
	// Resolve returns the credential of that name in that scope. It fails with
	// failure.CredentialNotFound when there is none, without naming any other
	// scope's credentials.
	Resolve(ctx context.Context, scope messages.Scope, name string) (Credential, error)
}

// Credential is a resolved secret.
type Credential struct {
	Value Text
	// Identity tells this value from every other one without giving it away: a
	// keyed digest, or the resolver's own version id. It is part of the pool key;
	// equal identities share a connection, a rotated secret has a new one. It is
	// never empty.
	Identity string
}
