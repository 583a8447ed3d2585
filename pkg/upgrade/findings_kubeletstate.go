package upgrade

import "strings"

// statePolicies are the settings that a state file of the kubelet must agree with: the
// name of the file, the field of its configuration, the flag, and what holds when neither is set.
var statePolicies = []struct{ file, field, flag, unset string }{
	{"/cpu_manager_state", "cpuManagerPolicy", "cpu-manager-policy", "none"},
	{"/memory_manager_state", "memoryManagerPolicy", "memory-manager-policy", "None"},
}

// kubeletState finds what a kubelet kept and would not start again on: a file that was
// cut short, or one that was written under another policy than the one it is told now.
func kubeletState(p *planner) []Finding {
	k := p.in.Facts.Kubelet
	if k == nil || !p.restarts() {
		return nil
	}
	var out []Finding
	for _, state := range k.State {
		if state.Broken != "" {
			out = append(out, failure(FindingKubeletState, "%s is damaged (%s), and the kubelet would not start again with it: drain the node, stop the kubelet, move the file aside and start the kubelet, then retry", state.Path, state.Broken))
			continue
		}
		if want := policyFor(k, state.Path); want != "" && state.Policy != "" && state.Policy != want {
			out = append(out, failure(FindingKubeletState, "%s was written under policy %q and the kubelet is told %q, so it would not start again: drain the node, stop the kubelet, move the file aside and start the kubelet, then retry", state.Path, state.Policy, want))
		}
	}
	return out
}

// policyFor is the policy that the kubelet is told for a state file; "" when that is not known.
func policyFor(k *ComponentFacts, path string) string {
	for _, s := range statePolicies {
		if !strings.HasSuffix(path, s.file) {
			continue
		}
		if set := flagValue(k, s.flag); set != "" {
			return set
		}
		if set, _ := k.Configuration[s.field].(string); set != "" {
			return set
		}
		if k.Configuration != nil && flagValue(k, "config-dir") == "" {
			return s.unset
		}
	}
	return ""
}
