package logging

import (
	"go.uber.org/zap/zapcore"

	"github.com/refit-dev/refit/pkg/redact"
)

// redacting keeps the credentials of URIs out of every line.
type redacting struct{ zapcore.Core }

// With implements zapcore.Core.
func (c redacting) With(fields []zapcore.Field) zapcore.Core {
	return redacting{c.Core.With(redacted(fields))}
}

// Check implements zapcore.Core.
func (c redacting) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c redacting) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	entry.Message = redact.URIs(entry.Message)
	return c.Core.Write(entry, redacted(fields)) //nolint:wrapcheck // a core between two others
}

func redacted(fields []zapcore.Field) []zapcore.Field {
	out := make([]zapcore.Field, 0, len(fields))
	for _, f := range fields {
		switch err, isError := f.Interface.(error); {
		case f.Type == zapcore.StringType:
			f.String = redact.URIs(f.String)
		case f.Type == zapcore.ErrorType && isError:
			f = zapcore.Field{Key: f.Key, Type: zapcore.StringType, String: redact.URIs(err.Error())}
		}
		out = append(out, f)
	}
	return out
}
