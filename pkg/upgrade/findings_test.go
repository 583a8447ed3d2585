package upgrade

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// kubeletHop is a worker's move from one kubelet to another, with candidates for both.
func kubeletHop(from, to string) PlanInput {
	return PlanInput{Machine: "w1", Spec: worker(), Assignment: kubeletTo(to, to), Facts: workerFacts(from, "2.4.2"), Candidates: candidatesOf([]string{to}, nil)}
}

func TestAFlagThatTheTargetDoesNotKnowIsFoundWhereItIsSet(t *testing.T) {
	const (
		kubeadmArgs = `KUBELET_KUBEADM_ARGS="--container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock --pod-infra-container-image=k8s.gcr.io/pause:3.4.1"`
		site        = "/etc/default/kubelet"
	)
	for name, tc := range map[string]struct {
		from, to, path, lines string
		says                  []string // of the refusal; none: a plan
	}{
		"its own kubeadm takes it out of its own file":          {"v1.26.9", "v1.27.1", kubeadmFlagsFile, kubeadmArgs, nil},
		"a later kubeadm takes it for done":                     {"v1.26.9", "v1.28.1", kubeadmFlagsFile, kubeadmArgs, []string{kubeadmFlagsFile, "--container-runtime ", "v1.27"}},
		"the owner's file is never edited":                      {"v1.26.9", "v1.27.1", site, `KUBELET_EXTRA_ARGS="--container-runtime=remote"`, []string{site, "--container-runtime "}},
		"dockershim flags":                                      {"v1.23.9", "v1.24.4", site, `KUBELET_EXTRA_ARGS=--network-plugin=cni --v=2`, []string{"--network-plugin", "v1.24"}},
		"a flag in a drop-in":                                   {"v1.36.3", "v1.37.2", "/etc/systemd/system/kubelet.service.d/20-site.conf", `Environment="X=--containerd=/run/containerd/containerd.sock"`, []string{"20-site.conf", "--containerd ", "v1.37"}},
		"a flag that only begins like it":                       {"v1.36.3", "v1.37.2", site, "KUBELET_EXTRA_ARGS=--container-runtime-endpoint=unix:///x --node-ip=192.0.2.7", nil},
		"a jump over the minor that cleans":                     {"v1.34.4", "v1.37.2", kubeadmFlagsFile, `KUBELET_KUBEADM_ARGS="--pod-infra-container-image=registry.k8s.io/pause:3.10"`, []string{"--pod-infra-container-image"}},
		"a flag that is still known":                            {"v1.33.4", "v1.34.4", kubeadmFlagsFile, `KUBELET_KUBEADM_ARGS="--pod-infra-container-image=registry.k8s.io/pause:3.10"`, nil},
		"a patch of a kubelet that runs with it is no surprise": {"v1.37.1", "v1.37.2", site, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := kubeletHop(tc.from, tc.to)
			in.Facts.Kubelet.FlagSources = map[string]string{tc.path: tc.lines}
			_, err := NewPlan(in)
			if tc.says == nil {
				require.NoError(t, err)
				return
			}
			blocked := requireBlocked(t, err, FindingFlagRemoved)
			for _, text := range tc.says {
				assert.Contains(t, blocked.Message, text)
			}
		})
	}
}

func TestAFeatureGateThatTheTargetDoesNotKnowIsFound(t *testing.T) {
	in := kubeletHop("v1.30.4", "v1.31.2")
	in.Facts.Kubelet.Configuration = map[string]any{"featureGates": map[string]any{"InTreePluginGCEUnregister": true, "NodeSwap": true}}
	_, err := NewPlan(in)
	assert.Contains(t, requireBlocked(t, err, FindingGateRemoved).Message, "InTreePluginGCEUnregister")

	in = kubeletHop("v1.34.4", "v1.35.4")
	in.Facts.Kubelet.FlagSources = map[string]string{"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--feature-gates=NodeSwap=true,UserNamespacesPodSecurityStandards=true"}
	_, err = NewPlan(in)
	blocked := requireBlocked(t, err, FindingGateRemoved)
	assert.Contains(t, blocked.Message, "/etc/default/kubelet")
	assert.NotContains(t, blocked.Message, "NodeSwap")

	in = kubeletHop("v1.33.4", "v1.34.4")
	in.Facts.Kubelet.Configuration = map[string]any{"featureGates": map[string]any{"UserNamespacesPodSecurityStandards": true}}
	assert.Empty(t, plan(t, in).Findings, "v1.34 still knows it")
}

