package logging_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/logging"
)

func TestAnUnknownLevelIsRefusedWithTheKnownOnes(t *testing.T) {
	_, err := logging.New("loud")
	require.ErrorContains(t, err, "debug, info, warn, error")
	_, err = logging.New("info")
	require.NoError(t, err)
}
