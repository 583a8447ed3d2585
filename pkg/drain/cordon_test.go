package drain_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
)

func nodeWith(unschedulable bool, marker string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, UID: "n", ResourceVersion: "7"}, Spec: corev1.NodeSpec{Unschedulable: unschedulable}}
	if marker != "" {
		n.Annotations = map[string]string{v1alpha1.AnnotationCordonedBy: marker}
	}
	return n
}

func TestACordonIsMarkedOnlyWhenItIsOurs(t *testing.T) {
	for name, tc := range map[string]struct {
		before     *corev1.Node
		want       drain.CordonResult
		wantMarker string
	}{
		"schedulable node":                       {nodeWith(false, ""), drain.CordonResult{}, "g1"},
		"foreign cordon":                         {nodeWith(true, ""), drain.CordonResult{Foreign: true}, ""},
		"our own cordon":                         {nodeWith(true, "g1"), drain.CordonResult{AlreadyOurs: true}, "g1"},
		"cordon of an earlier grant":             {nodeWith(true, "g0"), drain.CordonResult{Previous: "g0"}, "g1"},
		"someone uncordoned it under our marker": {nodeWith(false, "g1"), drain.CordonResult{Uncordoned: true}, "g1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientset(tc.before)
			got, err := drain.Cordon(t.Context(), c, node, "g1", drain.KeepInLoadBalancers)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			n, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, !tc.want.Uncordoned, n.Spec.Unschedulable)
			assert.Equal(t, tc.wantMarker, n.Annotations[v1alpha1.AnnotationCordonedBy])
		})
	}
}

func TestAMarkerIsTakenOffOnlyANodeThatSomeoneElseMadeSchedulable(t *testing.T) {
	for name, tc := range map[string]struct {
		before     *corev1.Node
		disowned   bool
		wantMarker string
	}{
		"made schedulable":               {nodeWith(false, "g1"), true, ""},
		"still cordoned":                 {nodeWith(true, "g1"), false, "g1"},
		"another grant's":                {nodeWith(false, "g2"), false, "g2"},
		"cordoned again by someone else": {nodeWith(true, ""), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientset(tc.before)
			disowned, err := drain.Disown(t.Context(), c, node, "g1")
			require.NoError(t, err)
			assert.Equal(t, tc.disowned, disowned)
			n, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, tc.before.Spec.Unschedulable, n.Spec.Unschedulable)
			assert.Equal(t, tc.wantMarker, n.Annotations[v1alpha1.AnnotationCordonedBy])
		})
	}
}

func TestUncordonTakesBackOnlyOurOwnCordon(t *testing.T) {
	for name, tc := range map[string]struct {
		before            *corev1.Node
		wantUnschedulable bool
		wantMarker        string
	}{
		"ours":                    {nodeWith(true, "g1"), false, ""},
		"foreign":                 {nodeWith(true, ""), true, ""},
		"of another grant":        {nodeWith(true, "g2"), true, "g2"},
		"ours, uncordoned by man": {nodeWith(false, "g1"), false, ""},
		"schedulable":             {nodeWith(false, ""), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientset(tc.before)
			require.NoError(t, drain.Uncordon(t.Context(), c, node, "g1"))
			n, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, tc.wantUnschedulable, n.Spec.Unschedulable)
			assert.Equal(t, tc.wantMarker, n.Annotations[v1alpha1.AnnotationCordonedBy])
		})
	}
}

func TestMarkerAndCordonAreOneConditionalWrite(t *testing.T) {
	c := fake.NewClientset(nodeWith(false, ""))
	conflicts := 1
	c.PrependReactor("patch", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
		if conflicts == 0 {
			return false, nil, nil
		}
		conflicts--
		return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), node, assert.AnError)
	})
	_, err := drain.Cordon(t.Context(), c, node, "g1", drain.KeepInLoadBalancers)
	require.NoError(t, err, "a conflict is read again and decided again")

	patches, reads := 0, 0
	for _, a := range c.Actions() {
		switch a := a.(type) {
		case k8stesting.PatchAction:
			patches++
			var body struct {
				Metadata metav1.ObjectMeta `json:"metadata"`
				Spec     corev1.NodeSpec   `json:"spec"`
			}
			require.NoError(t, json.Unmarshal(a.GetPatch(), &body))
			assert.Equal(t, "7", body.Metadata.ResourceVersion)
			assert.EqualValues(t, "n", body.Metadata.UID)
			assert.Equal(t, "g1", body.Metadata.Annotations[v1alpha1.AnnotationCordonedBy])
			assert.True(t, body.Spec.Unschedulable)
		case k8stesting.GetAction:
			reads++
		}
	}
	assert.Equal(t, 2, patches)
	assert.Equal(t, 2, reads)
}

