package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/docs"
)

func TestEveryCommandOfTheDocumentationIsOneThatThereIs(t *testing.T) {
	commands, err := docs.Commands("refit-executor")
	require.NoError(t, err)
	require.NotEmpty(t, commands)
	for _, c := range commands {
		assert.NoError(t, docs.Check(rootCommand, c))
	}
}
