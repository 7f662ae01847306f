package catalog

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/messages"
)

// Source is the session that the connection holds at the moment. It is safe for
// concurrent use.
type Source interface {
	// Epoch names the session; open says that the connection has one now.
	Epoch() (epoch uint64, open bool)
	// ListTools fetches the whole list, all pages, within a time of its own. Where it is
	// the one of previousEtag, the listing says so and holds no tools. With wanted
	// somebody waits for it, and a person may be asked to authorize it.
	ListTools(ctx context.Context, previousEtag string, wanted bool) (*messages.Listing, error)
	// Watch follows the server's changes until its stream ends; opened is called when
	// the server has opened it, changed for each change, from any goroutine. again is
	// false when the server offers no such stream.
	Watch(ctx context.Context, opened, changed func()) (again bool, err error)
	// Awaits is why nothing can be fetched before a person acts; nil when it can.
	Awaits() error
	// ProtocolVersion and Instructions are what the server said at the handshake.
	ProtocolVersion() string
	Instructions() string
}

// Deps is what a catalog is made from.
type Deps struct {
	Source Source
	// TTL is how long a list is fresh when its server does not say; 0 is 5 minutes.
	TTL    time.Duration
	Logger *zap.Logger
	// Middleware is around the actor's Receive, inside of all other.
	Middleware []actor.ReceiverMiddleware
}

func (d Deps) withDefaults() Deps {
	if d.TTL <= 0 {
		d.TTL = 5 * time.Minute
	}
	return d
}
