package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// setGate is a feature gate that a component is told, and by what.
type setGate struct{ gate, value, where string }

// removedGates finds feature gates that the target no longer knows, or has locked to
// another value: a component that is told one of either does not start.
func removedGates(p *planner) []Finding {
	var out []Finding
	if k, next := p.in.Facts.Kubelet, p.kubeletComing(); k != nil && next.Known() {
		for _, g := range kubeletGates(k) {
			out = append(out, g.judge(next.Version, "the kubelet", "a kubeadm cluster also has it in the ConfigMap kubelet-config", next.why())...)
		}
	}
	if control := p.in.Facts.Control; control != nil && p.want.controlPlaneChanges {
		for _, g := range manifestGates(control) {
			out = append(out, g.judge(p.want.controlPlane, "it", "kubeadm writes it anew from extraArgs in the ConfigMap kubeadm-config of kube-system", "")...)
		}
	}
	return out
}

func (g setGate) judge(target Version, who, also, why string) []Finding {
	if minor, removed := goneBy(featureGatesRemoved, g.gate, target); removed {
		return []Finding{failure(FindingGateRemoved, "%s sets the feature gate %s, which does not exist from v1.%d on, so %s would not start: remove it there (%s), then retry%s", g.where, g.gate, minor, who, also, why)}
	}
	locked := ""
	if _, on := goneBy(featureGatesLockedOn, g.gate, target); on {
		locked = "true"
	}
	if _, off := goneBy(featureGatesLockedOff, g.gate, target); off {
		locked = "false"
	}
	if locked == "" || !strings.EqualFold(g.value, "true") && !strings.EqualFold(g.value, "false") || strings.EqualFold(g.value, locked) {
		return nil
	}
	return []Finding{failure(FindingGateLocked, "%s sets the feature gate %s to %s, which %s has locked to %s, so %s would not start: remove it there (%s), then retry%s", g.where, g.gate, g.value, target.Minor(), locked, who, also, why)}
}

// kubeletGates are those of its configuration and of its flags, sorted.
func kubeletGates(k *ComponentFacts) []setGate {
	var out []setGate
	if gates, ok := k.Configuration["featureGates"].(map[string]any); ok {
		for _, gate := range slices.Sorted(maps.Keys(gates)) {
			out = append(out, setGate{gate, fmt.Sprint(gates[gate]), "the kubelet's configuration"})
		}
	}
	for _, path := range sortedKeys(k.FlagSources) {
		for _, pair := range gatesIn(k.FlagSources[path]) {
			gate, value, _ := strings.Cut(pair, "=")
			out = append(out, setGate{gate, value, path})
		}
	}
	return out
}

// manifestGates are those of kubeadm's manifests, which it would set again.
func manifestGates(control *ControlFacts) []setGate {
	var out []setGate
	for _, component := range slices.Sorted(maps.Keys(control.FeatureGates)) {
		for _, pair := range control.FeatureGates[component] {
			gate, value, _ := strings.Cut(pair, "=")
			out = append(out, setGate{gate, value, "the manifest of " + component})
		}
	}
	return out
}

// gatesIn are the feature gates that flags set, as --feature-gates=A=true,B=false.
func gatesIn(lines string) []string {
	var out []string
	for _, word := range flagWords(lines) {
		value, ok := strings.CutPrefix(word, "feature-gates=")
		if !ok {
			continue
		}
		for pair := range strings.SplitSeq(value, ",") {
			if !strings.HasPrefix(pair, "=") && pair != "" {
				out = append(out, pair)
			}
		}
	}
	return out
}
