package setup

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// A file is one Machine or it is named; and whatever it wishes for, on a plain host it
// is planned or refused with a reason, and never brings the program down.
func FuzzMachine(f *testing.F) {
	f.Add([]byte("apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w1}\nspec:\n  roles: [Worker]\n  versions: {kubelet: v1.37.2, containerRuntime: {name: containerd, version: 2.4.2}}\n  os: {packages: [{name: openssl, version: 3.0.15-1~deb12u1}, {name: telnet, state: Absent}], reboot: IfRequired}\n  packageSources: [{name: kubernetes, uri: \"https://m/{minor}/deb/\", suites: [/], signedBy: k}]\n  kubelet: {configuration: {maxPods: 200}}\n  drain: {timeout: 30m}\n"))
	f.Add([]byte("apiVersion: refit.dev/v1alpha1\nkind: Machine\nspec: {roles: [ControlPlane], versions: {controlPlane: v1.37.2, etcd: v3.7.0}}\n"))
	f.Add([]byte("apiVersion: refit.dev/v1alpha1\nkind: Machine\nspec: null\n---\nkind: Machine\n"))
	f.Add([]byte("apiVersion: v1\nkind: Pod\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		document, err := ReadMachine("-", bytes.NewReader(text))
		if err != nil {
			require.ErrorContains(t, err, "stdin")
			return
		}
		machine := document.machine
		assignment, err := document.assignment(Statement{})
		require.NoError(t, err)
		in := upgrade.PlanInput{
			Machine: machine.Name, Spec: machine.Spec, Assignment: assignment, Facts: plainHost(), Standalone: true, Now: time.Unix(1700000000, 0),
		}
		needed, err := upgrade.Check(in)
		_, _, sourcesErr := upgrade.Sources(in.Facts, in.Assignment.Target, in.Spec)
		plan, planErr := upgrade.NewPlan(in)
		for _, err := range []error{err, sourcesErr, planErr} {
			var blocked *upgrade.Blocked
			require.True(t, err == nil || errors.As(err, &blocked) && blocked.Reason != "" && blocked.Message != "", "%v", err)
		}
		require.False(t, err != nil && planErr == nil, "NewPlan refuses whatever Check does: %v", err)
		require.False(t, err == nil && !needed && planErr != nil, "what needs no candidates needs none: %v", planErr)
		if planErr == nil && !needed {
			for _, s := range plan.Steps {
				require.NotEqual(t, upgrade.StepInstallPackages, s.Kind)
			}
		}
	})
}

func plainHost() upgrade.Facts {
	return upgrade.Facts{
		OS: upgrade.OSFacts{ID: "debian", VersionID: "12", Family: "apt"}, Host: upgrade.HostFacts{BootID: "b"},
		Packages: upgrade.PackageFacts{
			Manager: "apt", Installed: []upgrade.InstalledPackage{{Name: "openssl", Version: "3.0.14-1", State: "installed"}},
			Sources: []upgrade.SourceFacts{{File: "/etc/apt/sources.list", URI: "http://deb.example/debian", Suites: []string{"bookworm"}, Provides: []string{"openssl"}}},
		},
	}
}
