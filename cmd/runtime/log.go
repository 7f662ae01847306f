package main

import (
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logLevels are the levels of --log-level, from the quietest.
var logLevels = []string{"error", "warn", "info", "debug"}

// logger writes to standard error.
func (p *program) logger() (*zap.Logger, error) {
	if !slices.Contains(logLevels, p.logLevel) {
		return nil, wrong(fmt.Sprintf("the log level %q is none of %s", p.logLevel, strings.Join(logLevels, ", ")), nil)
	}
	level, err := zapcore.ParseLevel(p.logLevel)
	if err != nil {
		return nil, wrong(fmt.Sprintf("the log level %q is unknown", p.logLevel), err)
	}
	settings := zap.NewProductionEncoderConfig()
	settings.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewConsoleEncoder(settings)
	if p.logJSON {
		encoder = zapcore.NewJSONEncoder(settings)
	}
	sink := zapcore.Lock(zapcore.AddSync(p.err))
	return zap.New(zapcore.NewCore(encoder, sink, level)), nil
}
