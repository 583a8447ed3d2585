package logging

import (
	"bytes"
	"errors"
	"testing"

	"github.com/go-logr/zapr"
	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestNoCredentialOfASourceIsLogged(t *testing.T) {
	var out bytes.Buffer
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&out), zap.InfoLevel)
	log := zapr.NewLogger(zap.New(redacting{core}))
	const uri = "https://user:secret@mirror.corp/deb"
	log.WithValues("source", uri).Info("Asking", "uri", uri)
	log.Error(errors.New(uri+" is away"), "Asking failed", "uri", uri)
	log.V(1).Info("not at this level")
	assert.NotContains(t, out.String(), "secret")
	assert.Contains(t, out.String(), "https://REDACTED@mirror.corp/deb is away")
	assert.Equal(t, 2, bytes.Count(out.Bytes(), []byte("\n")))
}
