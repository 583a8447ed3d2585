package boot

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestABootHasTheIDThatTheKernelGaveIt(t *testing.T) {
	id, err := Boot{Root: "/"}.ID(context.Background())
	require.NoError(t, err)
	assert.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, id)
}

func TestAMissingBootIDIsAnError(t *testing.T) {
	_, err := Boot{Root: t.TempDir()}.ID(context.Background())
	require.ErrorContains(t, err, "boot_id")
}
