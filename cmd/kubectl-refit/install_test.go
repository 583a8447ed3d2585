package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/usage"
)

func TestAnImageThatNobodyCanPullIsRefusedBeforeAnythingIsApplied(t *testing.T) {
	for name, image := range map[string]string{
		"none":                   " ",
		"a space":                "registry.example.com/refit coordinator:v1",
		"an upper case name":     "registry.example.com/Refit:v1",
		"a tag without a name":   ":v1",
		"a name without its tag": "registry.example.com/refit-coordinator:",
		"a tag that is none":     "registry.example.com/refit-coordinator:v1+dev",
		"a digest that is cut":   "registry.example.com/refit-coordinator@sha256:abc",
		"an address":             "https://registry.example.com/refit-coordinator:v1",
		"a line break":           "registry.example.com/refit-coordinator:v1\n",
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			root := newRoot(streams{out: &out, err: &out})
			root.SetArgs([]string{"install", "--kubeconfig", "/there/is/none", "--coordinator-image", image})
			err := root.Execute()
			require.ErrorContains(t, err, "--coordinator-image")
			assert.Equal(t, usage.ExitCode, exitCode(err))
			assert.Empty(t, out.String())
		})
	}
	for _, image := range []string{
		"refit-coordinator", "refit-coordinator:dev", "localhost:5000/refit-coordinator:v1", "refit.dev/refit-coordinator:dev",
		"registry.example.com/a/b/refit-coordinator:v1@sha256:" + strings.Repeat("a", 64),
	} {
		assert.NoError(t, checkImage(image), image)
	}
}
