package upgrade

import "slices"

// heldPackages tells of packages that the host's owner keeps on hold and that spec
// changes all the same. The hold is lifted for the change alone. Kubernetes' own packages
// are held on nearly every host, by its documentation and by Refit: no word on them.
func heldPackages(p *planner) []Finding {
	var out []Finding
	for _, c := range p.changes {
		switch {
		case !c.Held || slices.Contains(kubernetesPackages, c.Name):
		case c.To == "":
			out = append(out, warning(FindingPackageHeld, "%s %s is on hold on this host and spec wants it absent: the hold goes with the package; to keep both, take %s out of spec", c.Name, c.From, c.Name))
		default:
			out = append(out, warning(FindingPackageHeld, "%s is on hold on this host at %s and spec wants %s: the hold is lifted for this change and is back after it; to keep the package where it is, set spec to its version, or refuse grants with /etc/refit/hold", c.Name, firstOf(c.From, "no version"), c.To))
		}
	}
	return out
}
