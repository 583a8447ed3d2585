package adopt

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// pool adds what is missing of one pool: its MachineDeployment and the Machines of its hosts.
func (a *adopter) pool(name string, hosts []host) {
	if len(hosts) == 0 {
		return
	}
	existing := a.deployment(name)
	if existing == nil {
		a.result.Deployments = append(a.result.Deployments, a.newDeployment(name, hosts))
	}
	for _, h := range hosts {
		if h.machine != nil {
			continue
		}
		pool := name
		if existing != nil && !runs(h.versions, existing.Spec.Template.Spec.Versions) {
			a.warn("node %s does not run what MachineDeployment %s wishes: adopted outside of it; label the Machine %s=%s to have it upgraded", h.name, name, v1alpha1.LabelPool, name)
			pool = ""
		}
		a.result.Machines = append(a.result.Machines, a.machine(h, pool))
	}
}

func (a *adopter) deployment(name string) *v1alpha1.MachineDeployment {
	for i := range a.cluster.Deployments {
		if d := &a.cluster.Deployments[i]; d.Name == name {
			return d
		}
	}
	return nil
}

func (a *adopter) newDeployment(name string, hosts []host) v1alpha1.MachineDeployment {
	return v1alpha1.MachineDeployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MachineDeployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: a.namespace},
		Spec: v1alpha1.MachineDeploymentSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelPool: name}},
			Template: v1alpha1.MachineTemplate{Spec: v1alpha1.MachineTemplateSpec{Versions: a.shared(name, hosts)}},
		},
	}
}

// shared are the versions that all hosts of a pool run. A version in which they
// differ is left out: no host is asked to change.
func (a *adopter) shared(pool string, hosts []host) *v1alpha1.Versions {
	v := &v1alpha1.Versions{
		Kubelet:      common(a, pool, "kubelet", hosts, func(h host) v1alpha1.KubernetesVersion { return h.versions.Kubelet }),
		ControlPlane: common(a, pool, "control plane", hosts, func(h host) v1alpha1.KubernetesVersion { return h.versions.ControlPlane }),
	}
	runtime := common(a, pool, "container runtime", hosts, func(h host) v1alpha1.ContainerRuntime {
		if h.versions.ContainerRuntime == nil {
			return v1alpha1.ContainerRuntime{}
		}
		return *h.versions.ContainerRuntime
	})
	if runtime.Name != "" {
		v.ContainerRuntime = &runtime
	}
	if v.Kubelet == "" && v.ControlPlane == "" && v.ContainerRuntime == nil {
		return nil
	}
	return v
}

func common[T comparable](a *adopter, pool, what string, hosts []host, of func(host) T) T {
	byVersion := map[T][]string{}
	for _, h := range hosts {
		byVersion[of(h)] = append(byVersion[of(h)], h.name)
	}
	if len(byVersion) == 1 {
		return of(hosts[0])
	}
	a.warn("pool %s: the machines do not run the same %s (%s): left out of its template, so nothing is asked of them; set it to bring them together", pool, what, list(byVersion))
	var none T
	return none
}

func list[T comparable](byVersion map[T][]string) string {
	parts := make([]string, 0, len(byVersion))
	for version, names := range byVersion {
		parts = append(parts, fmt.Sprintf("%s: %s", text(version), strings.Join(names, ", ")))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

func text(version any) string {
	if r, ok := version.(v1alpha1.ContainerRuntime); ok {
		version = strings.TrimSpace(string(r.Name) + " " + string(r.Version))
	}
	if s := fmt.Sprint(version); s != "" {
		return s
	}
	return v1alpha1.Unknown
}

// runs says whether a host runs what a template wishes, where it wishes anything.
func runs(have v1alpha1.Versions, wish *v1alpha1.Versions) bool {
	if wish == nil {
		return true
	}
	if wish.Kubelet != "" && !upgrade.SameKubernetes(string(have.Kubelet), string(wish.Kubelet)) {
		return false
	}
	if wish.ControlPlane != "" && !upgrade.SameKubernetes(string(have.ControlPlane), string(wish.ControlPlane)) {
		return false
	}
	if wish.ContainerRuntime == nil || wish.ContainerRuntime.Version == "" {
		return true
	}
	r := have.ContainerRuntime
	return r != nil && r.Name == wish.ContainerRuntime.Name && upgrade.SameRuntime(string(r.Version), string(wish.ContainerRuntime.Version))
}
