package upgrade

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func observedControl(api, others string) *v1alpha1.ObservedControlPlane {
	return &v1alpha1.ObservedControlPlane{APIServer: api, ControllerManager: others, Scheduler: others}
}

func TestUpToDateIsWhatRunsNeverWhatIsWished(t *testing.T) {
	for name, tc := range map[string]struct {
		wish   v1alpha1.Versions
		seen   v1alpha1.ObservedVersions
		reason string
		says   string
	}{
		"the same":                       {wishKubelet("v1.37.2"), v1alpha1.ObservedVersions{Kubelet: "v1.37.2"}, ReasonUpToDate, ""},
		"nothing is wished":              {v1alpha1.Versions{}, v1alpha1.ObservedVersions{Kubelet: "v1.30.0"}, ReasonUpToDate, ""},
		"a vendor suffix":                {wishKubelet("v1.29.6"), v1alpha1.ObservedVersions{Kubelet: "v1.29.6+k3s1"}, ReasonUpToDate, ""},
		"a vendor suffix in the wish":    {wishKubelet("v1.29.6+k3s1"), v1alpha1.ObservedVersions{Kubelet: "v1.29.6-k3s1"}, ReasonUpToDate, ""},
		"a release candidate":            {wishKubelet("v1.37.0"), v1alpha1.ObservedVersions{Kubelet: "v1.37.0-rc.1"}, ReasonOutdated, "v1.37.0-rc.1"},
		"older":                          {wishKubelet("v1.37.2"), v1alpha1.ObservedVersions{Kubelet: "v1.36.3"}, ReasonOutdated, "kubelet runs v1.36.3, wanted v1.37.2"},
		"ahead in its minor":             {wishKubelet("v1.30.4"), v1alpha1.ObservedVersions{Kubelet: "v1.30.5"}, ReasonAheadOfSpec, "newer"},
		"unknown":                        {wishKubelet("v1.37.2"), v1alpha1.ObservedVersions{Kubelet: "27+"}, ReasonVersionUnknown, "27+"},
		"not reported":                   {wishKubelet("v1.37.2"), v1alpha1.ObservedVersions{}, ReasonVersionUnknown, "kubelet"},
		"a scheduler that stayed behind": {wishBoth("v1.37.2"), v1alpha1.ObservedVersions{Kubelet: "v1.37.2", ControlPlane: observedControl("v1.37.2", "v1.36.3")}, ReasonOutdated, "scheduler runs v1.36.3"},
		"no control plane seen":          {wishBoth("v1.37.2"), v1alpha1.ObservedVersions{Kubelet: "v1.37.2"}, ReasonVersionUnknown, "API server"},
		"an old runtime": {
			v1alpha1.Versions{ContainerRuntime: containerdAt("2.0.0")},
			v1alpha1.ObservedVersions{ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Version: "v1.7.23"}}, ReasonOutdated, "containerd runs v1.7.23",
		},
		"a packager's runtime": {
			v1alpha1.Versions{ContainerRuntime: containerdAt("1.6.20")},
			v1alpha1.ObservedVersions{ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Version: "1.6.20~ds1"}}, ReasonUpToDate, "",
		},
		"another runtime": {
			v1alpha1.Versions{ContainerRuntime: containerdAt("1.6.20")},
			v1alpha1.ObservedVersions{ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "cri-o", Version: "1.6.20"}}, ReasonOutdated, "cri-o",
		},
		"a runtime that says nothing": {
			v1alpha1.Versions{ContainerRuntime: containerdAt("1.6.20")},
			v1alpha1.ObservedVersions{ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Text: "containerd://"}}, ReasonVersionUnknown, "containerd",
		},
		"a runtime without a wished version": {
			v1alpha1.Versions{ContainerRuntime: &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeContainerd}},
			v1alpha1.ObservedVersions{ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd"}}, ReasonUpToDate, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.MachineSpec{MachineTemplateSpec: v1alpha1.MachineTemplateSpec{Versions: &tc.wish}}
			ok, reason, message := UpToDate(spec, v1alpha1.MachineStatus{Versions: &tc.seen})
			assert.Equal(t, tc.reason, reason, message)
			assert.Equal(t, tc.reason == ReasonUpToDate, ok)
			assert.Contains(t, message, tc.says)
		})
	}
}

func TestAMachineThatHasNotReportedIsNotUpToDate(t *testing.T) {
	ok, reason, _ := UpToDate(worker(), v1alpha1.MachineStatus{})
	assert.False(t, ok)
	assert.Equal(t, ReasonNotReported, reason)
}

func TestPackagesCountForUpToDate(t *testing.T) {
	spec := worker()
	spec.OS = &v1alpha1.OSSpec{Packages: []v1alpha1.Package{
		{Name: "openssl", Version: "3.0.15-1~deb12u1"}, {Name: "telnet", State: v1alpha1.PackageAbsent}, {Name: "htop"},
	}}
	seen := func(packages ...v1alpha1.ObservedPackage) v1alpha1.MachineStatus {
		return v1alpha1.MachineStatus{Versions: &v1alpha1.ObservedVersions{}, OS: &v1alpha1.ObservedOS{ID: "debian", Packages: packages}}
	}
	ok, _, message := UpToDate(spec, seen(v1alpha1.ObservedPackage{Name: "openssl", Version: "3.0.14-1"}, v1alpha1.ObservedPackage{Name: "telnet", Version: "0.17"}))
	assert.False(t, ok)
	assert.Equal(t, "package openssl is 3.0.14-1, wanted 3.0.15-1~deb12u1; package telnet 0.17 is installed, wanted absent; package htop is absent, wanted present", message)

	ok, _, message = UpToDate(spec, seen(v1alpha1.ObservedPackage{Name: "openssl", Version: "3.0.15-1~deb12u1"}, v1alpha1.ObservedPackage{Name: "telnet"}, v1alpha1.ObservedPackage{Name: "htop", Version: "1"}))
	assert.True(t, ok, message)
}

