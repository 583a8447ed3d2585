package upgrade

import (
	"slices"
	"strings"
)

// overruledSettings finds what wins over spec.kubelet.configuration: a flag of the kubelet, and
// a drop-in file that is read after Refit's. The change would come to nothing.
func overruledSettings(p *planner) []Finding {
	if !p.want.configChanges || p.want.config.empty() {
		return nil
	}
	k, wish := p.in.Facts.Kubelet, p.want.config.Configuration
	var out []Finding
	for _, flag := range k.settingFlags() {
		want, wished := wish[flag.field]
		if !wished {
			continue
		}
		won := map[string]any{flag.field: flag.over(want)}
		if differs := settingDifferences(map[string]any{flag.field: want}, won, ""); len(differs) > 0 {
			_, path := declaredFlag(k, flag.name)
			out = append(out, failure(FindingOverruled, "the kubelet has the flag --%s=%s (%s), which wins over %s in spec.kubelet.configuration: remove one of the two, then retry", flag.name, flag.value, firstOf(path, "on its command line"), flag.field))
		}
	}
	for _, dropIn := range k.DropIns {
		if dropIn.Path <= KubeletDropInPath || !strings.HasPrefix(dropIn.Path, KubeletDropInDir+"/") {
			continue
		}
		after := MergeKubeletConfiguration(wish, dropIn.Configuration)
		if differs := settingDifferences(wish, after, ""); len(differs) > 0 {
			out = append(out, failure(FindingOverruled, "%s is read after %s, and with it %s: remove that from one of the two, then retry", dropIn.Path, KubeletDropInPath, strings.Join(slices.Compact(differs), "; ")))
		}
	}
	return out
}
