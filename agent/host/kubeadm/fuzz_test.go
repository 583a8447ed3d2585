package kubeadm

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// printer is a kubeadm that prints anything.
type printer struct{ output string }

func (p printer) Run(context.Context, command.Command) (command.Result, error) {
	return command.Result{Stdout: p.output}, nil
}

// What is staged are names that kubeadm printed, and never anything that is no image.
func FuzzImages(f *testing.F) {
	f.Add("registry.k8s.io/kube-apiserver:v1.37.2\nregistry.k8s.io/kube-proxy:v1.37.2\nregistry.k8s.io/coredns/coredns:v1.14.6\nregistry.k8s.io/pause:3.10.2\nregistry.k8s.io/etcd:3.7.0-0\n", "registry.k8s.io/kube-proxy:v1.36.3")
	f.Add("W0101 remote version is much newer\nregistry.k8s.io/pause:3.10\n", "r:5000/kube-proxy@sha256:00")
	f.Add("etcd:1 pause:2", "kube-proxy:v1")
	f.Fuzz(func(t *testing.T, output, proxy string) {
		k := &Kubeadm{Root: t.TempDir(), Runner: printer{output}, Proxy: func(context.Context) (string, error) { return proxy, nil }}
		staticPod(t, k.Root, "kube-apiserver", "reg.corp/k8s/kube-apiserver:v1.36.3")
		for _, u := range []upgrade.KubeadmUpgrade{
			{Role: v1alpha1.KubeadmFirst, Version: "v1.37.2", ControlPlane: true}, {Role: v1alpha1.KubeadmOther, Version: "v1.37.2"},
		} {
			required, useful, err := k.Images(t.Context(), "kubeadm", u)
			if err != nil {
				require.Empty(t, append(required, useful...), "all or nothing")
				continue
			}
			for _, image := range append(required, useful...) {
				require.Regexp(t, validImage, image)
				printed := slices.ContainsFunc(strings.Fields(output), func(p string) bool { return path.Base(p) == path.Base(image) })
				require.True(t, printed, "%q", image)
			}
		}
	})
}

// Why kubeadm gave up goes into the Machine: some of what it said, never all of it.
func FuzzOutput(f *testing.F) {
	f.Add("[preflight] Running pre-flight checks\n\t[WARNING Swap]: swap is on\nerror execution phase preflight: [preflight] Some fatal errors occurred:\n\t[ERROR CreateJob]: job did not complete\n[preflight] If you know what you are doing, you can make a check non-fatal\nTo see the stack trace of this error execute with --v=5 or higher\n")
	f.Add("\x1b[31mFATAL\x1b[0m: nothing works\n" + strings.Repeat("ä", 500))
	f.Add("error: " + strings.Repeat("日", 300))
	f.Fuzz(func(t *testing.T, output string) {
		text := reason(output)
		require.LessOrEqual(t, len(text), maxReason+len("… "))
		require.NotContains(t, text, "\x1b[31m")
		if utf8.ValidString(output) {
			require.True(t, utf8.ValidString(text))
		}
		checks := failedChecks(output)
		for _, id := range checks {
			require.Contains(t, output, "[ERROR "+id+"]")
			require.Regexp(t, validCheck, id, "it can be named in spec.kubeadm.ignorePreflightErrors")
		}
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(checks))), len(checks), "each is named once")
		require.Contains(t, failedChecks(output+"\n\t[ERROR RefitTest]: x\n"), "RefitTest")
	})
}

// What goes through becomes an argument of kubeadm.
func FuzzUpgrade(f *testing.F) {
	f.Add("v1.37.2", "CreateJob", "v1.37.2")
	f.Add("v1.37.2 --force", "all", "v1.30.4+vendor")
	f.Add("v1.37.2-rc.1+x", "a,all", "27+")
	f.Fuzz(func(t *testing.T, version, id, own string) {
		u := upgrade.KubeadmUpgrade{Role: v1alpha1.KubeadmOther, Version: version, IgnorePreflightErrors: []string{id}}
		_ = readsConfiguration(own)
		if check(u) != nil {
			return
		}
		require.False(t, strings.ContainsAny(version+id, " ,\t\r\n=\x00"))
		require.True(t, strings.HasPrefix(version, "v1."))
		require.False(t, strings.EqualFold(id, "all"))
		if matches(own, version) == nil {
			have, known := upgrade.ParseKubernetes(own)
			want, _ := upgrade.ParseKubernetes(version)
			require.True(t, known && have.SameMinor(want) && !have.LessThan(want))
		}
	})
}

// What is left of a run is read again, or said to be damaged.
func FuzzUnfinished(f *testing.F) {
	f.Add([]byte(`{"version":"v1.37.2","role":"First"}`))
	f.Add([]byte(`{"version":1}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		k := newKubeadm(t, &program{})
		require.NoError(t, os.MkdirAll(filepath.Dir(k.unfinishedPath()), 0o700))
		require.NoError(t, os.WriteFile(k.unfinishedPath(), data, 0o600))
		run, err := k.Unfinished(t.Context())
		if err != nil {
			require.ErrorContains(t, err, "is damaged")
			return
		}
		require.NotNil(t, run, "a file that is there is a run")
		require.NoError(t, check(upgrade.KubeadmUpgrade{Version: run.Version, Role: run.Role}))
	})
}
