package report

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// drifted says that the host left its spec by itself: it ran what spec wants, the spec
// is the same, no operation of ours came between, and now it runs something else.
// Once said it stays until the host is back, or the spec changes. nil: nothing new.
func drifted(s State, now v1alpha1.MachineStatus) *metav1.Condition {
	asWished, reason, message := upgrade.UpToDate(s.Spec, now)
	before := meta.FindStatusCondition(s.Base.Conditions, v1alpha1.ConditionDrifted)
	sameSpec := before != nil && before.ObservedGeneration == s.Generation
	switch {
	case asWished:
		return condition(v1alpha1.ConditionDrifted, false, "AsWished", "The host runs what spec wants")
	case reason == upgrade.ReasonVersionUnknown:
		return nil // not seen is not drifted
	case !sameSpec, worked(s.Base.LastOperation, now.LastOperation):
		return condition(v1alpha1.ConditionDrifted, false, "NotYetAsWished", "The host has not run what this spec wants")
	case before.Status == metav1.ConditionTrue, before.Reason == "AsWished":
		return condition(v1alpha1.ConditionDrifted, true, reason, message+culprits(s, now))
	}
	return nil
}

// worked says that an operation of ours came between two reports.
func worked(before, now *v1alpha1.Operation) bool {
	return now != nil && !sameState(before, now)
}

// culprits names who changed the packages that are not as spec wants them.
func culprits(s State, now v1alpha1.MachineStatus) string {
	suspects := suspects(s.Spec, now)
	var out strings.Builder
	for _, p := range s.Facts.Packages.Installed {
		if suspects[p.Name] && p.ChangedBy != "" {
			fmt.Fprintf(&out, "; package %s %s came with: %s", p.Name, p.Version, p.ChangedBy)
		}
	}
	return out.String()
}

// suspects are the packages behind what is not as spec wants it.
func suspects(spec v1alpha1.MachineSpec, now v1alpha1.MachineStatus) map[string]bool {
	differs := func(v v1alpha1.Versions, os *v1alpha1.OSSpec) bool {
		same, reason, _ := upgrade.PartlyUpToDate(v1alpha1.MachineTemplateSpec{Versions: &v, OS: os}, now)
		return !same && reason != upgrade.ReasonVersionUnknown
	}
	if now.OS != nil {
		os := *now.OS
		os.Unmet, now.OS = nil, &os // no package is behind these
	}
	out := map[string]bool{}
	if v := spec.Versions; v != nil {
		out["kubelet"] = differs(v1alpha1.Versions{Kubelet: v.Kubelet}, nil)
		runtime := differs(v1alpha1.Versions{ContainerRuntime: v.ContainerRuntime}, nil)
		for _, name := range []string{"containerd", "containerd.io", "cri-o"} {
			out[name] = runtime
		}
	}
	if spec.OS != nil {
		for _, p := range spec.OS.Packages {
			out[p.Name] = out[p.Name] || differs(v1alpha1.Versions{}, &v1alpha1.OSSpec{Packages: []v1alpha1.Package{p}})
		}
	}
	return out
}
