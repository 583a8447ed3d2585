package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Reasons of the condition UpToDate.
const (
	ReasonUpToDate    = "UpToDate"
	ReasonOutdated    = "Outdated"
	ReasonAheadOfSpec = "AheadOfSpec"
	ReasonNotReported = "NotReported"
)

// UpToDate compares the wish with what is observed, vendor suffixes aside, and says
// in which fields they differ. What is not understood is never up to date.
func UpToDate(spec v1alpha1.MachineSpec, status v1alpha1.MachineStatus) (ok bool, reason, message string) {
	if status.Versions == nil {
		return false, ReasonNotReported, "the agent of this host has not reported yet"
	}
	if missesRole(spec.Roles, reportedSign(status.Versions)) {
		return false, ReasonRoleMismatch, roleMissing
	}
	d := &differences{}
	if w := spec.Versions; w != nil {
		d.kubernetes("kubelet", string(w.Kubelet), status.Versions.Kubelet)
		d.controlPlane(string(w.ControlPlane), status.Versions.ControlPlane)
		d.release("etcd", string(w.Etcd), status.Versions.Etcd)
		d.runtime(w.ContainerRuntime, status.Versions.ContainerRuntime)
	}
	d.outdated = append(d.outdated, outdatedPackages(spec, status)...)
	if status.OS != nil {
		d.outdated = append(d.outdated, status.OS.Unmet...)
	}
	d.outdated = append(d.outdated, pendingSecurity(spec, status)...)
	d.configuration(spec, status.Kubelet)
	if rebootOutstanding(spec, status) {
		d.outdated = append(d.outdated, firstOf(status.OS.RebootStays, "the host asks for a reboot"))
	}
	if due := RenewalReported(spec, status); due != "" {
		d.outdated = append(d.outdated, due)
	}
	return d.verdict()
}

// differences collects where observed and wished differ.
type differences struct{ unknown, outdated, ahead []string }

func (d *differences) verdict() (ok bool, reason, message string) {
	all := strings.Join(append(append(append([]string{}, d.unknown...), d.outdated...), d.ahead...), "; ")
	switch {
	case len(d.unknown) > 0:
		return false, ReasonVersionUnknown, all
	case len(d.outdated) > 0:
		return false, ReasonOutdated, all
	case len(d.ahead) > 0:
		return false, ReasonAheadOfSpec, all
	}
	return true, ReasonUpToDate, "what runs is what spec wants"
}

func (d *differences) kubernetes(field, wish, seen string) {
	if wish == "" {
		return
	}
	want, _ := ParseKubernetes(wish)
	have, _ := ParseKubernetes(seen)
	d.compare(field, wish, seen, want, have)
}

func (d *differences) release(field, wish, seen string) {
	if wish == "" {
		return
	}
	want, _ := ParseRelease(wish)
	have, _ := ParseRuntime(seen)
	d.compare(field, wish, seen, want, have.Version)
}

func (d *differences) compare(field, wish, seen string, want, have Version) {
	switch {
	case !have.Known() || !want.Known():
		d.unknown = append(d.unknown, fmt.Sprintf("%s reports %q, wanted %s", field, seen, wish))
	case have.LessThan(want):
		d.outdated = append(d.outdated, fmt.Sprintf("%s runs %s, wanted %s", field, seen, wish))
	case want.LessThan(have):
		d.ahead = append(d.ahead, fmt.Sprintf("%s runs %s, newer than the wanted %s", field, seen, wish))
	}
}

// controlPlane compares each component: one that lags is an unfinished upgrade.
func (d *differences) controlPlane(wish string, seen *v1alpha1.ObservedControlPlane) {
	if wish == "" {
		return
	}
	if seen == nil {
		seen = &v1alpha1.ObservedControlPlane{}
	}
	d.kubernetes("API server", wish, seen.APIServer)
	if seen.ControllerManager != "" {
		d.kubernetes("controller manager", wish, seen.ControllerManager)
	}
	if seen.Scheduler != "" {
		d.kubernetes("scheduler", wish, seen.Scheduler)
	}
}

func (d *differences) runtime(wish *v1alpha1.ContainerRuntime, seen *v1alpha1.ObservedRuntime) {
	if wish == nil {
		return
	}
	if seen == nil {
		seen = &v1alpha1.ObservedRuntime{}
	}
	if seen.Name != "" && seen.Name != string(wish.Name) {
		d.outdated = append(d.outdated, fmt.Sprintf("the container runtime is %s, wanted %s", seen.Name, wish.Name))
		return
	}
	d.release(string(wish.Name), string(wish.Version), firstOf(seen.Version, seen.Text))
}

