package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// rebootInput is a host that asks for a reboot, and a wish for it.
func rebootInput(versions ...string) PlanInput {
	in := osInput()
	in.Spec.OS.Reboot = v1alpha1.RebootIfRequired
	in.Facts.Reboot = RebootFacts{Required: true, Versions: versions}
	return in
}

func TestAHostThatAsksForARebootGetsOneForEachReason(t *testing.T) {
	in := rebootInput("libc6 2.36-9", "dbus 1.14")
	p := plan(t, in)
	require.Equal(t, []string{"Preflight", "Reboot", "Verify"}, outline(p))
	assert.Equal(t, "boot-1", p.Steps[2].Expect.BootIDNot, "proven by another boot")
	reason := p.Steps[1].Reason

	in.Facts.Host.BootID, in.Rebooted = "boot-2", []string{reason}
	assert.True(t, new(plan(t, in)).Empty(), "what stays up after the reboot is no reason for the next one")
	in.Facts.Reboot.Versions = []string{"dbus 1.14", "libc6 2.36-9"}
	assert.True(t, new(plan(t, in)).Empty(), "in whatever order it is written")
	in.Facts.Reboot.Versions = []string{"libc6 2.36-10", "dbus 1.14"}
	assert.Len(t, plan(t, in).Steps, 3, "a newer one is another reason")
}

func TestAHostThatDoesNotSayForWhatIsRebootedOnce(t *testing.T) {
	in := rebootInput()
	in.Rebooted = []string{plan(t, in).Steps[1].Reason}
	assert.True(t, new(plan(t, in)).Empty())
}

// Neither a rollout nor the host goes round in circles, and nobody is told that all is well.
func TestARebootThatDidNotHelpIsReportedAndMakesNoHop(t *testing.T) {
	in := rebootInput("libc6 2.36-9")
	in.Rebooted = []string{plan(t, in).Steps[1].Reason}
	fleet, m := strayed("v1.36.3", "1.7.28")
	m.Status.Conditions, m.Spec.OS = nil, in.Spec.OS
	m.Status.OS = &v1alpha1.ObservedOS{ID: "debian", RebootRequired: true}
	fleet.Hosts[1] = StateOf(m, nil, nil)
	a, blocked := NextAssignment(fleet, m)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.OperationReboot, a.Type)

	m.Status.OS.RebootStays = StayingReboot(in.Facts, in.Rebooted)
	fleet.Hosts[1] = StateOf(m, nil, nil)
	_, blocked = NextAssignment(fleet, m)
	require.NotNil(t, blocked)
	assert.Equal(t, ReasonRebootStays, blocked.Reason)
	assert.Contains(t, blocked.Message, "still asks for it: libc6 2.36-9")
	ok, _, _ := UpToDate(m.Spec, m.Status)
	assert.False(t, ok)
	assert.False(t, StateOf(m, nil, nil).OSPending)

	in.Spec.OS.Packages = []v1alpha1.Package{{Name: "htop"}}
	assert.Equal(t, []string{FindingRebootStays}, reasons(plan(t, in).Findings), "and plans for something else say so")
}
