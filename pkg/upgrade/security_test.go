package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// secured is a host with security updates, and a wish for them.
func secured(updates ...Candidate) PlanInput {
	in := osInput()
	in.Spec.OS.SecurityUpdates, in.Security, in.SecurityKnown = v1alpha1.SecurityUpdatesApply, updates, true
	return in
}

func update(name, from, to string) Candidate {
	c := candidate(name, to, "http://deb.example/debian-security")
	c.From = from
	return c
}

func TestSecurityUpdatesAreNamedExactlyAndGoInOneTransaction(t *testing.T) {
	in := secured(update("openssl", "3.0.14-1", "3.0.16-1"), update("libc-bin", "2.36-1", "2.36-2"))
	in.Spec.OS.Packages = []v1alpha1.Package{{Name: "htop"}}
	p := plan(t, in)
	assert.Equal(t, []string{"Preflight", "InstallPackages htop=3.2.2-2 libc-bin=2.36-2 openssl=3.0.16-1", "Verify"}, outline(p))
	for _, c := range p.Stage.Packages {
		assert.NotEmpty(t, c.SHA256)
		assert.NotEmpty(t, c.URI)
	}
	again := in
	again.Security = []Candidate{update("openssl", "3.0.14-1", "3.0.17-1")}
	assert.NotEqual(t, p.Hash, func() string { p := plan(t, again); return p.Hash }(), "another version is another plan")
}

func TestASecurityUpdateOfTheKernelBringsItsReboot(t *testing.T) {
	in := secured(update("linux-image-amd64", "6.1.30", "6.1.31"), update("linux-image-6.1.0-31-amd64", "", "6.1.31"))
	assert.Equal(t, v1alpha1.DisruptionReboot, plan(t, in).Disruption)
	in.Spec.OS.Reboot = v1alpha1.RebootNever
	p := plan(t, in)
	assert.Equal(t, v1alpha1.DisruptionNone, p.Disruption)
	assert.Contains(t, reasons(p.Findings), FindingRebootNotAllowed)
}

// What has a field or an entry of its own moves by that alone, whatever a host offers.
func TestSecurityUpdatesTouchNothingThatSpecNamesOtherwise(t *testing.T) {
	in := secured(update("containerd", "1.7.28-1", "1.7.29-1"), update("runc", "1.1", "1.2"), update("kubelet", "1.36.3-1.1", "1.36.4-1.1"), update("openssl", "3.0.14-1", "3.0.16-1"))
	in.Spec.OS.Packages = []v1alpha1.Package{{Name: "openssl", Version: "3.0.14-1"}}
	assert.True(t, new(plan(t, in)).Empty())
	assert.Subset(t, SecurityRequest(in.Spec).Packages, []string{"containerd", "kubelet", "openssl", "runc"}, "and is not even asked for")
}

func TestSecurityUpdatesNeedAWishAndTheLastWindow(t *testing.T) {
	in := secured(update("openssl", "3.0.14-1", "3.0.16-1"))
	in.Assignment.Target.OS = false
	assert.True(t, new(plan(t, in)).Empty())
	in.Assignment.Target.OS = true
	in.Spec.OS.SecurityUpdates = v1alpha1.SecurityUpdatesNone
	assert.True(t, new(plan(t, in)).Empty())
}

func TestAHeldSecurityUpdateIsLeftOutAndTold(t *testing.T) {
	held := update("bash", "5", "6")
	held.Held = true
	p := plan(t, secured(held, update("openssl", "3.0.14-1", "3.0.16-1")))
	assert.Equal(t, []string{"Preflight", "InstallPackages openssl=3.0.16-1", "Verify"}, outline(p))
	require.Equal(t, []string{FindingSecurityUpdateHeld}, reasons(p.Findings))
	assert.Contains(t, p.Findings[0].Message, "bash 6")
}

func TestAPlanThatIsMadeElsewhereSaysThatItKnowsNoSecurityUpdates(t *testing.T) {
	in := secured()
	in.SecurityKnown = false
	in.Spec.OS.Packages = []v1alpha1.Package{{Name: "htop"}}
	assert.Equal(t, []string{FindingSecurityUpdatesUnknown}, reasons(plan(t, in).Findings))
}

func TestWhatIsInstalledByNowIsPendingNoMore(t *testing.T) {
	held := update("bash", "5", "6")
	held.Held = true
	updates := []Candidate{update("openssl", "3.0.14-1", "3.0.16-1"), held, update("new-kernel", "", "1"), update("curl", "7.88", "7.89")}
	facts := &Facts{Packages: PackageFacts{Manager: "apt", Installed: []InstalledPackage{{Name: "openssl", Version: "3.0.16-1"}, {Name: "bash", Version: "5"}}}}
	pending, kept := PendingSecurityUpdates(updates, facts)
	assert.Equal(t, "curl 7.88 to 7.89", NameUpdates(pending), "what was not looked at counts as it was")
	assert.Equal(t, "bash 5 to 6", NameUpdates(kept))
	pending, _ = PendingSecurityUpdates(updates, nil)
	assert.Len(t, pending, 2)
}

func TestPendingSecurityUpdatesAreOutdatedOnlyWhereTheyAreWished(t *testing.T) {
	for name, tc := range map[string]struct {
		wish   v1alpha1.SecurityUpdates
		status metav1.ConditionStatus
		want   bool
	}{
		"pending and wished":  {v1alpha1.SecurityUpdatesApply, metav1.ConditionTrue, false},
		"none is pending":     {v1alpha1.SecurityUpdatesApply, metav1.ConditionFalse, true},
		"nobody has looked":   {v1alpha1.SecurityUpdatesApply, metav1.ConditionUnknown, true},
		"pending, not wished": {v1alpha1.SecurityUpdatesNone, metav1.ConditionTrue, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := secured()
			in.Spec.OS.SecurityUpdates = tc.wish
			m := &v1alpha1.Machine{Spec: in.Spec, Status: reported(in)}
			m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSecurityUpdatesPending, Status: tc.status, Message: "openssl 1 to 2"}}
			ok, _, message := UpToDate(m.Spec, m.Status)
			assert.Equal(t, tc.want, ok, message)
			assert.Equal(t, !tc.want, StateOf(m, nil, nil).OSPending, "and makes a hop")
		})
	}
}
