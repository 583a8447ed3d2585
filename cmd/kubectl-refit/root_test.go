package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"k8s.io/klog/v2"
)

func TestWhatTheClientLibraryLogsReachesNobody(t *testing.T) {
	var logged []string
	klog.SetLogger(funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	newRoot(streams{out: &bytes.Buffer{}, err: &bytes.Buffer{}})
	klog.ErrorS(errors.New("refused"), "Failed to watch")
	klog.Background().Error(errors.New("refused"), "Failed to watch")
	assert.Empty(t, logged)
}
