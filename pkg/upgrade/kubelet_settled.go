package upgrade

import (
	"encoding/json"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
)

// SettledKubelet is what a host reports of its kubelet's configuration once the spec's is in
// effect, nil where the spec has none.
func SettledKubelet(spec v1alpha1.MachineSpec) (*v1alpha1.ObservedKubelet, error) {
	wish, err := wishOf(spec)
	if err != nil || wish.empty() {
		return nil, err
	}
	raw, err := json.Marshal(wish.Configuration)
	if err != nil {
		return nil, fmt.Errorf("encoding spec.kubelet.configuration: %w", err)
	}
	return &v1alpha1.ObservedKubelet{
		Configuration: &runtime.RawExtension{Raw: raw}, DropIn: wish.digest(), UnitDropIn: UnitDropInAsNeeded,
	}, nil
}