func TestAWantedRebootCountsForUpToDate(t *testing.T) {
	spec := worker()
	spec.OS = &v1alpha1.OSSpec{Reboot: v1alpha1.RebootIfRequired}
	ok, _, message := UpToDate(spec, v1alpha1.MachineStatus{Versions: &v1alpha1.ObservedVersions{}, OS: &v1alpha1.ObservedOS{RebootRequired: true}})
	assert.False(t, ok)
	assert.Contains(t, message, "reboot")
}

func TestUnsetDrainFieldsHaveTheDocumentedDefaults(t *testing.T) {
	d := DrainDefaults(worker())
	assert.Equal(t, 30*time.Minute, d.Timeout.Duration)
	assert.Equal(t, []string{"Fail", "Evict", "Fail", "Refuse", "Fail"}, []string{d.OnTimeout, d.EmptyDir, d.UnmanagedPods, d.SingleNode, d.OnVolumesAttached})
	assert.Zero(t, d.SkipWaitForDeleteTimeout.Duration)

	spec := worker()
	spec.Drain = &v1alpha1.DrainSpec{Timeout: &metav1.Duration{Duration: time.Minute}, OnTimeout: "Proceed", SkipForMinor: true}
	d = DrainDefaults(spec)
	assert.Equal(t, time.Minute, d.Timeout.Duration)
	assert.Equal(t, "Proceed", d.OnTimeout)
	assert.True(t, d.SkipForMinor)
	assert.Empty(t, spec.Drain.EmptyDir, "the spec itself is left as it was")
}

func TestAControlPlaneThatSpecDoesNotNameIsNotUpToDate(t *testing.T) {
	seen := v1alpha1.MachineStatus{Versions: &v1alpha1.ObservedVersions{Kubelet: "v1.36.3", ControlPlane: observedControl("v1.36.3", "v1.36.3")}}
	ok, reason, message := UpToDate(worker(), seen)
	assert.False(t, ok)
	assert.Equal(t, ReasonRoleMismatch, reason)
	assert.Contains(t, message, "spec.roles has no ControlPlane: add it")
	ok, _, _ = UpToDate(controlPlane(), seen)
	assert.True(t, ok)

	_, err := NewPlan(PlanInput{Machine: "w1", Spec: worker(), Facts: controlPlaneFacts("v1.36.3", "1.7.28")})
	requireBlocked(t, err, ReasonRoleMismatch)
	silent := controlPlaneFacts("v1.36.3", "1.7.28")
	silent.Control = &ControlFacts{Manifests: map[string]string{"kube-apiserver": "latest"}}
	_, err = NewPlan(PlanInput{Machine: "w1", Spec: worker(), Facts: silent})
	requireBlocked(t, err, ReasonRoleMismatch)
}

func TestAPackageThatIsNotReportedIsNotTakenForAbsent(t *testing.T) {
	for name, tc := range map[string]struct {
		pkg  string
		seen []v1alpha1.ObservedPackage
		says string
	}{
		"reported as absent":            {"telnet", []v1alpha1.ObservedPackage{{Name: "telnet"}}, ""},
		"not reported":                  {"telnet", []v1alpha1.ObservedPackage{{Name: "htop"}}, "package telnet is wanted absent, and it is not known whether it is installed"},
		"nothing is reported":           {"telnet", nil, "package telnet is wanted absent, and it is not known whether it is installed"},
		"one that the host needs":       {"openssh-server", []v1alpha1.ObservedPackage{{Name: "openssh-server"}}, "package openssh-server is wanted absent, and the host needs it"},
		"likewise, not looked for":      {"openssh-server", nil, "package openssh-server is wanted absent, and the host needs it"},
		"one that its owner lets go of": {"openssh-server", []v1alpha1.ObservedPackage{{Name: "openssh-server", Version: "1-1", Expendable: true}}, "package openssh-server 1-1 is installed, wanted absent"},
		"likewise, and it is gone":      {"openssh-server", []v1alpha1.ObservedPackage{{Name: "openssh-server", Expendable: true}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := worker()
			spec.OS = &v1alpha1.OSSpec{Packages: []v1alpha1.Package{{Name: tc.pkg, State: v1alpha1.PackageAbsent}}}
			ok, reason, message := UpToDate(spec, v1alpha1.MachineStatus{Versions: &v1alpha1.ObservedVersions{}, OS: &v1alpha1.ObservedOS{ID: "debian", Packages: tc.seen}})
			assert.Equal(t, tc.says == "", ok)
			if tc.says != "" {
				assert.Equal(t, ReasonOutdated, reason)
				assert.Equal(t, tc.says, message)
			}
		})
	}
}
