package main

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger writes JSON lines to standard error, which is the journal of the unit.
func logger(level string) (logr.Logger, error) {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return logr.Discard(), fmt.Errorf("parsing the log level %q (one of debug, info, warn, error): %w", level, err)
	}
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(parsed)
	config.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	config.DisableStacktrace, config.DisableCaller, config.Sampling = true, true, nil
	built, err := config.Build()
	if err != nil {
		return logr.Discard(), fmt.Errorf("building the logger: %w", err)
	}
	return zapr.NewLogger(built), nil
}
