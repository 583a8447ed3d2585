package simulate_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refit-dev/refit/cli/simulate"
	"github.com/refit-dev/refit/coordinator/simulation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const page = "../../docs/simulate.md"

func TestTheExamplesOfThePageRun(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, examples, 2)
	for i, example := range examples {
		text := strings.Replace(example[1], "count: 1000", "count: 50", 1) // what is shown is that it runs
		file := filepath.Join(t.TempDir(), "scenario.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		scenario, err := simulate.Read([]string{file}, "refit", nil)
		require.NoError(t, err)
		e, err := simulation.New(scenario, nil)
		require.NoError(t, err)
		sum, err := e.Run(context.Background())
		require.NoError(t, err)
		assert.Equal(t, simulation.Completed, sum.Outcome, "example %d: %+v", i, sum.Waiting)
	}
}

func TestThePageNamesEveryActionAndEvent(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	source, err := os.ReadFile("../../coordinator/simulation/transcript.go")
	require.NoError(t, err)
	names := simulation.Actions()
	for _, found := range regexp.MustCompile(`Action\w+\s+= "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		names = append(names, found[1])
	}
	require.Greater(t, len(names), 30)
	for _, name := range names {
		assert.Contains(t, string(text), "`"+name+"`")
	}
}
