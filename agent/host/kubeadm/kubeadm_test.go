package kubeadm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// program plays kubeadm: it has a version and answers one upgrade.
type program struct {
	version string
	output  string
	err     error
	runs    [][]string
}

func (p *program) Run(_ context.Context, c command.Command) (command.Result, error) {
	if c.Argv[1] == "version" {
		return command.Result{Stdout: p.version + "\n"}, nil
	}
	p.runs = append(p.runs, c.Argv)
	if c.Log != nil {
		_, _ = c.Log.Write([]byte(p.output))
	}
	return command.Result{Stdout: p.output, ExitCode: 1}, p.err
}

func newKubeadm(t *testing.T, p *program) *Kubeadm {
	t.Helper()
	k := New(t.TempDir())
	k.Runner = p
	return k
}

func TestARenewalIsOfAllCertificates(t *testing.T) {
	p := &program{version: "v1.37.2"}
	require.NoError(t, newKubeadm(t, p).RenewCertificates(t.Context()))
	assert.Equal(t, [][]string{{"kubeadm", "certs", "renew", "all"}}, p.runs)
	p.err, p.output = &command.Error{}, "error: unable to load the CA\n"
	var failure *Failure
	require.ErrorAs(t, newKubeadm(t, p).RenewCertificates(t.Context()), &failure)
	assert.Contains(t, failure.Error(), "unable to load the CA")
}

func TestTheFirstHostAppliesAndTheOthersFollow(t *testing.T) {
	for name, tc := range map[string]struct {
		role v1alpha1.KubeadmRole
		want string
	}{
		"first": {v1alpha1.KubeadmFirst, "kubeadm upgrade apply v1.37.2 --yes --config="},
		"other": {v1alpha1.KubeadmOther, "kubeadm upgrade node --config="},
	} {
		t.Run(name, func(t *testing.T) {
			p := &program{version: "v1.37.2"}
			k := newKubeadm(t, p)
			require.NoError(t, k.Upgrade(t.Context(), upgrade.KubeadmUpgrade{Role: tc.role, Version: "v1.37.2", IgnorePreflightErrors: []string{"CreateJob"}}))
			require.Len(t, p.runs, 1)
			assert.True(t, strings.HasPrefix(strings.Join(p.runs[0], " "), tc.want), "%v", p.runs[0])
			data, err := os.ReadFile(filepath.Join(k.Root, k.State, "kubeadm/upgrade.yaml"))
			require.NoError(t, err)
			assert.Contains(t, string(data), "kind: UpgradeConfiguration")
			assert.Contains(t, string(data), "kubernetesAPICall: 5m0s")
			assert.Contains(t, string(data), "- CreateJob")
			assert.Contains(t, string(data), "imagePullPolicy: IfNotPresent")
		})
	}
}

