package upgrade

// KubeletFindings tell of a kubelet that does not run where spec wishes for none: with a
// wish its plan or its refusal says so, without one nothing else would.
func (h HostState) KubeletFindings() []Finding {
	seen := h.Versions.Kubelet
	if seen == "" || h.kubeletRuns() || h.Wish.Kubelet != "" || !h.hasKubelet() {
		return nil
	}
	return []Finding{warning(FindingKubeletDown, "the kubelet of %s does not run, or does not say its version (it reports %q, and was last %s), and spec wishes for no other: see why on the host (journalctl -u kubelet); where another release mends it, set spec.versions.kubelet", h.Name, seen, firstOf(h.LastKubelet, "not known"))}
}
