package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Package managers that were not ready for a transaction, each with the report it comes from.
func TestAPackageManagerIsLookedAtBeforeItIsNeeded(t *testing.T) {
	// https://github.com/kubernetes/kops/issues/16754
	t.Run("a package that is half configured is not at its version and keeps the plan back", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.36.4")
		in.Facts.Packages.Broken = []string{"containerd.io"}
		in.Facts.Packages.Installed = append(in.Facts.Packages.Installed, InstalledPackage{Name: "containerd.io", Version: "1.7.19-1", State: "half-configured"})
		_, err := NewPlan(in)
		blocked := requireBlocked(t, err, ReasonPackageDBBroken)
		assert.Contains(t, blocked.Message, "containerd.io")
		assert.False(t, blocked.Terminal)
		assert.False(t, isInstalled(in.Facts, "containerd.io"))
	})
	// https://github.com/kubernetes/kops/issues/16754, https://github.com/deckhouse/deckhouse/issues/3643
	t.Run("a half installed package of the kubelet or the runtime is waited for, as it is not gone for good", func(t *testing.T) {
		for name, state := range map[string]string{"kubelet": "half-configured", "containerd": "unpacked", "kubeadm": "half-installed"} {
			for _, listed := range []bool{true, false} {
				in := kubeletHop("v1.36.3", "v1.37.2")
				in.Assignment.Target.ContainerRuntime = containerdAt("2.4.3")
				in.Candidates = candidatesOf([]string{"v1.37.2"}, []string{"2.4.3"})
				for i := range in.Facts.Packages.Installed {
					if p := &in.Facts.Packages.Installed[i]; p.Name == name {
						p.State = state
					}
				}
				if listed {
					in.Facts.Packages.Broken = []string{name}
				}
				_, err := NewPlan(in)
				blocked := requireBlocked(t, err, ReasonPackageDBBroken)
				assert.False(t, blocked.Terminal, "it goes on when the package is finished")
				assert.Contains(t, blocked.Message, name+"; finish them")
			}
		}
	})
	// https://github.com/kubean-io/kubean/issues/909
	t.Run("a lock that somebody holds is waited for and its holder is named", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.36.4")
		in.Facts.Packages.Lock = &LockFacts{PID: 2448, Command: "unattended-upgr", Path: "/var/lib/dpkg/lock-frontend"}
		findings := plan(t, in).Findings
		require.Equal(t, []string{FindingPackageLockHeld}, reasons(findings))
		assert.Equal(t, SeverityInfo, findings[0].Severity)
		assert.Contains(t, findings[0].Message, "process 2448 (unattended-upgr)")
	})
	// https://github.com/kubermatic/kubeone/issues/940
	t.Run("a hold of the host's owner on what spec does not name is respected", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.36.4")
		in.Facts.Packages.Holds = append(in.Facts.Packages.Holds, "docker-ce-cli", "containerd")
		for _, s := range plan(t, in).Steps {
			for _, c := range s.Packages {
				assert.NotContains(t, []string{"docker-ce-cli", "containerd"}, c.Name)
			}
		}
	})
	// https://github.com/kubermatic/kubeone/issues/3690
	t.Run("a version that no index shows is not found and the message says where was looked", func(t *testing.T) {
		in := kubeletHop("v1.30.12", "v1.30.13")
		in.Candidates = candidatesOf([]string{"v1.30.12"}, nil)
		_, err := NewPlan(in)
		blocked := requireBlocked(t, err, ReasonVersionNotFound)
		assert.Contains(t, blocked.Message, "1.30.13")
		assert.Contains(t, blocked.Message, "https://pkgs.example")
	})
	// https://github.com/kubernetes/kubernetes/issues/92463
	t.Run("a dependency that nobody offers is refused before anything is staged", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.36.4")
		for i := range in.Candidates {
			in.Candidates[i].Depends = []string{"kubernetes-cni (= 0.6.0)"}
		}
		_, err := NewPlan(in)
		requireBlocked(t, err, ReasonDependencyUnsolvable)
	})
	// https://www.datadoghq.com/blog/engineering/2023-03-08-deep-dive-into-platform-level-impact/
	t.Run("an updater that keeps its own time is named and left running", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.36.4")
		in.Facts.Conflicts = []ConflictFacts{{Name: "unattended-upgrades", Detail: "APT::Periodic::Unattended-Upgrade is 1"}}
		p := plan(t, in)
		assert.Equal(t, []string{FindingConflictingManager}, reasons(p.Findings))
		for _, s := range p.Steps {
			assert.NotContains(t, s.Unit, "unattended")
		}
	})
	// https://github.com/nodejs/build/issues/3296
	t.Run("a small boot file system gets no kernel", func(t *testing.T) {
		in := osInput(v1alpha1.Package{Name: "linux-image-amd64"})
		in.Facts.Mounts = []MountFacts{{Path: "/", FreeBytes: 8 << 30}, {Path: "/boot", FreeBytes: 40 << 20}}
		_, err := NewPlan(in)
		assert.Contains(t, requireBlocked(t, err, FindingNoSpace).Message, "/boot has 40 MiB free")
	})
	t.Run("a download that does not fit is refused", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.36.4")
		for i := range in.Candidates {
			in.Candidates[i].Size = 250 << 20
		}
		in.Facts.Mounts = []MountFacts{{Path: "/", FreeBytes: 64 << 30}, {Path: "/var", FreeBytes: 200 << 20}}
		_, err := NewPlan(in)
		assert.Contains(t, requireBlocked(t, err, FindingNoSpace).Message, "/var has 200 MiB free")
	})
	// https://github.com/netdata/netdata/issues/12487
	t.Run("a system of no known family is left alone", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.36.4")
		in.Facts.OS, in.Facts.Packages = OSFacts{ID: "thing", PrettyName: "Fedora-like Thing"}, PackageFacts{}
		_, err := NewPlan(in)
		requireBlocked(t, err, ReasonUnsupportedOS)
	})
}

