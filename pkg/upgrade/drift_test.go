package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/hostpolicy"
)

// strayed is a worker that was at v1.36.3 and that somebody brought somewhere else, in a fleet of one control plane.
func strayed(kubelet, runtime string) (Fleet, *v1alpha1.Machine) {
	m := &v1alpha1.Machine{Spec: worker()}
	m.Name, m.Generation = "w1", 3
	wish := v1alpha1.Versions{Kubelet: "v1.36.3", ContainerRuntime: containerdAt("1.7.28")}
	m.Spec.Versions = &wish
	m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: kubelet, ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Version: runtime}}
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDrifted, Status: metav1.ConditionTrue, ObservedGeneration: 3, Message: "somebody was here"}}
	m.Status.History = []v1alpha1.HistoryEntry{{ID: "g", State: v1alpha1.OperationSuccessful, From: &wish}}
	cp := &v1alpha1.Machine{Spec: controlPlane()}
	cp.Name = "cp1"
	cp.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: "v1.37.2", ControlPlane: observedControl("v1.37.2", "v1.37.2")}
	return Fleet{Hosts: []HostState{StateOf(cp, nil, nil), StateOf(m, nil, nil)}}, m
}

func TestDriftIsRepairedUnderAnAssignmentOfItsOwnKind(t *testing.T) {
	fleet, m := strayed("v1.35.1", "1.7.28")
	a, blocked := NextAssignment(fleet, m)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.OperationRepair, a.Type)
	assert.Equal(t, v1alpha1.KubernetesVersion("v1.36.3"), a.Target.Kubelet)
}

func TestDriftIsOnlyReportedWhereThePolicySaysSo(t *testing.T) {
	fleet, m := strayed("v1.35.1", "1.7.28")
	m.Spec.DriftPolicy = v1alpha1.DriftReport
	_, blocked := NextAssignment(fleet, m)
	require.NotNil(t, blocked)
	assert.Equal(t, ReasonDriftReported, blocked.Reason)
	assert.Contains(t, blocked.Message, "somebody was here")
	assert.False(t, blocked.Terminal, "the host may come back")

	m.Generation = 4
	a, blocked := NextAssignment(fleet, m)
	require.Nil(t, blocked, "another spec is another wish")
	assert.Equal(t, v1alpha1.OperationUpgrade, a.Type)
}

// The host has run v1.36.3 before, which would permit an undo; nobody asked for one.
func TestAKubeletThatIsAheadIsNotTakenBackSilently(t *testing.T) {
	fleet, m := strayed("v1.36.4", "1.7.28")
	_, blocked := NextAssignment(fleet, m)
	require.NotNil(t, blocked)
	assert.Equal(t, ReasonAheadOfSpec, blocked.Reason)
	assert.Contains(t, blocked.Message, "v1.36.4, newer than the wanted v1.36.3")

	fleet, m = strayed("v1.36.4", "1.7.27")
	a, blocked := NextAssignment(fleet, m)
	require.Nil(t, blocked, "what else has drifted is repaired")
	assert.Empty(t, a.Target.Kubelet)
	assert.Equal(t, containerdAt("1.7.28"), a.Target.ContainerRuntime)

	fleet, m = strayed("v1.36.4", "1.7.28")
	m.Status.Conditions = nil
	a, blocked = NextAssignment(fleet, m)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.KubernetesVersion("v1.36.3"), a.Target.Kubelet, "a spec that goes back is an undo")
}

// kept is a host on which Refit wrote a source and set holds.
func keptHost() PlanInput {
	in := osInput()
	in.Kept.Take([]Step{
		{Kind: StepSwitchSource, Source: &SourceChange{Name: "kubernetes", File: "/etc/apt/sources.list.d/k8s.list", To: "http://mirror.corp/v1.36/deb/"}},
		{Kind: StepHoldPackages, Packages: []PackageChange{{Name: "kubelet"}, {Name: "kubeadm"}}},
	})
	in.Spec.PackageSources = []v1alpha1.PackageSource{{Name: "kubernetes", URI: "http://mirror.corp/{minor}/deb/", Suites: []v1alpha1.SourceWord{"/"}, SignedBy: "k8s"}}
	in.Facts.Packages.Sources[1].URI = "http://mirror.corp/v1.36/deb/"
	in.Facts.Policy = allowing(hostpolicy.Sources{Allow: []string{"mirror.corp"}, New: true, Keyrings: []string{"k8s"}})
	return in
}

