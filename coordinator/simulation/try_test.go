package simulation

import (
	"context"
	"fmt"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTry(t *testing.T) {
	d := v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers", Namespace: "refit"}}
	d.Spec.Selector.MatchLabels = map[string]string{"pool": "workers"}
	d.Spec.Template.Spec.Versions = &v1alpha1.Versions{Kubelet: "v1.37.2"}
	s := Scenario{Namespace: "refit", Deployments: []v1alpha1.MachineDeployment{d}}
	s.Spec.Machines = []Generator{
		{Name: "cp", Count: 3, Roles: []v1alpha1.Role{"ControlPlane"}, Versions: v1alpha1.Versions{Kubelet: "v1.35.3", ControlPlane: "v1.35.3"}, Wish: &v1alpha1.Versions{Kubelet: "v1.37.2", ControlPlane: "v1.37.2"}},
		{Name: "w", Count: 3, Labels: map[string]string{"pool": "workers"}, Versions: v1alpha1.Versions{Kubelet: "v1.35.3"}},
	}
	e, err := New(s, func(e Entry) { fmt.Println(e.Time.Sub(DefaultStart), e.Action, e.Machine, e.Reason, e.Message) })
	require.NoError(t, err)
	sum, err := e.Run(context.Background())
	require.NoError(t, err)
	fmt.Printf("%+v\n", sum)
}
