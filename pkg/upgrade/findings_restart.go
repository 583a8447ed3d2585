package upgrade

import (
	"fmt"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// RestartsPending says where what is on disk is not what runs: it runs from the next
// restart on, whoever restarts.
func (f *Facts) RestartsPending() []string {
	var pending []string
	if k := f.Kubelet; k.RestartPending() {
		pending = append(pending, fmt.Sprintf("kubelet runs %s, %s is installed", k.Running, k.Installed))
	} else if k != nil {
		running, _ := ParseKubernetes(k.Running)
		pending = append(pending, f.otherPackage(packageKubelet, k.Running, running, []string{packageKubelet})...)
	}
	r := f.Runtime
	switch {
	case r == nil || r.Running == "":
	case r.Installed != "" && !SameRuntime(r.Running, r.Installed):
		pending = append(pending, fmt.Sprintf("%s runs %s, %s is installed", r.Name, r.Running, r.Installed))
	default:
		running, _ := ParseRuntime(r.Running)
		pending = append(pending, f.otherPackage(r.Name, r.Running, running.Version, runtimePackages[v1alpha1.RuntimeName(r.Name)])...)
	}
	if u := f.EtcdUnit; u != nil {
		running, ok := ParseRuntime(f.etcdVersion())
		if disk, known := ParseRuntime(u.Installed); ok && known && !disk.Version.Equal(running.Version) {
			pending = append(pending, fmt.Sprintf("etcd runs %s, %s is installed", running.Version.Raw(), u.Installed))
		}
	}
	return pending
}

// otherPackage says that the package of a program is at another version than what runs.
func (f *Facts) otherPackage(program, text string, running Version, names []string) []string {
	for _, name := range names {
		for _, pkg := range f.Packages.Installed {
			if pkg.Name != name || !pkg.installed() {
				continue
			}
			if !running.Known() || !packageUpstream(pkg.Version).Known() || carries(pkg.Version, running.Upstream()) {
				return nil
			}
			return []string{fmt.Sprintf("%s runs %s, package %s %s is installed", program, text, name, pkg.Version)}
		}
	}
	return nil
}

// RestartFinding tells of restarts that are pending on a host on which nothing is to be done.
func RestartFinding(pending string) Finding {
	return warning(FindingRestartPending, "%s, and spec asks for nothing that would change that: what is on disk runs from the next restart on; bring the package to the version of spec on the host, or set spec to what is installed", strings.TrimSuffix(pending, "."))
}

// RestartUnjudged tells of restarts that are pending on a host of which only that is known.
func RestartUnjudged(pending string) Finding {
	return warning(FindingRestartPending, "%s: where this plan restarts that, or reboots, the agent on the host judges what would start, and refuses what spec or skew do not allow; give facts of the host to see it here", strings.TrimSuffix(pending, "."))
}
