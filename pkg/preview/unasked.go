package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// forget takes back what facts do not say: a package that is not among the installed ones
// is absent only where it was looked for.
func (h *host) forget() {
	if os := h.Machine.Status.OS; !h.reported && os != nil {
		os.Packages = slices.DeleteFunc(os.Packages, func(p v1alpha1.ObservedPackage) bool { return p.Version == "" && !h.lookedFor(p.Name) })
	}
}

// lookedFor says that the facts, or the Machine's agent where there are none, looked for a package.
func (h *host) lookedFor(name string) bool {
	if h.reported {
		os := h.Machine.Status.OS
		return os != nil && slices.ContainsFunc(os.Packages, func(p v1alpha1.ObservedPackage) bool { return p.Name == name })
	}
	return slices.ContainsFunc(h.facts.Packages.Installed, func(p upgrade.InstalledPackage) bool { return p.Name == name }) ||
		slices.ContainsFunc(h.Facts.Packages.Installed, func(p upgrade.InstalledPackage) bool { return p.Name == name }) ||
		slices.ContainsFunc(h.facts.Packages.Indexes, func(i upgrade.IndexFacts) bool { return slices.Contains(i.Packages, name) })
}

// unasked are the packages that a target wants absent and that nobody has looked for.
func (h *host) unasked(t v1alpha1.Target) []string {
	if !t.OS || h.Machine.Spec.OS == nil {
		return nil
	}
	var out []string
	for _, p := range h.Machine.Spec.OS.Packages {
		if p.State == v1alpha1.PackageAbsent && !h.lookedFor(p.Name) {
			out = append(out, p.Name)
		}
	}
	return out
}

func unaskedMessage(names []string) string {
	return fmt.Sprintf("spec.os.packages wants %s absent, and nobody has looked whether that is installed, so it is not known what is to be done, and the plan has no hash: give the facts that refit-agent facts --package %s prints on this host", strings.Join(names, ", "), strings.Join(names, " --package "))
}
