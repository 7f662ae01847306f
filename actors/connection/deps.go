package connection

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/messages"
)

// Dialer opens sessions.
type Dialer interface {
	// Dial connects to a target and negotiates, within ctx.
	Dial(ctx context.Context, target *messages.Target) (Session, error)
}

// Session is an open session with a server. It is safe for concurrent use, and a
// fault of one call is that call's own. Errors are failures; one of a call that
// may have run has a method Sent that is true, and one that another token could
// help is a [Refused].
type Session interface {
	ProtocolVersion() string
	Instructions() string
	// ListTools fetches all pages of the tool list.
	ListTools(ctx context.Context, credential, previousEtag string) (*messages.Listing, error)
	// CallTool calls a tool once.
	CallTool(ctx context.Context, call *messages.CallTool) (*messages.ToolResult, error)
	// Watch follows the server's changes until the stream ends; again is false when
	// the server offers no such stream.
	Watch(ctx context.Context, credential string, opened, changed func()) (again bool, err error)
	// Closed is closed when the session is lost; nil for one that cannot be.
	Closed() <-chan struct{}
	// Close ends the session, within a few seconds.
	Close()
}

// Refused is an error of a dial or of a session that another token could help.
type Refused interface {
	error
	// Refusal is how the server refused: with which status, 0 when nothing was sent,
	// and with which challenge; have is the version of the token that was sent.
	Refusal() (have uint64, status int, challenge []string, refused bool)
}

// Source is a slot's session as its catalog uses it.
type Source interface {
	Epoch() (epoch uint64, open bool)
	ListTools(ctx context.Context, previousEtag string, wanted bool) (*messages.Listing, error)
	Watch(ctx context.Context, opened, changed func()) (again bool, err error)
	Awaits() error
	ProtocolVersion() string
	Instructions() string
}

// Deps is what a connection is made from.
type Deps struct {
	Dialer Dialer
	// Catalog makes the catalog of a slot.
	Catalog func(source Source) *actor.Props
	// Grant makes the owner of the key's OAuth grant; nil in a process without OAuth.
	Grant func(grant *messages.Grant, server string) *actor.Props
	// ConnectTimeout bounds one attempt to connect, and one fetch of a tool list; 0
	// is 30 seconds. What the grant's owner takes for a token is not counted.
	ConnectTimeout time.Duration
	// CallTimeout bounds a call whose asker brought no deadline; 0 is 10 minutes.
	CallTimeout time.Duration
	// IdleClose is after how long without use the connection asks to be closed, at
	// least a second; 0 is 10 minutes. A Run's own session that was not released is
	// a use.
	IdleClose time.Duration
	// MaxCalls is how many calls run at once; 0 is 256.
	MaxCalls int
	// MaxWaiting is how many more calls may wait, and how many questions for the
	// tools of one session that is being opened; 0 is 1024.
	MaxWaiting int
	Logger     *zap.Logger
	// Middleware is around the actor's Receive, inside of all other.
	Middleware []actor.ReceiverMiddleware
}

func (d Deps) withDefaults() Deps {
	for field, standard := range map[*time.Duration]time.Duration{
		&d.ConnectTimeout: 30 * time.Second,
		&d.CallTimeout:    10 * time.Minute,
		&d.IdleClose:      10 * time.Minute,
	} {
		if *field <= 0 {
			*field = standard
		}
	}
	d.IdleClose = max(d.IdleClose, time.Second)
	if d.MaxCalls <= 0 {
		d.MaxCalls = 256
	}
	if d.MaxWaiting <= 0 {
		d.MaxWaiting = 1024
	}
	return d
}
