package tokenrefresh

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
)

// Keeper carries out what the actor decides. It alone meets tokens: what it
// returns tells of them. Its methods run away from the actor, one at a time, each
// within its context; what they obtained is stored, and handed to those who send
// it, before they return.
//
// An error of kind failure.McpServerUnreachable is one that may pass. One of kind
// failure.AuthorizationRequired ends the grant until a person consents.
// messages.ErrStaleKey says that the grant goes on under another key.
type Keeper interface {
	// Restore finds the token that was stored; the zero Token when there is none.
	Restore(ctx context.Context) (Token, error)
	// Renew gets a token after the one of that version, without a person.
	Renew(ctx context.Context, have uint64, refusal Refusal) (Token, error)
	// Obtain gets a first token, or one for more scopes. With person it may ask one,
	// which ends in messages.ErrStaleKey when the person has consented.
	Obtain(ctx context.Context, wanted []string, refusal Refusal, person bool) (Token, error)
	// Used reports whether the present token was sent at all, and Accepted whether a
	// server took it.
	Used(version uint64) bool
	Accepted(version uint64) bool
}

// Refusal is how a server refused a request for want of a token.
type Refusal struct {
	// Status is 401 or 403, 0 when nothing was sent.
	Status int
	// Challenge is the WWW-Authenticate fields.
	Challenge []string
}

// Token is what the actor knows of a token.
type Token struct {
	// Version names it; 0 is no token.
	Version uint64
	Issuer  string
	// Scopes are what it was granted, as far as is known.
	Scopes []string
	// Obtained is when it came, and Expires when it ends; zero when it does not say.
	Obtained, Expires time.Time
	// Renewable says that another can be had without a person.
	Renewable bool
}

// Deps is what the owner of a grant is made from.
type Deps struct {
	Keeper Keeper
	// Scopes reads the scopes that a challenge names.
	Scopes func(challenge []string) []string
	// Interactive says that the grant begins with a person's consent, and Reachable
	// that a person can be asked for it here.
	Interactive, Reachable bool
	// Server is how sentences call the server.
	Server string
	// FlightTimeout bounds a flight without a person; 0 is 30 seconds.
	FlightTimeout time.Duration
	// ConsentTimeout bounds a flight with one; 0 is 10 minutes.
	ConsentTimeout time.Duration
	Logger         *zap.Logger
	// Middleware is around the actor's Receive, inside of all other.
	Middleware []actor.ReceiverMiddleware
}

func (d Deps) withDefaults() Deps {
	if d.FlightTimeout <= 0 {
		d.FlightTimeout = 30 * time.Second
	}
	if d.ConsentTimeout <= 0 {
		d.ConsentTimeout = 10 * time.Minute
	}
	return d
}
