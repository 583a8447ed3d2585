package scenario

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Fresh says that the fleet can still be taken from From to To: that no earlier run has
// changed what its machines run or are to run.
func (e *Env) Fresh(ctx context.Context) error {
	machines, err := e.Machines(ctx)
	if meta.IsNoMatchError(err) { // Refit is not installed yet
		return nil
	}
	if err != nil {
		return err
	}
	return fresh(machines)
}

func fresh(machines []v1alpha1.Machine) error {
	if done, err := AllAt(To)(machines); done && err == nil {
		return fmt.Errorf("the fleet is up and already upgraded to %s: take it down first for another run, or play with it", To.Kubernetes)
	}
	for i := range machines {
		if m := &machines[i]; !beganAt(m, From) {
			return fmt.Errorf("the fleet is up and in the middle of an earlier run: watch it end with kubectl refit status, or take it down first; machines: %s",
				summarise(machines))
		}
	}
	return nil
}

// beganAt says that what the machine runs and is to run is the wish, as far as either is known.
func beganAt(m *v1alpha1.Machine, w Wish) bool {
	if v := m.Status.Versions; v != nil && v.Kubelet != "" && v.Kubelet != v1alpha1.Unknown && v.Kubelet != w.Kubernetes {
		return false
	}
	v := m.Spec.Versions
	return v == nil || v.Kubelet == "" || string(v.Kubelet) == w.Kubernetes
}
