package status_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/pkg/status"
)

func TestOneIsNotMany(t *testing.T) {
	assert.Equal(t, "0 pods", status.Count(0, "pod"))
	assert.Equal(t, "1 pod", status.Count(1, "pod"))
	assert.Equal(t, "2 machines", status.Count(int32(2), "machine"))
}