func TestTwoCgroupDriversOnOneHostAreRefused(t *testing.T) {
	in := kubeletHop("v1.36.3", "v1.36.4")
	in.Facts.Runtime.Running, in.Facts.Runtime.CgroupDriver = "v1.7.28", "cgroupfs"
	in.Facts.Kubelet.Configuration = map[string]any{"cgroupDriver": "systemd"}
	_, err := NewPlan(in)
	requireBlocked(t, err, FindingCgroupDriver)

	in.Facts.Runtime.Running = "v2.4.2"
	assert.Equal(t, []string{FindingCgroupDriver}, reasons(plan(t, in).Findings), "a runtime that tells its driver decides alone")
	in.Facts.Runtime.CgroupDriver = "systemd"
	assert.Empty(t, plan(t, in).Findings)
}

func TestARuntimeThatLosesSupportIsAWarningUntilItIsReplaced(t *testing.T) {
	in := kubeletHop("v1.36.3", "v1.37.2")
	in.Facts.Runtime.Running = "v1.7.28"
	assert.Equal(t, []string{FindingRuntimeLosing}, reasons(plan(t, in).Findings))

	in.Assignment.Target.ContainerRuntime = containerdAt("2.4.2")
	in.Facts.Packages.Installed[0].Version = "1.7.28-1"
	in.Candidates = candidatesOf([]string{"v1.37.2"}, []string{"2.4.2"})
	assert.Empty(t, plan(t, in).Findings, "it moves in the same window")
}

func TestNothingIsRestartedIntoAnExpiredCertificate(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := kubeletHop("v1.36.3", "v1.36.4")
	in.Now = now
	in.Facts.Certs = []CertFacts{{Path: "/var/lib/kubelet/pki/kubelet-client-current.pem", NotAfter: now.Add(-time.Hour)}}
	_, err := NewPlan(in)
	assert.Contains(t, requireBlocked(t, err, FindingCertificateExpired).Message, "kubelet-client-current.pem")

	in.Facts.Certs[0].NotAfter = now.Add(12 * 24 * time.Hour)
	assert.Equal(t, []string{FindingCertificateExpiring}, reasons(plan(t, in).Findings))
	in.Facts.Certs[0].NotAfter = now.Add(300 * 24 * time.Hour)
	assert.Empty(t, plan(t, in).Findings)
}

func TestAPlanThatWouldFillAFileSystemIsRefused(t *testing.T) {
	const mib = 1 << 20
	in := kubeletHop("v1.36.3", "v1.36.4")
	for i := range in.Candidates {
		in.Candidates[i].Size, in.Candidates[i].InstalledSize = 100*mib, 300*mib
	}
	in.Facts.Mounts = []MountFacts{{Path: "/", FreeBytes: 4000 * mib}, {Path: "/var", FreeBytes: 700 * mib}}
	_, err := NewPlan(in)
	assert.Contains(t, requireBlocked(t, err, FindingNoSpace).Message, "/var has 700 MiB free")
	in.Facts.Mounts[1].FreeBytes = 900 * mib
	assert.Empty(t, plan(t, in).Findings)
	in.Facts.Mounts[0].FreeBytes = 1000 * mib
	_, err = NewPlan(in)
	assert.Contains(t, requireBlocked(t, err, FindingNoSpace).Message, "/ has 1000 MiB free")

	kernel := osInput(v1alpha1.Package{Name: "linux-image-amd64"})
	kernel.Facts.Mounts = []MountFacts{{Path: "/", FreeBytes: 4000 * mib}, {Path: "/boot", FreeBytes: 40 * mib}}
	_, err = NewPlan(kernel)
	assert.Contains(t, requireBlocked(t, err, FindingNoSpace).Message, "/boot")
}

