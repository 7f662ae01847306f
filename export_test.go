package psych

import "github.com/asynkron/protoactor-go/actor"

// Middleware is around the Receive of actors, by their kind, for stories in which
// they fail.
type Middleware struct {
	Pool, Connection, Catalog, Run []actor.ReceiverMiddleware
}

// With adds the middleware to the options of a runtime.
func (m Middleware) With(options Options) Options {
	options.middleware = middleware{pool: m.Pool, connection: m.Connection, catalog: m.Catalog, run: m.Run}
	return options
}
