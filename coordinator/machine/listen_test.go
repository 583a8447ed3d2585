package machine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
)

// silent is a host with etcd alone, its Lease and a clock.
type silent struct {
	*testing.T
	r       *Reconciler
	machine *v1alpha1.Machine
	now     time.Time
}

func etcdHost(t *testing.T) *silent {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, coordinationv1.AddToScheme(scheme))
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "refit", Name: "e1", UID: "u"}}
	m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleEtcd}
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	h := &silent{T: t, machine: m, now: time.Date(2030, 1, 7, 12, 0, 0, 0, time.UTC)}
	h.r = &Reconciler{Client: api, Live: api, Now: func() time.Time { return h.now }}
	return h
}

// look is one pass, after a while.
func (h *silent) look(after time.Duration) *scope {
	h.Helper()
	h.now = h.now.Add(after)
	s := &scope{key: types.NamespacedName{Namespace: "refit", Name: "e1"}, read: h.machine.DeepCopy(), machine: h.machine, view: &fleet.Machine{Machine: h.machine}}
	next, err := h.r.listen(context.Background(), s)
	require.NoError(h, err)
	require.Equal(h, goOn, next)
	return s
}

// beat is the agent's renewal, by a clock of its own.
func (h *silent) beat() {
	h.Helper()
	lease := h.lease()
	renewed := metav1.NewMicroTime(h.now.Add(-3 * time.Hour))
	lease.Spec.RenewTime = &renewed
	require.NoError(h, h.r.Client.Update(context.Background(), lease))
}

func (h *silent) lease() *coordinationv1.Lease {
	h.Helper()
	lease := &coordinationv1.Lease{}
	require.NoError(h, h.r.Live.Get(context.Background(), types.NamespacedName{Namespace: "refit", Name: "refit-machine-e1"}, lease))
	return lease
}

func (h *silent) failed() string {
	if f := h.machine.Status.RolloutFailure; f != nil {
		return f.Class
	}
	return ""
}

func TestAHostWithoutANodeIsLostOnceItHasSaidNothingForFiveMinutes(t *testing.T) {
	h := etcdHost(t)
	h.look(0)
	assert.Equal(t, "e1", h.lease().OwnerReferences[0].Name, "the Lease is made for the agent, and ends with the Machine")
	h.look(time.Hour)
	assert.Empty(t, h.failed(), "an agent that has never said anything is still to come")

	h.beat()
	h.look(time.Minute)
	s := h.look(4 * time.Minute)
	assert.Empty(t, h.failed())
	assert.Equal(t, beatPoll, s.requeue, "nothing else tells of one that stays away")
	assert.Equal(t, metav1.ConditionTrue, ready(s).Status)
	s = h.look(time.Minute)
	assert.Equal(t, fleet.ClassUnreachable, h.failed())
	assert.Equal(t, metav1.ConditionUnknown, ready(s).Status)
	assert.Equal(t, status.ReasonNodeUnreachable, ready(s).Reason)
	assert.True(t, (&fleet.Machine{Machine: h.machine}).Silent())
	assert.NotEmpty(t, (&fleet.Machine{Machine: h.machine}).Down())

	h.beat()
	s = h.look(time.Minute)
	assert.Empty(t, h.failed(), "it is back")
	assert.Equal(t, metav1.ConditionTrue, ready(s).Status)
}

func TestACoordinatorThatHasJustBegunTakesNoOldRenewalForANewOne(t *testing.T) {
	h := etcdHost(t)
	h.look(0)
	h.beat()
	h.look(time.Minute)
	h.look(5 * time.Minute)
	require.Equal(t, fleet.ClassUnreachable, h.failed())
	h.r.beats = beats{}
	h.look(time.Minute)
	assert.Equal(t, fleet.ClassUnreachable, h.failed(), "it has seen the same renewal as the one before it")
	h.beat()
	h.look(time.Minute)
	assert.Empty(t, h.failed())
}

func TestAnotherFailureIsNotForgottenBecauseTheHostIsThere(t *testing.T) {
	h := etcdHost(t)
	h.look(0)
	h.beat()
	h.look(time.Minute)
	h.machine.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: fleet.ClassApplyFailed}
	h.beat()
	h.look(time.Minute)
	assert.Equal(t, fleet.ClassApplyFailed, h.failed())
	h.look(10 * time.Minute)
	assert.Equal(t, fleet.ClassApplyFailed, h.failed())
}

func TestAHostWithANodeNeedsNoLease(t *testing.T) {
	h := etcdHost(t)
	h.machine.Spec.Roles = append(h.machine.Spec.Roles, v1alpha1.RoleWorker)
	h.r.Live = nil // nobody is asked
	h.look(0)
}