func TestANodeThatIsNotThereIsAnError(t *testing.T) {
	_, err := drain.Cordon(t.Context(), fake.NewClientset(), node, "g1", drain.KeepInLoadBalancers)
	require.ErrorContains(t, err, "cordoning node host-1")
	assert.True(t, apierrors.IsNotFound(err))
}

func TestPoliciesComeFromTheMachine(t *testing.T) {
	o := drain.OptionsFor(&v1alpha1.DrainSpec{OnTimeout: "Delete", EmptyDir: "Fail", UnmanagedPods: "Evict", Timeout: &metav1.Duration{Duration: 60}})
	assert.Equal(t, drain.ActionDelete, o.OnTimeout)
	assert.Equal(t, drain.ActionFail, o.EmptyDir)
	assert.Equal(t, drain.ActionEvict, o.UnmanagedPods)
	assert.EqualValues(t, 60, o.Timeout)

	o = drain.OptionsFor(nil)
	assert.Equal(t, drain.ActionFail, o.OnTimeout, "never a silent switch to delete")
	assert.Equal(t, drain.ActionEvict, o.EmptyDir)
	assert.Equal(t, drain.ActionFail, o.UnmanagedPods)
	assert.Equal(t, drain.DefaultTimeout, o.Timeout)
}

func TestAForeignCordonThatIsTakenBackIsNotDoneAgainForTheSameOwner(t *testing.T) {
	c := fake.NewClientset(nodeWith(true, ""))
	read := func() *corev1.Node {
		n, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		require.NoError(t, err)
		return n
	}
	cordon := func(owner string) drain.CordonResult {
		out, err := drain.Cordon(t.Context(), c, node, owner, drain.KeepInLoadBalancers)
		require.NoError(t, err)
		return out
	}
	assert.True(t, cordon("g1").Foreign)
	assert.True(t, cordon("g1").Foreign, "as often as it is looked at")
	n := read()
	n.Spec.Unschedulable = false
	_, err := c.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)

	assert.Equal(t, drain.CordonResult{Uncordoned: true}, cordon("g1"))
	assert.False(t, read().Spec.Unschedulable)
	disowned, err := drain.Disown(t.Context(), c, node, "g1")
	require.NoError(t, err)
	assert.True(t, disowned)
	assert.Empty(t, read().Annotations)

	assert.Equal(t, drain.CordonResult{}, cordon("g2"), "another owner begins anew")
	assert.True(t, read().Spec.Unschedulable)
}

func TestACordonThatIsTakenBackWithItsMarkerIsNotDoneAgainForTheSameOwner(t *testing.T) {
	c := fake.NewClientset(nodeWith(false, ""))
	_, err := drain.Cordon(t.Context(), c, node, "g1", drain.ExcludeFromLoadBalancers)
	require.NoError(t, err)
	n, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	require.NoError(t, err)
	n.Spec.Unschedulable = false
	delete(n.Annotations, v1alpha1.AnnotationCordonedBy)
	_, err = c.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)

	got, err := drain.Cordon(t.Context(), c, node, "g1", drain.ExcludeFromLoadBalancers)
	require.NoError(t, err)
	assert.Equal(t, drain.CordonResult{Uncordoned: true}, got)
	disowned, err := drain.Disown(t.Context(), c, node, "g1")
	require.NoError(t, err)
	assert.True(t, disowned)
	n, err = c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	require.NoError(t, err)
	assert.False(t, n.Spec.Unschedulable)
	assert.Empty(t, n.Annotations)
	assert.NotContains(t, n.Labels, corev1.LabelNodeExcludeBalancers)
}

func TestTheMarkOnAForeignCordonGoesAndTheCordonStays(t *testing.T) {
	c := fake.NewClientset(nodeWith(true, ""))
	_, err := drain.Cordon(t.Context(), c, node, "g1", drain.KeepInLoadBalancers)
	require.NoError(t, err)
	require.NoError(t, drain.Uncordon(t.Context(), c, node, "g1"))
	n, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, n.Spec.Unschedulable)
	assert.Empty(t, n.Annotations)
}