// outdatedPackages says which packages of spec.os are not as they are wished to be.
func outdatedPackages(spec v1alpha1.MachineSpec, status v1alpha1.MachineStatus) []string {
	if spec.OS == nil {
		return nil
	}
	seen, order := observedPackages(status)
	var out []string
	for _, p := range spec.OS.Packages {
		have, looked := seen[p.Name]
		switch {
		case p.State == v1alpha1.PackageAbsent && isProtected(p.Name, kernelOf(status)) && !expendable(p.Name, status):
			out = append(out, fmt.Sprintf("package %s is wanted absent, and the host needs it", p.Name))
		case p.State == v1alpha1.PackageAbsent && !looked:
			out = append(out, fmt.Sprintf("package %s is wanted absent, and it is not known whether it is installed", p.Name))
		case p.State == v1alpha1.PackageAbsent && have != "":
			out = append(out, fmt.Sprintf("package %s %s is installed, wanted absent", p.Name, have))
		case p.State != v1alpha1.PackageAbsent && have == "":
			out = append(out, fmt.Sprintf("package %s is absent, wanted %s", p.Name, firstOf(p.Version, "present")))
		case have != "" && !satisfies(order, have, p.Version):
			out = append(out, fmt.Sprintf("package %s is %s, wanted %s", p.Name, have, p.Version))
		}
	}
	return out
}

// expendable says that the owner of the host lets go of a package that hosts are held to need.
func expendable(name string, status v1alpha1.MachineStatus) bool {
	return status.OS != nil && slices.ContainsFunc(status.OS.Packages, func(p v1alpha1.ObservedPackage) bool { return p.Name == name && p.Expendable })
}

func kernelOf(status v1alpha1.MachineStatus) string {
	if status.OS == nil {
		return ""
	}
	return status.OS.Kernel
}

// observedPackages are the reported packages, and how their manager orders versions.
func observedPackages(status v1alpha1.MachineStatus) (map[string]string, Ordering) {
	seen := map[string]string{}
	if status.OS == nil {
		return seen, CompareDeb
	}
	for _, p := range status.OS.Packages {
		seen[p.Name] = p.Version
	}
	switch status.OS.ID {
	case "debian", "ubuntu", "raspbian", "linuxmint":
		return seen, CompareDeb
	}
	return seen, equalOnly
}

// equalOnly tells equal from different, for systems whose package manager the status does not name.
func equalOnly(a, b string) int {
	if a == b || CompareDeb(a, b) == 0 && CompareRPM(a, b) == 0 {
		return 0
	}
	return strings.Compare(a, b)
}

// rebootOutstanding says that the host asks for a reboot and spec, in so many words, wants it to have one.
func rebootOutstanding(spec v1alpha1.MachineSpec, status v1alpha1.MachineStatus) bool {
	return spec.OS != nil && spec.OS.Reboot == v1alpha1.RebootIfRequired && status.OS != nil && status.OS.RebootRequired
}

// PartlyUpToDate is UpToDate for a part of a spec: what is observed of the other parts is no difference.
func PartlyUpToDate(part v1alpha1.MachineTemplateSpec, status v1alpha1.MachineStatus) (ok bool, reason, message string) {
	if part.Kubelet == nil {
		status.Kubelet = nil
	}
	if part.OS == nil && status.OS != nil {
		os := *status.OS
		os.Unmet = nil
		status.OS = &os
	}
	return UpToDate(v1alpha1.MachineSpec{MachineTemplateSpec: part}, status)
}

// osPending says whether spec.os, or what Refit left on the host, asks for something that is not observed.
func osPending(m *v1alpha1.Machine) bool {
	if m.Spec.OS == nil {
		return m.Status.OS != nil && len(m.Status.OS.Unmet) > 0
	}
	status := m.Status
	if status.OS != nil && status.OS.RebootStays != "" {
		os := *status.OS
		os.RebootRequired, status.OS = false, &os // no hop ends that
	}
	met, _, _ := PartlyUpToDate(v1alpha1.MachineTemplateSpec{OS: m.Spec.OS}, status)
	return !met
}