// Container runtimes that were not what they seemed, each with the report it comes from.
func TestARuntimeIsLookedAtBeforeItIsTouched(t *testing.T) {
	runtimeTo := func(facts Facts, version string) PlanInput {
		return PlanInput{
			Machine: "w1", Spec: worker(), Facts: facts, Candidates: candidatesOf(nil, []string{version}),
			Assignment: v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt(version)}}},
		}
	}
	// https://github.com/containerd/containerd/issues/10984
	t.Run("a package that is new under a daemon that is old is finished with a restart", func(t *testing.T) {
		f := workerFacts("v1.36.3", "2.0.0")
		f.Runtime.Running = "v1.7.23"
		lines := outline(plan(t, runtimeTo(f, "2.0.0")))
		assert.Contains(t, lines, "StopSandboxes kubelet.service")
		assert.Contains(t, lines, "RestartUnit containerd.service")
		assert.NotContains(t, lines, "InstallPackages containerd=2.0.0-1")
	})
	// https://github.com/containerd/containerd/issues/10888
	t.Run("sandboxes do not outlive the daemon whose shims they are", func(t *testing.T) {
		p := plan(t, runtimeTo(workerFacts("v1.36.3", "1.7.24"), "2.0.1"))
		assert.Equal(t, v1alpha1.DisruptionDrain, p.Disruption)
		assert.Contains(t, outline(p), "StopSandboxes kubelet.service")
		assert.Equal(t, v1alpha1.DisruptionRestart, plan(t, runtimeTo(workerFacts("v1.36.3", "1.7.24"), "1.7.25")).Disruption)
	})
	// https://github.com/kubernetes/kubeadm/issues/1501, https://github.com/containerd/containerd/issues/4857
	t.Run("two cgroup drivers on one host are found before a restart", func(t *testing.T) {
		in := runtimeTo(workerFacts("v1.36.3", "1.7.24"), "1.7.25")
		in.Facts.Runtime.CgroupDriver = "cgroupfs"
		in.Facts.Kubelet.Configuration = map[string]any{"cgroupDriver": "systemd"}
		_, err := NewPlan(in)
		requireBlocked(t, err, FindingCgroupDriver)
	})
	// https://github.com/replicatedhq/kURL/issues/4077
	t.Run("a kubelet that guards another pause image than the one in use is a warning", func(t *testing.T) {
		in := kubeletHop("v1.33.3", "v1.33.4")
		in.Facts.Runtime.SandboxImage = "registry.k8s.io/pause:3.6"
		in.Facts.Kubelet.FlagSources = map[string]string{kubeadmFlagsFile: `X="--pod-infra-container-image=k8s.gcr.io/pause:3.4.1"`}
		assert.Equal(t, []string{FindingSandboxImage}, reasons(plan(t, in).Findings))
	})
	// https://github.com/kubernetes/kubeadm/issues/2364
	t.Run("a socket of an earlier runtime is named with the right one", func(t *testing.T) {
		in := kubeletHop("v1.36.3", "v1.36.4")
		in.Facts.Runtime.Endpoint = "unix:///run/containerd/containerd.sock"
		in.Facts.Kubelet.FlagSources = map[string]string{kubeadmFlagsFile: `X="--container-runtime-endpoint=/var/run/dockershim.sock"`}
		_, err := NewPlan(in)
		assert.Contains(t, requireBlocked(t, err, FindingRuntimeEndpoint).Message, "write unix:///run/containerd/containerd.sock there")
	})
}

