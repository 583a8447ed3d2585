package upgrade

import (
	"fmt"
	"strings"
)

// runtimeLosingSupport warns while a kubelet still takes a runtime that its project no longer supports.
func runtimeLosingSupport(p *planner) []Finding {
	r := p.in.Facts.Runtime
	if r == nil || r.Name != "containerd" || !p.want.kubeletChanges {
		return nil
	}
	v136, _ := ParseKubernetes("v1.36.0")
	two, _ := ParseRelease("2.0.0")
	if runtime := p.runtimeAfter(); runtime.LessThan(two) && p.want.kubelet.MinorsAhead(v136) >= 0 {
		return []Finding{warning(FindingRuntimeLosing, "kubelet %s still takes containerd %s, whose support ended with v1.35, and which kubelets are announced to refuse from v1.38: set spec.versions.containerRuntime to a 2.x release", p.want.kubelet, runtime.Raw())}
	}
	return nil
}

// runtimeAfter is the runtime's version once the plan is done.
func (p *planner) runtimeAfter() Version {
	if p.want.runtime.Known() {
		return p.want.runtime
	}
	seen, _ := ParseRuntime(firstOf(runtimeText(p.in.Facts.Runtime)...))
	return seen.Version
}

// kubeletCgroupDriver is what the kubelet is told: by a flag, by its configuration, or
// by neither, which is cgroupfs in every release. "" when more files may say it.
func kubeletCgroupDriver(k *ComponentFacts) string {
	if driver := flagValue(k, "cgroup-driver"); driver != "" {
		return driver
	}
	if driver, _ := k.Configuration["cgroupDriver"].(string); driver != "" {
		return driver
	}
	if k.Configuration == nil || flagValue(k, "config-dir") != "" {
		return ""
	}
	return "cgroupfs"
}

// flagValue is the value of a flag of the kubelet: of the running process, else of the files that set its flags.
func flagValue(k *ComponentFacts, name string) string {
	for i, flag := range k.Flags {
		if value, ok := strings.CutPrefix(flag, "--"+name+"="); ok {
			return value
		}
		if flag == "--"+name && i+1 < len(k.Flags) {
			return k.Flags[i+1]
		}
	}
	value, _ := declaredFlag(k, name)
	return value
}

// declaredFlag is the value of a flag in the files that set flags, and the file.
func declaredFlag(k *ComponentFacts, name string) (value, path string) {
	for _, path := range sortedKeys(k.FlagSources) {
		for _, word := range flagWords(k.FlagSources[path]) {
			if value, ok := strings.CutPrefix(word, name+"="); ok {
				return value, path
			}
		}
	}
	return "", ""
}

// cgroupDrivers compares what kubelet and runtime really use: two drivers on one host
// restart every pod again and again. A runtime that tells the kubelet its driver decides alone.
func cgroupDrivers(p *planner) []Finding {
	if !p.restarts() {
		return nil
	}
	clash := p.in.Facts.cgroupDriverClash()
	switch {
	case clash == "":
		return nil
	case followsRuntime(p.in.Facts.Runtime, p.runtimeAfter()):
		return []Finding{warning(FindingCgroupDriver, "%s: the kubelet follows the runtime; set both to the same", clash)}
	}
	return []Finding{failure(FindingCgroupDriver, "%s, which restarts pods again and again: set both to the same (cgroupDriver in the kubelet's configuration, SystemdCgroup in the runtime's), then retry", clash)}
}

// cgroupDriverClash says that kubelet and runtime use two drivers; "" where they use one, or one of them is not known.
func (f *Facts) cgroupDriverClash() string {
	k, r := f.Kubelet, f.Runtime
	if k == nil || r == nil || r.CgroupDriver == "" {
		return ""
	}
	kubelet := kubeletCgroupDriver(k)
	if kubelet == "" || kubelet == r.CgroupDriver {
		return ""
	}
	return fmt.Sprintf("the kubelet is configured for cgroup driver %s and %s uses %s", kubelet, r.Name, r.CgroupDriver)
}

// followsRuntime says that a runtime tells the kubelet its driver.
func followsRuntime(r *RuntimeFacts, version Version) bool {
	two, _ := ParseRelease("2.0.0")
	return r.Name == "containerd" && version.Known() && !version.LessThan(two)
}

// CgroupDriverClash says what keeps the pods of a host from running for long after its runtime was
// restarted: a package, or its default configuration, may have brought another driver.
func (f *Facts) CgroupDriverClash() string {
	clash := f.cgroupDriverClash()
	if clash == "" {
		return ""
	}
	if running, _ := ParseRuntime(f.Runtime.Running); followsRuntime(f.Runtime, running.Version) {
		return ""
	}
	return clash
}

// sandboxImages warns where the kubelet keeps one image from being collected and the
// runtime starts sandboxes from another: the one that is needed can vanish.
func sandboxImages(p *planner) []Finding {
	k, r := p.in.Facts.Kubelet, p.in.Facts.Runtime
	if k == nil || r == nil || r.SandboxImage == "" || !p.restarts() {
		return nil
	}
	kept := flagValue(k, "pod-infra-container-image")
	if kept == "" || kept == r.SandboxImage {
		return nil
	}
	return []Finding{warning(FindingSandboxImage, "the kubelet keeps the image %s (--pod-infra-container-image), but %s starts sandboxes from %s, which may be collected and then has to be pulled: set the runtime's to the same, and see that it is on the host", kept, r.Name, r.SandboxImage)}
}

// runtimeEndpoints finds a kubelet that a restart would send to another runtime than the one it uses.
func runtimeEndpoints(p *planner) []Finding {
	k, r := p.in.Facts.Kubelet, p.in.Facts.Runtime
	if k == nil || r == nil || r.Endpoint == "" || !p.restarts() {
		return nil
	}
	declared, where := declaredFlag(k, "container-runtime-endpoint")
	if declared == "" {
		declared, _ = k.Configuration["containerRuntimeEndpoint"].(string)
		where = "the kubelet's configuration"
	}
	if declared == "" || endpointPath(declared) == endpointPath(r.Endpoint) {
		return nil
	}
	return []Finding{failure(FindingRuntimeEndpoint, "%s has the kubelet use the runtime at %s, but it uses the one at %s, and a restart would change that: write %s there (and into the annotation kubeadm.alpha.kubernetes.io/cri-socket of the node, where there is one), then retry", where, declared, r.Endpoint, r.Endpoint)}
}

// endpointPath is the socket of an endpoint: the scheme may be left out, and /var/run is /run.
func endpointPath(endpoint string) string {
	path := strings.TrimPrefix(endpoint, "unix://")
	if rest, ok := strings.CutPrefix(path, "/var/run/"); ok {
		return "/run/" + rest
	}
	return path
}
