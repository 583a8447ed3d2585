package upgrade

import (
	"errors"
	"strings"
	"time"
)

// finder judges one thing about a host that has work to do. Each is pure and looks at
// facts and at the finished steps; what it says with severity Error blocks the plan.
type finder func(p *planner) []Finding

// finders are in the order in which a person would want to read what they find.
var finders = []finder{
	removedFlags,
	removedGates,
	runtimeLosingSupport,
	cgroupDrivers,
	expiringCertificates,
	space,
	foreignManagers,
	ownersHold,
	heldPackages,
}

// Reasons of findings.
const (
	FindingFlagRemoved         = "KubeletFlagRemoved"
	FindingGateRemoved         = "FeatureGateRemoved"
	FindingRuntimeLosing       = "RuntimeLosingSupport"
	FindingCgroupDriver        = "CgroupDriverMismatch"
	FindingCertificateExpired  = "CertificateExpired"
	FindingCertificateExpiring = "CertificateExpiring"
	FindingNoSpace             = "NoSpace"
	FindingConflictingManager  = "ConflictingManager"
	FindingHeldByOwner         = "HeldByOwner"
	FindingPackageHeld         = "PackageHeld"
)

// preflight adds what the finders find, and refuses the plan when one of them found an Error.
func (p *planner) preflight() error {
	if len(p.steps) == 0 {
		return nil
	}
	for _, look := range finders {
		p.findings = append(p.findings, look(p)...)
	}
	return Refusal(p.findings)
}

// Refusal turns findings of severity Error into one refusal, with the reason of the first; nil when there are none.
func Refusal(findings []Finding) error {
	var blocked *Blocked
	for _, f := range findings {
		switch {
		case f.Severity != SeverityError:
		case blocked == nil:
			blocked = &Blocked{Reason: f.Reason, Message: f.Message, Terminal: true}
		default:
			blocked.Message += "; " + f.Message
		}
	}
	if blocked == nil {
		return nil
	}
	return blocked
}

// IsBlocked returns the refusal in an error, or nil.
func IsBlocked(err error) *Blocked {
	var blocked *Blocked
	errors.As(err, &blocked)
	return blocked
}

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

// cgroupDrivers compares what kubelet and runtime really use: two drivers on one host
// restart every pod again and again. A runtime that tells the kubelet its driver decides alone.
func cgroupDrivers(p *planner) []Finding {
	k, r := p.in.Facts.Kubelet, p.in.Facts.Runtime
	if k == nil || r == nil || r.CgroupDriver == "" {
		return nil
	}
	kubelet, _ := k.Configuration["cgroupDriver"].(string)
	if kubelet == "" || kubelet == r.CgroupDriver {
		return nil
	}
	two, _ := ParseRelease("2.0.0")
	if runtime := p.runtimeAfter(); r.Name == "containerd" && runtime.Known() && !runtime.LessThan(two) {
		return []Finding{warning(FindingCgroupDriver, "the kubelet is configured for cgroup driver %s and %s uses %s: the kubelet follows the runtime; set both to the same", kubelet, r.Name, r.CgroupDriver)}
	}
	return []Finding{failure(FindingCgroupDriver, "the kubelet is configured for cgroup driver %s and %s uses %s, which restarts pods again and again: set both to the same (cgroupDriver in the kubelet's configuration, SystemdCgroup in the runtime's), then retry", kubelet, r.Name, r.CgroupDriver)}
}

// certificateWarning is how long before its end a certificate is worth a word.
const certificateWarning = 14 * 24 * time.Hour

// expiringCertificates refuses to restart a component into a certificate that is over.
func expiringCertificates(p *planner) []Finding {
	if p.in.Now.IsZero() {
		return nil
	}
	var out []Finding
	for _, c := range p.in.Facts.Certs {
		left := c.NotAfter.Sub(p.in.Now)
		switch {
		case left <= 0:
			out = append(out, failure(FindingCertificateExpired, "the certificate %s ended on %s, and what is restarted would not be let in with it: renew it (kubeadm certs renew, or the kubelet's own rotation), then retry", c.Path, c.NotAfter.Format(time.DateOnly)))
		case left < certificateWarning:
			out = append(out, warning(FindingCertificateExpiring, "the certificate %s ends on %s", c.Path, c.NotAfter.Format(time.DateOnly)))
		}
	}
	return out
}

// foreignManagers names other updaters; Refit never turns them off by itself.
func foreignManagers(p *planner) []Finding {
	var out []Finding
	for _, c := range p.in.Facts.Conflicts {
		out = append(out, warning(FindingConflictingManager, "%s is active on this host too and may change packages or reboot it at any time (%s): turn it off, or leave to it what spec does not name", c.Name, firstOf(c.Detail, "no details")))
	}
	return out
}

// ownersHold says that no grant will be accepted for now.
func ownersHold(p *planner) []Finding {
	h := p.in.Facts.Hold
	if h == nil {
		return nil
	}
	return []Finding{warning(FindingHeldByOwner, "%s says %q: this host accepts no grant until its owner removes the file", h.Path, strings.TrimSpace(h.Message))}
}

// roomFor* are what is left free beside what is written.
const (
	unpackFactor = 3         // of a package's size, where the index does not say how large it unpacks
	roomSpare    = 256 << 20 // for logs, images' layers and the next minutes
	roomBoot     = 192 << 20 // a kernel and its initramfs
)

// space refuses what would fill a file system in the middle of a transaction.
func space(p *planner) []Finding {
	need := map[string]uint64{}
	boot := false
	for _, c := range p.changes {
		if c.To == "" {
			continue
		}
		size := uint64(max(c.Size, 0))
		need[p.mountOf("/var/lib/refit").Path] += 2 * size // the file, and the kept one of before
		need[p.mountOf("/usr").Path] += p.unpacked(c, size)
		boot = boot || strings.HasPrefix(c.Name, "linux-image") || strings.HasPrefix(c.Name, "kernel")
	}
	if boot {
		need[p.mountOf("/boot").Path] += roomBoot
	}
	var out []Finding
	for _, m := range p.in.Facts.Mounts {
		bytes, asked := need[m.Path]
		if m.Path != "/boot" {
			bytes += roomSpare
		}
		if asked && m.FreeBytes < bytes {
			out = append(out, failure(FindingNoSpace, "%s has %d MiB free and the plan needs %d MiB there: make room, then retry", m.Path, m.FreeBytes>>20, bytes>>20))
		}
	}
	return out
}

// unpacked is the room that a package takes once installed.
func (p *planner) unpacked(c PackageChange, size uint64) uint64 {
	for _, candidate := range p.in.Candidates {
		if candidate.Name == c.Name && candidate.Version == c.To && candidate.InstalledSize > 0 {
			return uint64(candidate.InstalledSize)
		}
	}
	return unpackFactor * size
}

// mountOf is the mount that a path is on, as far as facts name it.
func (p *planner) mountOf(path string) MountFacts {
	var best MountFacts
	for _, m := range p.in.Facts.Mounts {
		under := m.Path == "/" || path == m.Path || strings.HasPrefix(path, m.Path+"/")
		if under && len(m.Path) > len(best.Path) {
			best = m
		}
	}
	return best
}
