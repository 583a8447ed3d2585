package install_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/install"
	"github.com/refit-dev/refit/deploy"
)

func TestFinalizersAreTakenOffOnlyInAnAbsentCoordinatorsStead(t *testing.T) {
	slot := v1alpha1.Slot{Machine: "w1", Disruption: v1alpha1.DisruptionDrain, State: v1alpha1.SlotGranted}
	deployment := func(want, have int32) []client.Object {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "refit-system", Name: "refit-coordinator"}}
		d.Spec.Replicas, d.Status.Replicas, d.Status.AvailableReplicas = &want, have, have
		return []client.Object{d}
	}
	for name, tc := range map[string]struct {
		there      []client.Object
		slots      []v1alpha1.Slot
		finalizers []string
		message    string
		left       []string
	}{
		"it is absent": {nil, nil, []string{v1alpha1.FinalizerMachine}, "", nil},
		"it is there": {deployment(2, 2), nil, []string{v1alpha1.FinalizerMachine},
			"left: Machine refit/w1", []string{v1alpha1.FinalizerMachine}},
		"it is scaled to 0": {deployment(0, 0), nil, []string{v1alpha1.FinalizerMachine}, "", nil},
		"its pods have yet to go": {deployment(0, 1), nil, []string{v1alpha1.FinalizerMachine},
			"left: Machine refit/w1", []string{v1alpha1.FinalizerMachine}},
		"it is scaled to 0 and a slot is held": {deployment(0, 0), []v1alpha1.Slot{slot}, []string{v1alpha1.FinalizerMachine},
			"machines in flight: refit/w1", []string{v1alpha1.FinalizerMachine}},
		"it does not come up": {deployment(2, 0), nil, []string{v1alpha1.FinalizerMachine},
			"left: Machine refit/w1", []string{v1alpha1.FinalizerMachine}},
		"a slot is held": {nil, []v1alpha1.Slot{slot}, []string{v1alpha1.FinalizerMachine},
			"machines in flight: refit/w1", []string{v1alpha1.FinalizerMachine}},
		"another's finalizer": {nil, nil, []string{"example.com/other", v1alpha1.FinalizerMachine},
			"left: Machine refit/w1", []string{"example.com/other"}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, clientgoscheme.AddToScheme(scheme))
			require.NoError(t, v1alpha1.AddToScheme(scheme))
			at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "refit", Name: name} }
			m := &v1alpha1.Machine{ObjectMeta: at("w1")}
			m.Finalizers = tc.finalizers
			ledger := &v1alpha1.Ledger{ObjectMeta: at("refit"), Spec: v1alpha1.LedgerSpec{Slots: tc.slots}}
			cl := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.there, m, ledger)...).Build()
			manifests, err := install.Load(deploy.Manifests)
			require.NoError(t, err)

			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var said bytes.Buffer
			err = (&install.Installer{Client: cl, Out: &said}).DeleteData(ctx, manifests)
			assert.Equal(t, name == "it does not come up",
				strings.Contains(said.String(), "kubectl scale deployment -n refit-system refit-coordinator --replicas=0"), said.String())
			var now v1alpha1.Machine
			gone := client.IgnoreNotFound(cl.Get(t.Context(), client.ObjectKeyFromObject(m), &now)) == nil && now.Name == ""
			assert.Equal(t, tc.message == "", gone)
			assert.Equal(t, tc.left, now.Finalizers)
			if tc.message != "" {
				assert.ErrorContains(t, err, tc.message)
				return
			}
			assert.NoError(t, err)
		})
	}
}
