package pool

import (
	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/messages"
)

// Deps is what a pool is made from.
type Deps struct {
	// Connection makes the connection of a key.
	Connection func(key messages.PoolKey) *actor.Props
	// MaxConnections bounds the pool; 0 is 10,000.
	MaxConnections int
	Logger         *zap.Logger
	// Middleware is around the actor's Receive, inside of all other.
	Middleware []actor.ReceiverMiddleware
}

const defaultMaxConnections = 10_000
