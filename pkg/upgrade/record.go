package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// recordedIn says that a set of versions was run before: only what the wish names is compared.
func recordedIn(record []v1alpha1.Versions, wish v1alpha1.Versions) bool {
	return slices.ContainsFunc(record, func(r v1alpha1.Versions) bool {
		return (wish.Kubelet == "" || SameKubernetes(string(wish.Kubelet), string(r.Kubelet))) &&
			(wish.ControlPlane == "" || SameKubernetes(string(wish.ControlPlane), string(r.ControlPlane))) &&
			(wish.ContainerRuntime == nil || wish.ContainerRuntime.Version == "" || sameRuntimeWish(wish.ContainerRuntime, r.ContainerRuntime))
	})
}

func sameRuntimeWish(a, b *v1alpha1.ContainerRuntime) bool {
	return b != nil && a.Name == b.Name && SameRuntime(string(a.Version), string(b.Version))
}
