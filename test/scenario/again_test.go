package scenario

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// at is a machine that runs and is to run these versions of Kubernetes, with the containerd that goes with them.
func at(runs, wants Wish) v1alpha1.Machine {
	m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	m.Spec.Versions = &v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(wants.Kubernetes)}
	m.Status.Versions = &v1alpha1.ObservedVersions{
		Kubelet: runs.Kubernetes, ContainerRuntime: &v1alpha1.ObservedRuntime{Version: runs.Containerd}}
	m.Status.Phase = v1alpha1.PhaseReady
	if runs == wants {
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionTrue}}
	}
	return m
}

func TestAFleetIsTakenThroughTheDemoOnce(t *testing.T) {
	silent := at(From, From)
	silent.Status = v1alpha1.MachineStatus{}
	for name, tc := range map[string]struct {
		machines []v1alpha1.Machine
		says     string
	}{
		"no machines yet":               {nil, ""},
		"adopted":                       {[]v1alpha1.Machine{at(From, From), silent}, ""},
		"upgraded":                      {[]v1alpha1.Machine{at(To, To), at(To, To)}, "already upgraded"},
		"edited, and nothing moved":     {[]v1alpha1.Machine{at(From, To)}, "in the middle of an earlier run"},
		"one of two upgraded":           {[]v1alpha1.Machine{at(To, To), at(From, To)}, "worker-1 Ready"},
		"upgraded, and the wish undone": {[]v1alpha1.Machine{at(To, From)}, "in the middle of an earlier run"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fresh(tc.machines)
			if tc.says == "" {
				assert.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
			assert.ErrorContains(t, err, "take it down first")
		})
	}
}

// lister answers lists of Machines, and nothing else.
type lister struct {
	client.WithWatch
	list func(ctx context.Context, into *v1alpha1.MachineList) error
}

func (l lister) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
	return l.list(ctx, into.(*v1alpha1.MachineList))
}

func TestAClusterWithoutRefitIsFresh(t *testing.T) {
	answer := error(&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Machine"}})
	e := &Env{Out: io.Discard, Client: lister{list: func(context.Context, *v1alpha1.MachineList) error { return answer }}}
	require.NoError(t, e.Fresh(t.Context()))
	answer = errors.New("no answer")
	require.ErrorContains(t, e.Fresh(t.Context()), "no answer")
}

// A list that is cut off by the end of the time has no machines in it.
func TestAFollowerThatRunsOutOfTimeTellsWhatItSawLast(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	calls := 0
	e := &Env{Out: io.Discard, Client: lister{list: func(ctx context.Context, into *v1alpha1.MachineList) error {
		if calls++; calls > 1 {
			cancel()
			return ctx.Err()
		}
		into.Items = []v1alpha1.Machine{at(To, From)}
		return nil
	}}}
	err := e.Follow(ctx, AllAt(From), func(Change) {})
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "machines: worker-1 Ready")
}