// What others do to the host is said, and nothing is done about it.
func TestOthersOnTheHostAreReported(t *testing.T) {
	in := kubeletHop("v1.36.3", "v1.36.4")
	in.Facts.Conflicts = []ConflictFacts{{Name: "unattended-upgrades", Detail: "APT::Periodic::Unattended-Upgrade 1"}}
	in.Facts.Hold = &HoldFacts{Path: "/etc/refit/hold", Message: "quarter end\n"}
	in.Facts.Packages.Lock = &LockFacts{PID: 2448, Command: "unattended-upgr", Path: "/var/lib/dpkg/lock-frontend"}
	p := plan(t, in)
	assert.Equal(t, []string{FindingConflictingManager, FindingHeldByOwner, "PackageLockHeld"}, reasons(p.Findings))
	for _, f := range p.Findings {
		assert.NotEqual(t, SeverityError, f.Severity)
		assert.NotEmpty(t, f.Message)
	}
}

func TestSeveralErrorsAreOneRefusal(t *testing.T) {
	in := kubeletHop("v1.36.3", "v1.37.2")
	in.Facts.Kubelet.FlagSources = map[string]string{"/etc/default/kubelet": "X=--containerd=/run/x.sock"}
	in.Facts.Kubelet.Configuration = map[string]any{"featureGates": map[string]any{"SidecarContainers": true}}
	_, err := NewPlan(in)
	blocked := requireBlocked(t, err, FindingFlagRemoved)
	assert.Contains(t, blocked.Message, "SidecarContainers")
	assert.True(t, blocked.Terminal)
	assert.Same(t, blocked, IsBlocked(err))
}

func TestAHostWithNothingToDoIsNotJudged(t *testing.T) {
	in := kubeletHop("v1.37.2", "v1.37.2")
	in.Facts.Kubelet.FlagSources = map[string]string{"/etc/default/kubelet": "X=--containerd=/run/x.sock"}
	p := plan(t, in)
	assert.True(t, p.Empty())
	assert.Empty(t, p.Findings)
}

// Each gate is removed once, and each flag: a table with two answers is wrong in one of them.
func TestTheTablesOfWhatIsRemovedNameEverythingOnce(t *testing.T) {
	for name, table := range map[string]map[int][]string{"flags": kubeletFlagsRemoved, "gates": featureGatesRemoved} {
		seen := map[string]int{}
		for minor, names := range table {
			for _, n := range names {
				assert.NotContains(t, seen, n, "%s of v1.%d", name, minor)
				seen[n] = minor
			}
		}
		assert.NotEmpty(t, seen)
	}
}

// The owner's hold is lifted for what spec changes, and the owner is told.
func TestAnOwnersHoldOnAPackageThatSpecChangesIsTold(t *testing.T) {
	a := v1alpha1.Assignment{ID: "1-a", Target: v1alpha1.Target{Versions: v1alpha1.Versions{ContainerRuntime: containerdAt("1.7.28")}}}
	in := PlanInput{Machine: "w1", Spec: worker(), Assignment: a, Facts: workerFacts("v1.36.3", "1.7.27"), Candidates: candidatesOf(nil, []string{"1.7.28"})}
	assert.Empty(t, plan(t, in).Findings, "without a hold there is nothing to tell")

	in.Facts.Packages.Holds = []string{"containerd", "containerd.io", "openssl"}
	p := plan(t, in)
	require.Equal(t, []string{FindingPackageHeld}, reasons(p.Findings), "and only of what changes")
	f := p.Findings[0]
	assert.Equal(t, SeverityWarning, f.Severity)
	assert.Contains(t, f.Message, "1.7.28")
	assert.Contains(t, f.Message, "is back after it")

	in = kubeletHop("v1.36.3", "v1.36.4")
	in.Facts.Packages.Holds = []string{"kubeadm", "kubectl", "kubelet"}
	assert.Empty(t, plan(t, in).Findings, "Kubernetes' own packages are held everywhere")
}
