package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// recordedIn says that a host has run a set of versions before: what the wish names, to the
// patch, next to what else runs there now and stays. Of that only the minor counts: it
// decides what goes together, and a distribution moves patches by itself.
func recordedIn(record []v1alpha1.Versions, wish v1alpha1.Versions, seen *v1alpha1.ObservedVersions) bool {
	return slices.ContainsFunc(record, func(r v1alpha1.Versions) bool {
		return recordedKubernetes(string(wish.Kubelet), seen.Kubelet, string(r.Kubelet)) &&
			recordedKubernetes(string(wish.ControlPlane), HostState{Versions: *seen}.control().APIServer, string(r.ControlPlane)) &&
			recordedRuntime(wish.ContainerRuntime, seen.ContainerRuntime, r.ContainerRuntime)
	})
}

// recordedKubernetes: what is not wished for contradicts a record only where both are known.
func recordedKubernetes(wish, seen, recorded string) bool {
	if wish != "" {
		return SameKubernetes(wish, recorded)
	}
	now, known := ParseKubernetes(seen)
	then, recordKnown := ParseKubernetes(recorded)
	return !known || !recordKnown || now.SameMinor(then)
}

func recordedRuntime(wish *v1alpha1.ContainerRuntime, seen *v1alpha1.ObservedRuntime, recorded *v1alpha1.ContainerRuntime) bool {
	if wish != nil && wish.Version != "" {
		return recorded != nil && wish.Name == recorded.Name && SameRuntime(string(wish.Version), string(recorded.Version))
	}
	if recorded == nil {
		return true
	}
	now, known := ParseRuntime(runtimeSeen(seen))
	then, recordKnown := ParseRuntime(string(recorded.Version))
	return !known || !recordKnown || seen.Name == string(recorded.Name) && now.Version.SameMinor(then.Version)
}
