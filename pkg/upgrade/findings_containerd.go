package upgrade

import (
	"fmt"
	"strings"
)

// containerdConfigVersions are the versions of containerd's configuration and the first
// release that reads them; older forms are converted on every start
// (https://github.com/containerd/containerd/blob/main/RELEASES.md#daemon-configuration).
var containerdConfigVersions = map[int]string{2: "1.3.0", 3: "2.0.0", 4: "2.3.0"}

// containerdRemoval is a setting that containerd has no longer from a release on.
type containerdRemoval struct {
	setting string // the last part of its name
	value   string // that it has; "" means any
	since   string
	refused bool // the daemon, or its pods, do not start; else it is ignored
	instead string
}

// containerdRemovals are from the tables of deprecated features and config properties in
// https://github.com/containerd/containerd/blob/main/RELEASES.md.
var containerdRemovals = []containerdRemoval{
	{"runtime_type", "io.containerd.runtime.v1.linux", "2.0.0", true, "io.containerd.runc.v2"},
	{"runtime_type", "io.containerd.runc.v1", "2.0.0", true, "io.containerd.runc.v2"},
	{"snapshotter", "aufs", "2.0.0", true, "overlayfs, whose images are pulled anew"},
	{"systemd_cgroup", "", "2.0.0", false, "SystemdCgroup in the options of the runtime"},
	{"untrusted_workload_runtime", "", "2.0.0", false, "a runtime named untrusted"},
	{"default_runtime", "", "2.0.0", false, "default_runtime_name"},
	{"runtime_engine", "", "2.0.0", false, "a runtime of type io.containerd.runc.v2"},
	{"runtime_root", "", "2.0.0", false, "Root in the options of the runtime"},
	{"disable_cgroup", "", "2.0.0", false, "cgroup v2 delegation"},
	{"CriuPath", "", "2.0.0", false, "criu in the PATH of the daemon"},
	{"plugin_dir", "", "2.1.0", false, "proxy plugins or binaries"},
	{"registry.auths", "", "2.7.0", true, "image pull secrets"},
	{"registry.configs", "", "2.7.0", true, "config_path"},
	{"registry.mirrors", "", "2.7.0", true, "config_path"},
}

// runtimeConfiguration finds what the containerd to come does not take of the
// configuration that is there. Within a minor nothing of it changes.
func runtimeConfiguration(p *planner) []Finding {
	r := p.in.Facts.Runtime
	if !p.want.runtimeChanges || p.want.runtime.SameMinor(p.want.runtimeNow) || r.Name != "containerd" || r.Configuration == nil {
		return nil
	}
	c := r.Configuration
	out := p.configVersion(c)
	for _, name := range sortedKeys(c.Settings) {
		out = append(out, p.removedSetting(c.Path, name, c.Settings[name])...)
	}
	return out
}

// configVersion refuses a configuration that is newer than the daemon to come.
func (p *planner) configVersion(c *RuntimeConfigFacts) []Finding {
	first, listed := containerdConfigVersions[c.Version]
	least, _ := ParseRelease(first)
	if !listed || !p.want.runtime.LessThan(least) {
		return nil
	}
	return []Finding{failure(FindingRuntimeConfig, "%s is of version %d, which containerd reads from %s on, so %s would not start: write it in an older version, then retry", c.Path, c.Version, first, p.want.runtime.Raw())}
}

// removedSetting judges one setting. One that goes away later is a warning, for as long as there is time.
func (p *planner) removedSetting(path, name, value string) []Finding {
	for _, r := range containerdRemovals {
		if !r.is(name) || r.value != "" && r.value != value {
			continue
		}
		since, _ := ParseRelease(r.since)
		set := name
		if value != "" {
			set = fmt.Sprintf("%s = %q", name, value)
		}
		switch {
		case p.want.runtime.LessThan(since):
			return []Finding{warning(FindingRuntimeSetting, "%s sets %s, which is deprecated and announced to go with containerd %s: use %s", path, set, r.since, r.instead)}
		case r.refused:
			return []Finding{failure(FindingRuntimeConfig, "%s sets %s, which containerd no longer has from %s on, and without which it, or its pods, would not start: use %s, then retry", path, set, r.since, r.instead)}
		}
		return []Finding{warning(FindingRuntimeSetting, "%s sets %s, which containerd ignores from %s on: use %s", path, set, r.since, r.instead)}
	}
	return nil
}

// is says whether a setting, or a table of that name, is meant.
func (r containerdRemoval) is(name string) bool {
	return strings.HasSuffix(name, "."+r.setting) || name == r.setting || strings.Contains(name, "."+r.setting+".")
}
