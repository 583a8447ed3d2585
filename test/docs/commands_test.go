package docs

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

func TestCommandsAreFoundAsAShellWouldReadThem(t *testing.T) {
	for line, want := range map[string][][]string{
		"$ kubectl refit why worker-7   # every gate":                            {{"why", "worker-7"}},
		"kubectl refit abort workers --reason 'the new kernel; loses its disks'": {{"abort", "workers", "--reason", "the new kernel; loses its disks"}},
		"make x && kubectl refit status; kubectl refit plan | less":              {{"status"}, {"plan"}},
		"KUBECONFIG=a sudo kubectl refit status > out.txt":                       {{"status"}},
		"kubectl refit":                              nil,
		"kubectl refit …":                            nil,
		`kubectl refit __complete "$@"`:              nil,
		"echo kubectl refit status":                  nil,
		`kubectl refit plan -o custom-columns="A B"`: {{"plan", "-o", "custom-columns=A B"}},
		"ssh HOST kubectl refit status":              {{"status"}},
		"# kubectl refit status":                     {{"status"}},
	} {
		assert.Equal(t, want, calls(line, "kubectl refit"), line)
	}
}

func TestACommandThatTheProgramDoesNotTakeIsNamed(t *testing.T) {
	root := func() *cobra.Command {
		r := &cobra.Command{Use: "p"}
		sub := &cobra.Command{Use: "go NAME", Args: cobra.ExactArgs(1), Run: func(*cobra.Command, []string) {}}
		sub.Flags().Bool("fast", false, "")
		sub.Flags().String("by", "", "")
		r.AddCommand(sub)
		return r
	}
	for name, c := range map[string]Command{
		"an unknown command":  {Words: []string{"come", "x"}},
		"an unknown flag":     {Words: []string{"go", "x", "--slow"}},
		"a missing value":     {Words: []string{"go", "x", "--by"}},
		"a missing argument":  {Words: []string{"go"}},
		"too many arguments":  {Words: []string{"go", "x", "y"}},
		"a flag in a mention": {Words: []string{"go", "--slow"}, Mentioned: true},
	} {
		assert.Error(t, Check(root, c), name)
	}
	assert.NoError(t, Check(root, Command{Words: []string{"go", "x", "--fast"}}))
	assert.NoError(t, Check(root, Command{Words: []string{"go"}, Mentioned: true}))
	assert.NoError(t, Check(root, Command{Words: []string{"go", "--by"}, Mentioned: true}))
}
