package catalog

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/messages"
)

// Source is the session that the connection holds at the moment.
type Source interface {
	// Epoch counts the sessions that the connection has had; open says that it has
	// one now.
	Epoch() (epoch uint64, open bool)
	// ListTools fetches the whole list; see mcpwire.Session.
	ListTools(ctx context.Context, previousEtag string) (*messages.Listing, error)
	// Watch follows the server's changes until its stream ends; again is false when
	// the server offers no such stream.
	Watch(ctx context.Context, opened, changed func()) (again bool, err error)
	// ProtocolVersion and Instructions are what the server said at the handshake.
	ProtocolVersion() string
	Instructions() string
}

// Deps is what a catalog is made from.
type Deps struct {
	Source Source
	// TTL is how long a list is fresh when its server does not say.
	TTL time.Duration
	// FetchTimeout bounds one fetch of a list; 0 is 1 minute.
	FetchTimeout time.Duration
	Logger       *zap.Logger
}
