package gates_test

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// failedOperation is a machine whose last operation, to v1.37.2, has failed, and that a person
// has asked to try again: no failure counts any more.
func failedOperation(edits ...func(*v1alpha1.Machine)) Edit {
	return Of(func(m *v1alpha1.Machine) {
		m.Status.LastOperation = &v1alpha1.Operation{ID: "g-earlier", State: v1alpha1.OperationFailed}
		target := v1alpha1.Target{Versions: v1alpha1.Versions{Kubelet: "v1.37.2", ControlPlane: "v1.37.2"}}
		m.Status.History = []v1alpha1.HistoryEntry{{ID: "g-earlier", State: v1alpha1.OperationFailed, Target: &target}}
		for _, e := range edits {
			e(m)
		}
	})
}

func rolledBack(m *v1alpha1.Machine) { m.Status.LastOperation.RolledBack = true }

func goesThrough(m *v1alpha1.Machine) { m.Status.LastOperation.State = v1alpha1.OperationSuccessful }

// mended is a machine that a person has brought to what the operation was for, on its way to more.
func mended(m *v1alpha1.Machine) {
	m.Status.Versions.Kubelet = "v1.37.2"
	m.Status.Assignment.Target.Versions = v1alpha1.Versions{Kubelet: "v1.37.3"}
}

func ofUnknownTarget(m *v1alpha1.Machine) { m.Status.History = nil }

func upToDate(m *v1alpha1.Machine) {
	m.Status.Conditions = append(m.Status.Conditions, v1.Condition{Type: v1alpha1.ConditionUpToDate, Status: v1.ConditionTrue, ObservedGeneration: m.Generation})
}

func outOfService(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityOutOfService }

func TestALostMemberHoldsTheOthers(t *testing.T) {
	lost := gates.ReasonControlPlaneUnavailable
	notReady := func(t corev1.ConditionStatus) Edit {
		return func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) { n.Status.Conditions[0].Status = t }
	}
	for name, tc := range map[string]struct {
		role   v1alpha1.Role
		edits  []Edit
		reason string
		says   string
	}{
		"failed halfway, and to be tried again": {plane, []Edit{failedOperation()}, lost, "kubectl refit retry cp2"},
		"failed halfway, and nobody has asked":  {plane, []Edit{failedOperation(), Failed}, lost, "halfway"},
		"failed halfway towards what is lost":   {plane, []Edit{failedOperation(ofUnknownTarget)}, lost, "halfway"},
		"an etcd host that failed halfway":      {v1alpha1.RoleEtcd, []Edit{failedOperation()}, lost, "halfway"},
		"failed and rolled back":                {plane, []Edit{failedOperation(rolledBack)}, "", ""},
		"tried again, and it went through":      {plane, []Edit{failedOperation(goesThrough)}, "", ""},
		"brought there by hand":                 {plane, []Edit{failedOperation(mended)}, "", ""},
		"what its spec wants now":               {plane, []Edit{failedOperation(upToDate)}, "", ""},
		"failed halfway, out of service":        {plane, []Edit{failedOperation(outOfService)}, "", ""},
		"tried again now":                       {plane, []Edit{failedOperation(), InSlot(v1alpha1.DisruptionDrain)}, gates.ReasonControlPlaneBusy, ""},
		"cordoned by someone else":              {plane, []Edit{Cordoned}, lost, "uncordon it first"},
		"cordoned, out of service":              {plane, []Edit{Cordoned, Of(outOfService)}, "", ""},
		"not ready":                             {plane, []Edit{NotReady}, lost, "bring it back"},
		"out of sight":                          {plane, []Edit{notReady(corev1.ConditionUnknown)}, lost, "bring it back"},
		"not ready, out of service":             {plane, []Edit{NotReady, Of(outOfService)}, lost, "bring it back"},
	} {
		t.Run(name, func(t *testing.T) {
			f := New().Deployment("cp", bears(3)).Machine("cp1", "cp", plane).Machine("cp2", "cp", tc.role, tc.edits...).Machine("w1", "", worker).Build()
			v := gates.Check(f, f.Find("cp1"))
			if tc.reason == "" {
				assert.Nil(t, v, "%+v", v)
				return
			}
			require.NotNil(t, v)
			assert.Equal(t, tc.reason, v.Reason)
			assert.Contains(t, v.Message, tc.says)
		})
	}
}

func bears(failures int32) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		threshold := intstr.FromInt32(failures)
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{FailureThreshold: &threshold}}
	}
}

func TestAMemberLeftHalfwayIsTheOneToGo(t *testing.T) {
	f := New().Machine("cp1", "", plane).Machine("cp2", "", plane, failedOperation()).Machine("cp3", "", plane, failedOperation()).Build()
	assert.NotNil(t, gates.Check(f, f.Find("cp1")))
	assert.Nil(t, gates.Check(f, f.Find("cp2")), "two that are left halfway do not wait for each other")
	f.Find("cp2").Hold(&v1alpha1.Slot{Machine: "cp2", Disruption: v1alpha1.DisruptionDrain})
	assert.Equal(t, gates.ReasonControlPlaneBusy, gates.Check(f, f.Find("cp3")).Reason)
}
