package upgrade

import "github.com/refit-dev/refit/api/v1alpha1"

// ride adds what goes along with the last window of a machine. A runtime that does not
// say what it is holds the whole window: unknown is not older than anything.
func (n *next) ride() *Blocked {
	if r := n.wish.ContainerRuntime; r != nil && r.Version != "" && !runtimeAt(n.host.Versions.ContainerRuntime, r) {
		if err := n.host.runtimeMovable(r); err != nil {
			return err
		}
		n.target.ContainerRuntime = r.DeepCopy()
	}
	if err := n.etcd(); err != nil {
		return err
	}
	if !n.last {
		return nil // etcd passes through a minor: what else is pending goes with the last one
	}
	n.target.OS = n.host.OSPending
	n.target.Certificates = n.host.RenewalDue && n.target.ControlPlane == "" // kubeadm upgrade renews them
	return nil
}

func runtimeAt(seen *v1alpha1.ObservedRuntime, want *v1alpha1.ContainerRuntime) bool {
	return seen != nil && seen.Name == string(want.Name) && SameRuntime(runtimeSeen(seen), string(want.Version))
}

func runtimeSeen(seen *v1alpha1.ObservedRuntime) string {
	if seen == nil {
		return ""
	}
	return firstOf(seen.Version, seen.Text)
}

func runtimeKnown(text string) bool {
	_, ok := ParseRuntime(text)
	return ok
}
