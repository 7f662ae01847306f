package secret

import (
	"context"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// Chain asks resolvers in order until one has the credential. Any failure but
// failure.CredentialNotFound ends the search: a file that cannot be read must
// not make another source answer in its place.
type Chain []Resolver

var _ Resolver = Chain{}

// Resolve implements [Resolver].
func (c Chain) Resolve(ctx context.Context, scope messages.Scope, name string) (Credential, error) {
	for _, resolver := range c {
		credential, err := resolver.Resolve(ctx, scope, name)
		if failure.KindOf(err) != failure.KindCredentialNotFound {
			return credential, err
		}
	}
	return Credential{}, notFound(scope, name)
}
