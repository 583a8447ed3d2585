package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

func TestWhatTheClientLibraryLogsReachesNobody(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer file.Close()
	stderr := os.Stderr
	os.Stderr = file
	klog.ErrorS(errors.New("refused"), "Failed to watch")
	klog.Background().Error(errors.New("refused"), "Failed to watch")
	klog.Flush()
	os.Stderr = stderr
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	assert.Empty(t, string(text))
}
