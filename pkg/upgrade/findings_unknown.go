package upgrade

import "github.com/refit-dev/refit/api/v1alpha1"

// factNeeded says for which plans a probe that failed leaves something unknown that
// nobody may guess. What is not needed for a plan does not keep it back.
type factNeeded struct {
	field string // of the problem, as facts name it
	by    func(p *planner) bool
	why   string // what could happen otherwise
}

// factsNeeded are the probes that a plan builds on. Those that are not here are either
// judged where they are read (versions), or change nothing about what is done.
var factsNeeded = []factNeeded{
	{"policy", (*planner).anything, "the host's owner could have forbidden it"},
	{"node", (*planner).namesNode, "this could be another machine than the Machine"},
	{"kubelet.flags", (*planner).configures, "a flag could win over spec.kubelet.configuration"},
	{"kubelet.flags", (*planner).movesKubelet, "the kubelet could have a flag that the new one does not know"},
	{"kubelet.flagSources", (*planner).movesKubelet, "the kubelet could have a flag that the new one does not know"},
	{"kubelet.configuration", (*planner).movesKubelet, "its configuration could hold what the new kubelet does not take"},
	{"kubelet.configuration", (*planner).configures, "what the kubelet is told otherwise could win over spec.kubelet.configuration"},
	{"kubelet.configArgs", (*planner).configures, "what the kubelet's unit sets could be lost"},
	{"managedFiles", (*planner).configures, "what is on the host of spec.kubelet.configuration could be something else"},
	{"kubelet.state", (*planner).restarts, "the kubelet could not start again on the state it has kept"},
	{"containerRuntime", (*planner).restarts, "the kubelet and the runtime could not fit each other"},
	{"containerRuntime.ready", (*planner).asksRuntime, "the kubelet and the runtime could use two cgroup drivers"},
	{"containerRuntime.configuration", (*planner).movesRuntime, "its configuration could hold what the new runtime refuses"},
	{"os.cgroupVersion", (*planner).movesKubelet, "the new kubelet could refuse the host's cgroups"},
	{"controlPlane.manifests", (*planner).movesControlPlane, "a component could have what the new one does not take"},
	{"controlPlane.unfinished", (*planner).restarts, "an upgrade of the control plane could have been left half done"},
	{fieldEtcd, (*planner).needsEtcd, "its members could lose their quorum with this host"},
	{fieldEtcdUnit, (*planner).mayHaveEtcd, "a member of etcd could be restarted that nobody has looked at"},
	{fieldDeprecatedAPIs, (*planner).takesAPIsAway, "a client could still use an API that goes away"},
	{"staticPods", (*planner).movesControlPlane, "two manifests could be for one pod"},
	{"packages", (*planner).movesPackages, "another package manager could be at work"},
	{"packages.installed", (*planner).movesPackages, "a package could be at another version"},
	{"packages.holds", (*planner).movesPackages, "a hold of the host's owner could be lost"},
	{"packages.broken", (*planner).movesPackages, "a package could be half installed"},
	{"packages.sources", (*planner).movesPackages, "packages could come from a source that was not looked at"},
	{"mounts", (*planner).movesPackages, "a file system could fill up in the middle of a transaction"},
	{"certificates", (*planner).restarts, "a component could be restarted into a certificate that is over"},
	{"reboot", (*planner).mayReboot, "the host could wait for a reboot that spec asks for"},
	{"host.bootID", (*planner).reboots, "nothing could prove that the reboot has happened"},
}

// unknownFacts refuses a plan that would have to guess. The refusal may pass: the
// host is looked at again.
func unknownFacts(p *planner) []Finding {
	var out []Finding
	for _, problem := range p.in.Facts.Problems {
		for _, need := range factsNeeded {
			if need.field == problem.Field && need.by(p) {
				out = append(out, failure(FindingFactUnknown, "%s of this host could not be found out (%s), so %s: see that it can be read; the host is looked at again by itself", problem.Field, problem.Message, need.why))
				break
			}
		}
		if problem.Field == "conflictingManagers" {
			out = append(out, warning(FindingFactUnknown, "it could not be found out whether another updater is at work on this host (%s): see yourself that none is", problem.Message))
		}
	}
	return out
}

func (p *planner) anything() bool          { return true }
func (p *planner) namesNode() bool         { return p.in.Machine != "" }
func (p *planner) movesKubelet() bool      { return p.kubeletComing().Known() }
func (p *planner) configures() bool        { return p.want.configChanges }
func (p *planner) movesRuntime() bool      { return p.want.runtimeChanges }
func (p *planner) movesControlPlane() bool { return p.want.controlPlaneChanges }
func (p *planner) movesPackages() bool     { return len(p.changes) > 0 }
func (p *planner) restarts() bool          { return p.restarted || p.want.controlPlaneChanges }

// asksRuntime says that the plan builds on what the runtime answers; one that is known to be down has no answer.
func (p *planner) asksRuntime() bool { return p.restarts() && !p.in.Facts.Runtime.down() }

func (p *planner) reboots() bool { return p.disruption == v1alpha1.DisruptionReboot }

func (p *planner) movesControlPlaneMinor() bool {
	return p.want.controlPlaneChanges && !p.want.controlPlane.SameMinor(p.oldestOfControlPlane())
}

// takesAPIsAway says that clients could lose an API, and that nobody has vouched for them.
func (p *planner) takesAPIsAway() bool {
	return p.movesControlPlaneMinor() && !p.ignores(FindingRemovedAPI)
}

// mayHaveEtcd says that the plan restarts a member of etcd, if there is one: with the host, or for itself.
func (p *planner) mayHaveEtcd() bool { return p.reboots() || p.want.etcdChanges }

func (p *planner) mayReboot() bool {
	os := p.in.Spec.OS
	return p.in.Assignment.Target.OS && os != nil && os.Reboot == v1alpha1.RebootIfRequired
}

// probeFailed is what kept a fact from being known; "" when it is known.
func (p *planner) probeFailed(field string) string {
	for _, problem := range p.in.Facts.Problems {
		if problem.Field == field {
			return problem.Message
		}
	}
	return ""
}
