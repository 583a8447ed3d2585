package apply

import (
	"fmt"
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Reasons why a host does not grant itself a plan.
const (
	// ReasonAgentRunning: the agent of this host follows a cluster, and the cluster decides.
	ReasonAgentRunning = "AgentRunning"
	// ReasonNotDrained: the plan ends pods, and nobody says that they have left.
	ReasonNotDrained = "NotDrained"
	// ReasonResumeDisabled: nothing would go on with the operation after the reboot in it.
	ReasonResumeDisabled = "ResumeDisabled"
	// ReasonNotConfirmed: the person at the host said no.
	ReasonNotConfirmed = "NotConfirmed"
)

// Situation is what the checks look at.
type Situation struct {
	Machine *v1alpha1.Machine
	Facts   upgrade.Facts
	Plan    upgrade.Plan
	// Drained is the word of the person at the host.
	Drained bool
	// AgentRuns says that an agent follows a cluster on this host, as a unit or by hand; Resumes
	// that refit-resume is enabled.
	AgentRuns, Resumes bool
}

// Check says why a plan must not be carried out by this host alone; nil: it may.
func Check(s Situation) *upgrade.Blocked {
	for _, rule := range []func(Situation) *upgrade.Blocked{agentRunning, skewUnknown, notDrained, resumeDisabled} {
		if blocked := rule(s); blocked != nil {
			return blocked
		}
	}
	return nil
}

// agentRunning: one operation at a time, and where there is a cluster it is the cluster's.
func agentRunning(s Situation) *upgrade.Blocked {
	if !s.AgentRuns {
		return nil
	}
	return refuse(ReasonAgentRunning, "an agent runs on this host and follows its Machine in a cluster: change that Machine instead, or let the agent rest first (systemctl stop refit-agent, or end the refit-agent run that somebody began by hand); when it is started again, the host goes back to what the Machine says")
}

// skewUnknown: the plan only warns of it, since it changes nothing. A kubelet that stays
// within its minor meets the API servers that it meets now.
func skewUnknown(s Situation) *upgrade.Blocked {
	unknown := slices.ContainsFunc(s.Plan.Findings, func(f upgrade.Finding) bool { return f.Reason == upgrade.FindingSkewUnknown })
	if !unknown || s.Facts.APIServerSign() == upgrade.APIServerOnHost || s.Facts.Kubelet == nil || s.Machine.Spec.Versions == nil {
		return nil
	}
	want, moves := upgrade.ParseKubernetes(string(s.Machine.Spec.Versions.Kubelet))
	now, runs := upgrade.ParseKubernetes(s.Facts.Kubelet.Running)
	if !runs { // one that is down met them as what is installed
		now, _ = upgrade.ParseKubernetes(s.Facts.Kubelet.Installed)
	}
	if !moves || now.Known() && want.MinorsAhead(now) <= 0 {
		return nil
	}
	return refuse(upgrade.ReasonSkewUnknown, "no kubelet may be newer than an API server, and nobody here can look up what they run before kubelet %s comes: state the oldest with --api-server-version (kubectl version says it)", want.Raw())
}

// notDrained: without a cluster nobody evicts pods. A host without a sandbox has none.
func notDrained(s Situation) *upgrade.Blocked {
	if s.Drained || s.Plan.Disruption != v1alpha1.DisruptionDrain && s.Plan.Disruption != v1alpha1.DisruptionReboot {
		return nil
	}
	running, known := sandboxes(s.Facts)
	if known && running == 0 {
		return nil
	}
	count := "how many pods run here is not known"
	if known {
		count = upgrade.Count(running, "pod runs here", "pods run here")
	}
	return refuse(ReasonNotDrained, "the plan ends the pods of this host (%s; disruption %s), and nobody evicts them without a cluster: drain it where kubectl works (kubectl drain %s --ignore-daemonsets --delete-emptydir-data), apply again with --drained, then kubectl uncordon %s",
		count, s.Plan.Disruption, node(s), node(s))
}

// sandboxes counts the pods that run; known is false where a runtime may have some that nobody could count.
func sandboxes(f upgrade.Facts) (running int, known bool) {
	if f.Runtime == nil {
		return 0, f.Kubelet == nil
	}
	return f.Runtime.Sandboxes, f.Runtime.Running != ""
}

func node(s Situation) string {
	if n := s.Facts.Node; n != nil && n.Name != "" {
		return n.Name
	}
	if s.Machine.Name != "" {
		return s.Machine.Name
	}
	return s.Facts.Host.Hostname
}

func resumeDisabled(s Situation) *upgrade.Blocked {
	if s.Resumes || s.Plan.Disruption != v1alpha1.DisruptionReboot {
		return nil
	}
	return refuse(ReasonResumeDisabled, "the plan reboots this host, and nothing would go on with it afterwards: install refit-resume.service and run systemctl enable refit-resume.service, then apply again")
}

// refuse waits for a person: trying again alone changes nothing.
func refuse(reason, format string, args ...any) *upgrade.Blocked {
	return &upgrade.Blocked{Reason: reason, Message: fmt.Sprintf(format, args...), Terminal: true}
}
