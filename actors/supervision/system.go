package supervision

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
)

// NewSystem returns an actor system that logs through logger, and never what a
// message holds: the library prints whole messages. It runs nothing of its own;
// when its actors have been stopped, nothing is left of it.
func NewSystem(logger *zap.Logger) *actor.ActorSystem {
	config := actor.Configure(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(wordsOnly{logger}) }),
		actor.WithDeadLetterThrottleCount(0),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	return actor.NewActorSystemWithConfig(config)
}

// wordsOnly passes on what the library says at warning level and above, without
// attributes, which hold messages.
type wordsOnly struct{ logger *zap.Logger }

func (wordsOnly) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (w wordsOnly) Handle(_ context.Context, record slog.Record) error {
	level := zap.WarnLevel
	if record.Level >= slog.LevelError {
		level = zap.ErrorLevel
	}
	w.logger.Log(level, "actor library: "+record.Message)
	return nil
}

func (w wordsOnly) WithAttrs([]slog.Attr) slog.Handler { return w }

func (w wordsOnly) WithGroup(string) slog.Handler { return w }