func TestWhatRefitLeftIsKept(t *testing.T) {
	in := keptHost()
	assert.Empty(t, in.Kept.Unmet(in.Facts, in.Spec))
	assert.True(t, new(plan(t, in)).Empty())

	in.Facts.Packages.Sources[1].URI = "http://evil.example/v1.36/deb/"
	in.Facts.Packages.Holds = []string{"kubectl", "kubelet"}
	assert.Equal(t, []string{
		"package source kubernetes in /etc/apt/sources.list.d/k8s.list is http://evil.example/v1.36/deb/, wanted http://mirror.corp/v1.36/deb/",
		"kubeadm not on hold, wanted as Refit left it",
	}, in.Kept.Unmet(in.Facts, in.Spec))
	p := plan(t, in)
	assert.Equal(t, []string{"Preflight", "SwitchSource http://mirror.corp/v1.36/deb/", "HoldPackages kubeadm", "Verify"}, outline(p))
	assert.Equal(t, v1alpha1.DisruptionNone, p.Disruption)

	status := reported(in)
	status.OS.Unmet = in.Kept.Unmet(in.Facts, in.Spec)
	m := &v1alpha1.Machine{Spec: in.Spec, Status: status}
	m.Spec.OS = nil
	ok, _, message := UpToDate(m.Spec, m.Status)
	assert.False(t, ok)
	assert.Contains(t, message, "evil.example")
	assert.True(t, StateOf(m, nil, nil).OSPending, "and makes a hop")
}

func TestASourceThatIsGoneIsWrittenAgain(t *testing.T) {
	in := keptHost()
	in.Facts.Packages.Sources = in.Facts.Packages.Sources[:1]
	assert.Contains(t, outline(plan(t, in)), "SwitchSource http://mirror.corp/v1.36/deb/")
}

// What Refit never set is the owner's, and stays as it is.
func TestWhatRefitDidNotLeaveIsTheOwners(t *testing.T) {
	in := keptHost()
	in.Kept = Kept{}
	in.Facts.Packages.Holds, in.Facts.Packages.Sources[1].URI = nil, "http://other.example/deb/"
	assert.Empty(t, in.Kept.Unmet(in.Facts, in.Spec))
	assert.True(t, new(plan(t, in)).Empty())

	in = keptHost()
	in.Facts.Packages.Sources[1].URI = "http://other.example/deb/"
	in.Spec.PackageSources = nil
	assert.Empty(t, in.Kept.Unmet(in.Facts, in.Spec), "a source that spec does not name is nobody's wish")
}

// kubeadm moves with the control plane, before the kubelet: the source is that of either.
func TestTheSourceOfAMinorInBetweenIsNoDrift(t *testing.T) {
	in := keptHost()
	for i, p := range in.Facts.Packages.Installed {
		if p.Name == "kubeadm" {
			in.Facts.Packages.Installed[i].Version = "1.37.2-1.1"
		}
	}
	assert.Empty(t, in.Kept.Unmet(in.Facts, in.Spec))
	in.Facts.Packages.Sources[1].URI = "http://mirror.corp/v1.37/deb/"
	assert.Empty(t, in.Kept.Unmet(in.Facts, in.Spec))
	in.Facts.Packages.Sources[1].URI = "http://mirror.corp/v1.35/deb/"
	assert.NotEmpty(t, in.Kept.Unmet(in.Facts, in.Spec))
}

func TestAHostWithADropInIsJudgedByPartsOfItsSpecToo(t *testing.T) {
	in := configured(t, "{maxPods: 200}")
	in.Facts = carryOut(t, in.Facts, plan(t, in))
	in.Spec.OS = &v1alpha1.OSSpec{}
	m := &v1alpha1.Machine{Spec: in.Spec, Status: reported(in)}
	assert.False(t, StateOf(m, nil, nil).OSPending, "a drop-in that spec wants is nothing for spec.os")
	ok, _, message := PartlyUpToDate(v1alpha1.MachineTemplateSpec{Versions: &v1alpha1.Versions{Kubelet: "v1.36.3"}}, m.Status)
	assert.True(t, ok, message)
}