func TestAnOlderKubeadmGetsFlags(t *testing.T) {
	p := &program{version: "v1.30.4"}
	k := newKubeadm(t, p)
	require.NoError(t, k.Upgrade(t.Context(), upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.30.4", IgnorePreflightErrors: []string{"CreateJob", "CoreDNSUnsupportedPlugins"}}))
	assert.Equal(t, []string{"kubeadm", "upgrade", "apply", "v1.30.4", "--yes", "--ignore-preflight-errors=CreateJob,CoreDNSUnsupportedPlugins"}, p.runs[0])
}

func TestKubeadmOfAnotherMinorOrAnOlderPatchDoesNotRun(t *testing.T) {
	for _, own := range []string{"v1.36.3", "v1.38.0", "v1.37.1", "", "garbage"} {
		p := &program{version: own}
		var blocked *upgrade.Blocked
		err := newKubeadm(t, p).Upgrade(t.Context(), upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2"})
		require.ErrorAs(t, err, &blocked, own)
		assert.Empty(t, p.runs)
	}
	p := &program{version: "v1.37.3"}
	require.NoError(t, newKubeadm(t, p).Upgrade(t.Context(), upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2"}))
}

func TestAFailedRunNamesItsChecksAndKeepsItsOutput(t *testing.T) {
	p := &program{
		version: "v1.37.2",
		output:  "\x1b[0;37mCGROUPS_CPU\x1b[0m: enabled\n[preflight] Some fatal errors occurred:\n\t[ERROR CreateJob]: Job did not complete\n\t[WARNING Swap]: swap is on\n[upgrade/apply] FATAL: static Pod hash for component etcd did not change after 5m0s",
		err:     &command.Error{Argv: []string{"kubeadm"}, ExitCode: 1},
	}
	k := newKubeadm(t, p)
	k.LogName = "op-17"
	err := k.Upgrade(t.Context(), upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2"})
	var failure *Failure
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, []string{"CreateJob"}, failure.Checks)
	assert.Contains(t, err.Error(), "component etcd did not change")
	assert.NotContains(t, err.Error(), "CGROUPS_CPU", "what is fine is not a reason")
	data, readErr := os.ReadFile(filepath.Join(k.Root, "/var/lib/refit/log/op-17.log"))
	require.NoError(t, readErr)
	assert.Contains(t, string(data), "[WARNING Swap]")
	assert.Len(t, p.runs, 1, "it is run once; whoever wants more asks again")
}

// What kubeadm v1.37 prints on a host with cgroup v1, shortened in the middle.
const cgroupRefusal = `[upgrade] Running pre-flight checks
[preflight] Running pre-flight checks
	[WARNING SystemVerification]: missing optional cgroups: hugetlb
[preflight] Some fatal errors occurred:
	[ERROR SystemVerification]: cgroups v1 support is deprecated and will be removed in a future release. Please migrate to cgroups v2.
[preflight] If you know what you are doing, you can make a check non-fatal with ` + "`--ignore-preflight-errors=...`" + `
error: error execution phase preflight: preflight checks failed
To see the stack trace of this error execute with --v=5 or higher
`

func TestAMessageBeginsWithWhy(t *testing.T) {
	for name, tc := range map[string]struct{ output, want string }{
		"failed checks": {cgroupRefusal, "preflight checks SystemVerification failed (each can be named in spec.kubeadm.ignorePreflightErrors): " +
			"[ERROR SystemVerification]: cgroups v1 support is deprecated and will be removed in a future release. Please migrate to cgroups v2.; command: "},
		"a failed phase": {
			"[upgrade] doing\nerror: error execution phase control-plane: couldn't complete the static pod upgrade\nTo see the stack trace of this error execute with --v=5 or higher\n",
			"error: error execution phase control-plane: couldn't complete the static pod upgrade; command: ",
		},
		"nothing that looks like a verdict": {"one\ntwo\n", "one\ntwo; command: "},
	} {
		t.Run(name, func(t *testing.T) {
			p := &program{version: "v1.37.2", output: tc.output, err: &command.Error{Argv: []string{"kubeadm"}, ExitCode: 1}}
			err := newKubeadm(t, p).Upgrade(t.Context(), upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmOther, Version: "v1.37.2"})
			require.Error(t, err)
			assert.True(t, strings.HasPrefix(err.Error(), tc.want), err.Error())
			assert.Contains(t, err.Error(), "kubeadm upgrade node")
		})
	}
	long := reason("error: " + strings.Repeat("x", 10_000) + "\n")
	assert.LessOrEqual(t, len(long), maxReason+len(" …"))
}

func TestARunThatTakesTooLongIsEnded(t *testing.T) {
	k := New(t.TempDir())
	k.Program = filepath.Join(t.TempDir(), "kubeadm")
	require.NoError(t, os.WriteFile(k.Program, []byte("#!/bin/sh\n[ \"$1\" = version ] && echo v1.37.2 && exit 0\necho waiting\nexec sleep 60\n"), 0o755))
	k.Timeout = 500 * time.Millisecond
	start := time.Now()
	err := k.Upgrade(t.Context(), upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmOther, Version: "v1.37.2"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "waiting")
	assert.Less(t, time.Since(start), 30*time.Second)
}

func TestWhatCouldBeReadAsSomethingElseIsRefused(t *testing.T) {
	good := upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2"}
	for name, spoil := range map[string]func(*upgrade.KubeadmUpgrade){
		"a shell text":     func(u *upgrade.KubeadmUpgrade) { u.Version = "v1.37.2; reboot" },
		"an option":        func(u *upgrade.KubeadmUpgrade) { u.Version = "--force" },
		"no role":          func(u *upgrade.KubeadmUpgrade) { u.Role = "" },
		"all":              func(u *upgrade.KubeadmUpgrade) { u.IgnorePreflightErrors = []string{"CreateJob", "All"} },
		"a list in one id": func(u *upgrade.KubeadmUpgrade) { u.IgnorePreflightErrors = []string{"CreateJob,all"} },
	} {
		t.Run(name, func(t *testing.T) {
			u := good
			spoil(&u)
			p := &program{version: "v1.37.2"}
			var blocked *upgrade.Blocked
			require.ErrorAs(t, newKubeadm(t, p).Upgrade(t.Context(), u), &blocked)
			assert.Empty(t, p.runs)
		})
	}
}

func TestAKubeadmThatIsNotThereIsNamed(t *testing.T) {
	k := New(t.TempDir())
	k.Program = "/no/such/kubeadm"
	err := k.Upgrade(t.Context(), upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2"})
	require.ErrorContains(t, err, "/no/such/kubeadm")
	var failure *Failure
	assert.NotErrorAs(t, err, &failure)
}

// Whether kubeadm came to its end is on disk before it begins, and outlives the process
// that ran it. A worker has its kubelet to tell.
func TestARunThatDidNotEndWellIsUnfinishedUntilOneDoes(t *testing.T) {
	p := &program{version: "v1.37.2", err: &command.Error{Argv: []string{"kubeadm"}, ExitCode: 1}}
	k := newKubeadm(t, p)
	unfinished := func() *upgrade.UnfinishedFacts {
		run, err := k.Unfinished(t.Context())
		require.NoError(t, err)
		return run
	}
	assert.Nil(t, unfinished())
	u := upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2"}
	require.Error(t, k.Upgrade(t.Context(), u))
	assert.Nil(t, unfinished(), "a worker")

	u.ControlPlane = true
	require.Error(t, k.Upgrade(t.Context(), u))
	assert.Equal(t, &upgrade.UnfinishedFacts{Version: "v1.37.2", Role: v1alpha1.KubeadmFirst}, unfinished())
	p.err = nil
	require.NoError(t, k.Upgrade(t.Context(), u))
	assert.Nil(t, unfinished())

	require.NoError(t, os.WriteFile(filepath.Join(k.Root, k.State, "kubeadm/unfinished.json"), []byte("{"), 0o600))
	_, err := k.Unfinished(t.Context())
	require.ErrorContains(t, err, "run kubeadm upgrade for the version that the API server has, then remove the file")
}
