package usage_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/usage"
)

func command() *cobra.Command {
	root := &cobra.Command{Use: "tool", SilenceUsage: true, SilenceErrors: true}
	probe := &cobra.Command{Use: "probe", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return errors.New("a fault") }}
	probe.Flags().String("file", "", "")
	_ = probe.MarkFlagRequired("file")
	root.AddCommand(probe)
	usage.Strict(root)
	return root
}

func run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestAMistakeOnTheCommandLineIsToldFromAFault(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"an unknown command":     {[]string{"prob"}, `unknown command "prob"`},
		"an unknown flag":        {[]string{"probe", "--fil"}, "--fil"},
		"a flag without a value": {[]string{"probe", "--file"}, "--file"},
		"a flag that is missing": {[]string{"probe"}, `"file" not set`},
		"an argument too many":   {[]string{"probe", "--file", "x", "y"}, `"y"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(tc.args...)
			require.ErrorContains(t, err, tc.says)
			assert.True(t, usage.Is(err))
			assert.Contains(t, err.Error(), "--help)")
		})
	}
	_, err := run("probe", "--file", "x")
	require.EqualError(t, err, "a fault")
	assert.False(t, usage.Is(err))
}

func TestHelpIsAnAnswer(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"probe", "--help"}, {"help", "probe"}} {
		out, err := run(args...)
		require.NoError(t, err, args)
		assert.Contains(t, out, "tool", args)
	}
}

func TestOneOfNamesWhatIsKnown(t *testing.T) {
	require.NoError(t, usage.OneOf("output", "json", "yaml", "json"))
	err := usage.OneOf("output", "xml", "yaml", "json")
	require.EqualError(t, err, `--output "xml" is not known: it is yaml or json`)
	assert.True(t, usage.Is(err))
}
