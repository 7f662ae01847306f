package grant

import (
	"context"
	"net/url"
	"time"

	"github.com/psych-systems/psych-go/messages"
)

// AuthorizationRedirect is how a person is asked to authorize a server. A program
// implements it to show the authorization server's page, and to take what comes back
// from it. It is safe for concurrent use.
type AuthorizationRedirect interface {
	// Begin prepares one flow. It fails where nobody can be asked.
	Begin(ctx context.Context, about Authorization) (Redirection, error)
}

// Authorization is what a person is asked for.
type Authorization struct {
	Scope messages.Scope
	// Server is the Spec's name of the server, and URL its canonical URL.
	Server, URL string
	// Issuer is the authorization server whose page is shown.
	Issuer string
	// RedirectURIs are the Spec's; none leaves the choice to the program.
	RedirectURIs []string
	// Until is when the flow is given up.
	Until time.Time
}

// Redirection is one flow. It belongs to the browser or terminal that it was begun
// for: an implementation for many people passes on only what came back from there.
type Redirection interface {
	// RedirectURI is where the authorization server is to send the person back to.
	RedirectURI() string
	// Visit shows the authorization URL. It is a secret of the person's: it belongs in
	// no log and in no record.
	Visit(ctx context.Context, authorizationURL string) error
	// Callback waits for the next request to the redirect URI and returns its query.
	// What does not belong to the flow is passed over by the keeper, which then asks
	// for the next.
	Callback(ctx context.Context) (url.Values, error)
	// Finish tells how the flow ended, nil for well, and ends it. It is called once.
	Finish(outcome error)
}
