package setup

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger is the one logger of the program: JSON lines on standard error.
func Logger(level string) (logr.Logger, error) {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return logr.Discard(), fmt.Errorf("parsing the log level %q (one of debug, info, warn, error): %w", level, err)
	}
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(parsed)
	config.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	config.DisableStacktrace = true
	built, err := config.Build()
	if err != nil {
		return logr.Discard(), fmt.Errorf("building the logger: %w", err)
	}
	return zapr.NewLogger(built), nil
}
