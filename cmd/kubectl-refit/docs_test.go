package main

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/docs"
)

func TestEveryCommandOfTheDocumentationIsOneThatThereIs(t *testing.T) {
	commands, err := docs.Commands("kubectl refit")
	require.NoError(t, err)
	require.Greater(t, len(commands), 60)
	var out bytes.Buffer
	for _, c := range commands {
		assert.NoError(t, docs.Check(func() *cobra.Command { return newRoot(streams{out: &out, err: &out}) }, c))
	}
}

// What the verbs' own help shows counts as well.
func TestEveryExampleOfTheHelpIsOneThatThereIs(t *testing.T) {
	var out bytes.Buffer
	root := func() *cobra.Command { return newRoot(streams{out: &out, err: &out}) }
	for _, sub := range root().Commands() {
		for _, words := range docs.Calls(sub.Example, "kubectl refit") {
			assert.NoError(t, docs.Check(root, docs.Command{Where: sub.Name() + " --help", Words: words}))
		}
	}
}
