package upgrade

// SkewFindings say where a kubelet is now outside of what its API servers support,
// whether anything is wished for or not. What is not known is said elsewhere.
func (v *View) SkewFindings(host HostState) []Finding {
	if !host.hasKubelet() {
		return nil
	}
	kubelet, ok := ParseKubernetes(host.Versions.Kubelet)
	api, err := v.apiServers(host.Name, Version{})
	if !ok || err != nil {
		return nil
	}
	behind := api.max.MinorsAhead(kubelet)
	switch {
	case kubelet.MinorsAhead(api.min) > 0:
		return []Finding{warning(FindingSkewViolated, "kubelet %s on %s is newer than the oldest API server %s, which Kubernetes does not support: bring the control plane to %s, with spec.versions.controlPlane of its Machines", kubelet.Raw(), host.Name, api.min.Raw(), kubelet)}
	case behind > kubeletSkew(kubelet):
		return []Finding{warning(FindingSkewViolated, "kubelet %s on %s is %d minors behind the newest API server %s, of which Kubernetes supports %d: bring the kubelet forward, with spec.versions.kubelet", kubelet.Raw(), host.Name, behind, api.max.Raw(), kubeletSkew(kubelet))}
	}
	return nil
}

// instead is what to do about a kubelet that may not go back: one that is ahead of its
// API servers stays so, whatever is set for it.
func (v *View) instead(host string, kubelet Version) string {
	if api, err := v.apiServers(host, Version{}); err == nil && kubelet.MinorsAhead(api.min) > 0 {
		return "this kubelet is newer than the oldest API server " + api.min.Raw() + ", so bring the control plane to " + kubelet.String() +
			" with spec.versions.controlPlane of its Machines, and set spec.versions.kubelet to " + kubelet.String()
	}
	return "set spec.versions.kubelet to " + kubelet.String() + " or newer"
}
