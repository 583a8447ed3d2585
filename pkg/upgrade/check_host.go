package upgrade

import (
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func (p *planner) checkIdentity() error {
	node := p.in.Facts.Node
	if p.in.Machine != "" && node != nil && node.Name != "" && node.Name != p.in.Machine {
		return refuse(ReasonNodeIdentityMismatch, "this host's kubelet certificate is for node %q, but the Machine is %q: check /etc/refit/agent.yaml and the kubelet's certificate", node.Name, p.in.Machine)
	}
	return nil
}

// notPackaged refuses to move what no package brought, unless packages could not be looked
// at in the first place, or are not wholly there for now.
func (p *planner) notPackaged(format string, args ...any) error {
	if err := p.checkOS(); err != nil {
		return err
	}
	if err := p.checkHalfInstalled(); err != nil {
		return err
	}
	return refuse(ReasonNotPackaged, format, args...)
}

func (p *planner) checkOS() error {
	facts := p.in.Facts
	if p.in.Estimate && facts.Packages.Manager == "" {
		return nil
	}
	why := p.problem("packages")
	if p.order != nil && (why == "" || len(facts.Packages.Installed) > 0) {
		return nil
	}
	return refuse(ReasonUnsupportedOS, "this host is %s, and its packages could not be read with package manager %q%s: nothing is planned on it; nothing was changed",
		firstOf(facts.OS.PrettyName, facts.OS.ID, "an unknown system"), facts.Packages.Manager, why)
}

// architectures are those that Kubernetes is released for on servers.
var architectures = []string{"amd64", "arm64", "ppc64le", "s390x"}

// checkArchitecture: packages of Kubernetes for anything else are somebody's own, and a
// same version says nothing about them.
func (p *planner) checkArchitecture() error {
	arch := p.in.Facts.OS.Architecture
	if arch == "" || slices.Contains(architectures, arch) || !p.want.kubeletChanges && !p.want.controlPlaneChanges {
		return nil
	}
	return refuse(ReasonUnsupportedArchitecture, "this host is %s, and Kubernetes is released for %s: upgrade it by hand, or remove spec.versions.kubelet and spec.versions.controlPlane", arch, strings.Join(architectures, ", "))
}

// checkMissingRole refuses a host whose control plane its roles do not name, also when
// nothing is to be done: no kubelet of the fleet is judged rightly until they do.
func (p *planner) checkMissingRole() error {
	if missesRole(p.in.Spec.Roles, p.in.Facts.APIServerSign()) {
		return refuse(ReasonRoleMismatch, "%s", roleMissing)
	}
	return nil
}

// checkRoles sees that the host has a control plane when its Machine says so.
func (p *planner) checkRoles() error {
	wants := slices.Contains(p.in.Spec.Roles, v1alpha1.RoleControlPlane)
	switch sign := p.in.Facts.APIServerSign(); {
	case sign == APIServerOnHost || !wants:
		return nil
	case sign == APIServerPossible:
		return wait(ReasonVersionUnknown, "it could not be found out whether this host runs a control plane%s, and spec.roles says so: see that its manifests can be read", p.problem("controlPlane"))
	}
	return refuse(ReasonRoleMismatch, "this host runs no control plane (no static pod manifest of an API server was found), but spec.roles says ControlPlane: correct spec.roles, or set the host up with kubeadm first")
}

// problem is probeFailed in brackets, to stand behind what is not known.
func (p *planner) problem(field string) string {
	if why := p.probeFailed(field); why != "" {
		return " (" + why + ")"
	}
	return ""
}

func (p *planner) checkDatabase() error {
	if err := p.checkHalfInstalled(); err != nil {
		return err
	}
	if lock := p.in.Facts.Packages.Lock; lock != nil {
		p.find(info(FindingPackageLockHeld, "%s; the work waits for it", lock))
	}
	return nil
}

// checkHalfInstalled waits for what a broken transaction left behind.
func (p *planner) checkHalfInstalled() error {
	if message := HalfInstalledMessage(p.in.Facts.HalfInstalled()); message != "" {
		return wait(ReasonPackageDBBroken, "%s", message)
	}
	return nil
}

// cause is a refusal with what is behind it named first.
func (p *planner) cause(err error) error {
	if blocked := IsBlocked(err); blocked != nil {
		return causedBy(HalfInstalledMessage(p.in.Facts.HalfInstalled()), blocked)
	}
	return err
}
