package upgrade

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// removedFlags finds flags that the target's kubelet no longer knows, wherever they are set.
func removedFlags(p *planner) []Finding {
	k := p.in.Facts.Kubelet
	next := p.kubeletComing()
	if k == nil || !next.Known() {
		return nil
	}
	var out []Finding
	for _, path := range sortedKeys(k.FlagSources) {
		for _, flag := range flagsIn(k.FlagSources[path]) {
			minor, removed := goneBy(kubeletFlagsRemoved, flag, next.Version)
			if removed && !p.kubeadmCleans(path, flag) {
				out = append(out, failure(FindingFlagRemoved, "%s sets --%s for the kubelet, which kubelets from v1.%d do not know and so would not start: remove it there, then retry%s", path, flag, minor, next.why()))
			}
		}
	}
	return out
}

// kubeadmFlagsFile is kubeadm's own; everything else is the owner's and is never edited.
const kubeadmFlagsFile = "/var/lib/kubelet/kubeadm-flags.env"

// kubeadmCleans says that the hop's kubeadm takes a flag out of its own file: only the
// kubeadm of the very minor does, those after it take it for done.
func (p *planner) kubeadmCleans(path, flag string) bool {
	version, runs := p.kubeadmTarget()
	return runs && path == kubeadmFlagsFile && version.Known() && kubeadmCleansFlags[flag] == int(version.sem.Minor())
}

// CleanedBy is the kubelet once the kubeadm of some version has upgraded the host: the
// flags that this kubeadm takes out of its own file are gone from it.
func (c ComponentFacts) CleanedBy(kubeadm string) ComponentFacts {
	version, ok := ParseKubernetes(kubeadm)
	lines, there := c.FlagSources[kubeadmFlagsFile]
	if !ok || !there {
		return c
	}
	for flag, minor := range kubeadmCleansFlags {
		if minor == int(version.sem.Minor()) {
			lines = regexp.MustCompile(`--`+flag+`=[^\s"']*`).ReplaceAllString(lines, "")
		}
	}
	c.FlagSources = maps.Clone(c.FlagSources)
	c.FlagSources[kubeadmFlagsFile] = lines
	return c
}

// cgroupV1Minor is the first kubelet that does not start on cgroup v1 unless it is told to
// (failCgroupV1 is true by default, https://github.com/kubernetes/enhancements/issues/5573).
const cgroupV1Minor = "v1.35.0"

// cgroupVersion refuses to bring a host of cgroup v1 a kubelet that would not start on it.
func cgroupVersion(p *planner) []Finding {
	floor, _ := ParseKubernetes(cgroupV1Minor)
	next := p.kubeletComing()
	crosses := next.Known() && next.MinorsAhead(floor) >= 0 && p.kubeletLast().MinorsAhead(floor) < 0
	if !crosses || p.in.Facts.OS.CgroupVersion != 1 {
		return nil
	}
	k := p.in.Facts.Kubelet
	fails, said := k.Configuration["failCgroupV1"].(bool)
	if said && !fails || flagValue(k, "fail-cgroupv1") == "false" {
		return []Finding{warning(FindingCgroupV1, "this host uses cgroup v1, which kubelet %s still takes since failCgroupV1 is false, and a later one will not: boot the host with systemd.unified_cgroup_hierarchy=1", next.Raw())}
	}
	return []Finding{failure(FindingCgroupV1, "this host uses cgroup v1, on which kubelets from v1.35 do not start: boot it with systemd.unified_cgroup_hierarchy=1, or set failCgroupV1: false in the kubelet's configuration (in a kubeadm cluster in the ConfigMap kubelet-config, too), then retry%s", next.why())}
}

// goneBy says whether something is removed at or before a target, and in which minor.
func goneBy(table map[int][]string, name string, target Version) (minor int, removed bool) {
	for _, minor := range sortedMinors(table) {
		if minor <= int(target.sem.Minor()) && slices.Contains(table[minor], name) {
			return minor, true
		}
	}
	return 0, false
}

// flagsIn are the names of the flags in some lines of a unit or environment file.
func flagsIn(lines string) []string {
	var out []string
	for _, word := range flagWords(lines) {
		name, _, _ := strings.Cut(word, "=")
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func sortedMinors(m map[int][]string) []int { return slices.Sorted(maps.Keys(m)) }

// flagWords are the words after --, without quotes.
func flagWords(lines string) []string {
	var out []string
	for _, word := range strings.FieldsFunc(lines, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'", r) }) {
		_, flag, found := strings.Cut(word, "--")
		if found && flag != "" {
			out = append(out, flag)
		}
	}
	return out
}