// Control planes that were not ready for a hop, each with the report it comes from.
func TestAControlPlaneIsLookedAtBeforeItMoves(t *testing.T) {
	// https://github.com/kubernetes/kubeadm/issues/2957
	t.Run("a hop that has come about is not run again although a manifest reads otherwise", func(t *testing.T) {
		in := controlPlaneHop("v1.28.2", "v1.28.2")
		in.Facts.Control.Manifests = map[string]string{"kube-apiserver": "v1.28.1", "etcd": "3.5.9-0"}
		assert.True(t, new(plan(t, in)).Empty())
	})
	// https://github.com/etcd-io/etcd/issues/19557, https://github.com/etcd-io/etcd/issues/20793
	t.Run("etcd 3.6 does not come to a membership that 3.5 may have left wrong", func(t *testing.T) {
		in := controlPlaneHop("v1.33.1", "v1.34.1")
		in.Facts.Control.Etcd = "3.5.21-0"
		_, err := NewPlan(in)
		requireBlocked(t, err, FindingEtcdTooOld)
		in.Facts.Control.Etcd = "3.5.24-0"
		assert.NotEmpty(t, plan(t, in).Steps)
	})
	// https://github.com/kubernetes/kubernetes/issues/65580, https://github.com/kubernetes/kubeadm/issues/2682
	t.Run("a hop that moves etcd has no way back and says so", func(t *testing.T) {
		for _, s := range plan(t, controlPlaneHop("v1.36.3", "v1.37.2")).Steps {
			if s.Kind == StepKubeadmUpgrade {
				_, has := Inverse(s)
				assert.False(t, has)
				assert.Equal(t, etcdForward, s.Irreversible)
			}
		}
		_, err := NewPlan(controlPlaneHop("v1.37.2", "v1.36.3"))
		requireBlocked(t, err, ReasonDowngradeRefused)
	})
	// https://github.com/kubernetes/kubeadm/issues/2830, https://github.com/coredns/coredns/issues/3398
	t.Run("kubeadm's own checks are let pass one by one", func(t *testing.T) {
		in := controlPlaneHop("v1.36.3", "v1.37.2")
		in.Spec.Kubeadm = &v1alpha1.KubeadmSpec{IgnorePreflightErrors: []v1alpha1.PreflightID{"CoreDNSUnsupportedPlugins"}}
		for _, s := range plan(t, in).Steps {
			if s.Kubeadm != nil {
				assert.Equal(t, []string{"CoreDNSUnsupportedPlugins"}, s.Kubeadm.IgnorePreflightErrors)
			}
		}
	})
	// https://www.reddit.com/r/RedditEng/comments/11xx5o0/you_broke_reddit_the_piday_outage/
	t.Run("a control plane is one by what it runs and not by a label", func(t *testing.T) {
		in := controlPlaneHop("v1.36.3", "v1.37.2")
		in.Spec.Node = &v1alpha1.NodeSpec{Labels: map[string]string{}}
		assert.NotEmpty(t, plan(t, in).Steps)
		in.Facts.Control = nil
		_, err := NewPlan(in)
		requireBlocked(t, err, ReasonRoleMismatch)
	})
}
