package kubeadm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// dry is a kubeadm that is asked for its checks.
type dry struct {
	t      *testing.T
	output string // of a run that fails; "" for one that succeeds
	warned string // by a run that succeeds
	argv   []string
	config map[string]any
}

func (d *dry) Run(_ context.Context, c command.Command) (command.Result, error) {
	d.argv = c.Argv
	path := strings.TrimPrefix(c.Argv[len(c.Argv)-1], "--config=")
	text, err := os.ReadFile(path)
	require.NoError(d.t, err)
	require.NoError(d.t, yaml.Unmarshal(text, &d.config))
	assert.Equal(d.t, []string{dryRunDir + "=" + filepath.Dir(path)}, c.Env, "what it writes goes where we take it away")
	if d.output == "" {
		return command.Result{Stderr: d.warned}, nil
	}
	return command.Result{Stderr: d.output, ExitCode: 1}, &command.Error{Argv: c.Argv, ExitCode: 1}
}

// B65: what kubeadm would refuse is refused before the drain.
func TestTheChecksOfKubeadmAreMadeDryBeforeTheUpgrade(t *testing.T) {
	const prologue = "[preflight] Some fatal errors occurred:\n"
	for name, tc := range map[string]struct {
		output   string
		warned   string
		severity string
		passes   string // reason of what may pass by itself
	}{
		"all is well":                      {},
		"a warning alone is no refusal":    {warned: "[preflight] Running pre-flight checks\n\t[WARNING CoreDNSUnsupportedPlugins]: there are unsupported plugins\n\t[WARNING CreateJob]: no\n"},
		"an image of CoreDNS of one's own": {output: prologue + "\t[ERROR CoreDNSMigration]: CoreDNS will not be upgraded: start version 'v1.6.2-100' not supported", severity: upgrade.SeverityError},
		"a check that a person can mend":   {output: prologue + "\t[ERROR CoreDNSUnsupportedPlugins]: there are unsupported plugins", severity: upgrade.SeverityError},
		"one of the two may pass":          {output: prologue + "\t[ERROR CreateJob]: no\n\t[ERROR SystemVerification]: no", severity: upgrade.SeverityError},
		"another machine is being worked":  {output: prologue + "\t[ERROR ControlPlaneNodesReady]: cp2 is not ready", passes: reasonPreflightFailed},
		"the API server is away":           {output: "error: couldn't create a Kubernetes client: connection refused", severity: upgrade.SeverityWarning},
	} {
		t.Run(name, func(t *testing.T) {
			k := New(t.TempDir())
			k.Runner = &dry{t: t, output: tc.output, warned: tc.warned}
			findings, err := k.Preflight(t.Context(), "/unpacked/kubeadm", upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmOther, Version: "v1.37.2"})
			if tc.passes != "" {
				var blocked *upgrade.Blocked
				require.ErrorAs(t, err, &blocked)
				assert.Equal(t, tc.passes, blocked.Reason)
				assert.False(t, blocked.Terminal)
				return
			}
			require.NoError(t, err)
			if tc.severity == "" {
				assert.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			assert.Equal(t, tc.severity, findings[0].Severity)
			left, err := os.ReadDir(filepath.Join(k.Root, k.State, "kubeadm"))
			require.NoError(t, err)
			assert.Empty(t, left, "nothing of the dry run stays")
		})
	}
}

func TestTheDryRunIsAskedForAsThisKubeadmKnowsIt(t *testing.T) {
	run := func(u upgrade.KubeadmUpgrade) *dry {
		k, d := New(t.TempDir()), &dry{t: t}
		k.Runner = d
		_, err := k.Preflight(t.Context(), "/unpacked/kubeadm", u)
		require.NoError(t, err)
		return d
	}
	first := run(upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2", ControlPlane: true, IgnorePreflightErrors: []string{"CreateJob"}})
	assert.Equal(t, []string{"/unpacked/kubeadm", "upgrade", "apply", "phase", "preflight", "--yes"}, first.argv[:6])
	assert.Equal(t, map[string]any{
		"dryRun": true, "imagePullPolicy": "IfNotPresent", "kubernetesVersion": "v1.37.2", "ignorePreflightErrors": []any{"CreateJob"},
	}, first.config["apply"])
	other := run(upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmOther, Version: "v1.37.2"})
	assert.Equal(t, []string{"/unpacked/kubeadm", "upgrade", "node", "phase", "preflight"}, other.argv[:5])
	assert.Equal(t, map[string]any{"dryRun": true, "imagePullPolicy": "IfNotPresent"}, other.config["node"])

	assert.Empty(t, run(upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.31.14", ControlPlane: true}).argv,
		"an older one cannot make its checks alone")
}
