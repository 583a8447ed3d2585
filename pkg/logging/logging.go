// Package logging makes the one logger that every Refit program has. It is the only
// place that knows zap: everything else logs through logr.
package logging

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// New returns a logger that writes JSON lines to standard error. The level is one of
// debug, info, warn and error; another one is an error that names these.
func New(level string) (logr.Logger, error) {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return logr.Discard(), fmt.Errorf("parsing the log level %q (one of debug, info, warn, error): %w", level, err)
	}
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(parsed)
	config.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	config.DisableStacktrace, config.DisableCaller, config.Sampling = true, true, nil
	built, err := config.Build(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return redacting{core} }))
	if err != nil {
		return logr.Discard(), fmt.Errorf("building the logger: %w", err)
	}
	return zapr.NewLogger(built), nil
}
