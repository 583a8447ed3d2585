package upgrade

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// https://github.com/kubernetes/enhancements/issues/5573
func TestAHostOfCgroupV1GetsNoKubeletThatDoesNotStartOnIt(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		cgroup   int
		config   map[string]any
		flags    string
		refused  bool
		warned   bool
	}{
		"the first kubelet that refuses":       {from: "v1.34.4", to: "v1.35.4", cgroup: 1, refused: true},
		"over several minors":                  {from: "v1.34.4", to: "v1.37.2", cgroup: 1, refused: true},
		"the unified hierarchy":                {from: "v1.34.4", to: "v1.35.4", cgroup: 2},
		"the last kubelet that takes it":       {from: "v1.33.4", to: "v1.34.4", cgroup: 1},
		"a kubelet that runs on it already":    {from: "v1.35.4", to: "v1.36.3", cgroup: 1},
		"it is told to take it":                {from: "v1.34.4", to: "v1.35.4", cgroup: 1, config: map[string]any{"failCgroupV1": false}, warned: true},
		"it is told so by a flag":              {from: "v1.34.4", to: "v1.35.4", cgroup: 1, flags: "X=--fail-cgroupv1=false", warned: true},
		"it is told to refuse it":              {from: "v1.34.4", to: "v1.35.4", cgroup: 1, config: map[string]any{"failCgroupV1": true}, refused: true},
		"facts that do not know of the matter": {from: "v1.34.4", to: "v1.35.4"},
	} {
		t.Run(name, func(t *testing.T) {
			in := kubeletHop(tc.from, tc.to)
			in.Facts.OS.CgroupVersion, in.Facts.Kubelet.Configuration = tc.cgroup, tc.config
			in.Facts.Kubelet.FlagSources = map[string]string{"/etc/default/kubelet": tc.flags}
			p, err := NewPlan(in)
			if tc.refused {
				assert.Contains(t, requireBlocked(t, err, FindingCgroupV1).Message, "failCgroupV1: false")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.warned, len(p.Findings) == 1)
		})
	}
}

func TestAHostOfAnotherArchitectureIsLeftAlone(t *testing.T) {
	in := kubeletHop("v1.36.3", "v1.36.4")
	for _, arch := range architectures {
		in.Facts.OS.Architecture = arch
		assert.NotEmpty(t, plan(t, in).Steps, arch)
	}
	in.Facts.OS.Architecture = "riscv64"
	_, err := NewPlan(in)
	assert.Contains(t, requireBlocked(t, err, ReasonUnsupportedArchitecture).Message, "riscv64")
	packages := osInput(v1alpha1.Package{Name: "htop"})
	packages.Facts.OS.Architecture = "riscv64"
	assert.NotEmpty(t, plan(t, packages).Steps, "its own packages it may have")
}

func TestAHostThatWaitsForARebootSaysSoUnlessThePlanBringsIt(t *testing.T) {
	in := kubeletHop("v1.36.3", "v1.36.4")
	in.Facts.Reboot = RebootFacts{Required: true, Packages: []string{"libc6"}}
	findings := plan(t, in).Findings
	require.Equal(t, []string{FindingRebootRequired}, reasons(findings))
	assert.Contains(t, findings[0].Message, "libc6")

	in.Spec.OS, in.Assignment.Target.OS = &v1alpha1.OSSpec{Reboot: v1alpha1.RebootIfRequired}, true
	p := plan(t, in)
	assert.Equal(t, v1alpha1.DisruptionReboot, p.Disruption)
	assert.Empty(t, p.Findings)
}

// https://github.com/kubernetes/kubernetes/issues/99418
func TestTheCertificateThatAKubeletHasSignedForItselfHoldsUpNothing(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for path, refused := range map[string]bool{
		"/var/lib/kubelet/pki/kubelet.crt":                false,
		"/etc/kubernetes/super-admin.conf":                false,
		"/etc/kubernetes/kubelet.conf":                    true, // embedded, although a rotated one lies beside it
		"/var/lib/kubelet/pki/kubelet-client-current.pem": true,
		"/etc/kubernetes/pki/apiserver.crt":               true,
		"/etc/kubernetes/pki/etcd/server.crt":             true,
		"/etc/kubernetes/admin.conf":                      true,
	} {
		t.Run(path, func(t *testing.T) {
			in := PlanInput{Machine: "w1", Spec: controlPlane(), Assignment: controlPlaneTo("v1.36.4"), Facts: controlPlaneFacts("v1.36.3", "2.4.2"), Candidates: candidatesOf([]string{"v1.36.4"}, nil), Now: now}
			in.Facts.Certs = []CertFacts{{Path: path, NotAfter: now.Add(-24 * time.Hour)}}
			p, err := NewPlan(in)
			if refused {
				requireBlocked(t, err, FindingCertificateExpired)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{FindingCertificateExpired}, reasons(p.Findings))
			assert.Equal(t, SeverityWarning, p.Findings[0].Severity)
		})
	}
	restartless := osInput(v1alpha1.Package{Name: "htop"})
	restartless.Now = now
	restartless.Facts.Certs = []CertFacts{{Path: "/etc/kubernetes/pki/apiserver.crt", NotAfter: now.Add(-time.Hour)}}
	assert.Equal(t, []string{FindingCertificateExpired}, reasons(plan(t, restartless).Findings), "nothing is restarted into it")
}
