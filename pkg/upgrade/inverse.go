package upgrade

import "slices"

// Inverse is the step that undoes a step, and false where there is none: either
// there is nothing to undo (Preflight, Verify, Stage, hooks), or it cannot be undone, and
// the step says why in Irreversible. What an inverse installs is taken from where the
// stage kept the packages that were there before; its files are therefore not named.
func Inverse(s Step) (Step, bool) {
	switch s.Kind {
	case StepInstallPackages:
		return Step{Kind: StepInstallPackages, Packages: swapped(s.Packages)}, true
	case StepSwitchSource:
		c := s.Source.Back()
		return Step{Kind: StepSwitchSource, Source: &c}, true
	case StepUnholdPackages:
		return Step{Kind: StepHoldPackages, Packages: slices.Clone(s.Packages)}, true
	case StepHoldPackages:
		return unheldAgain(s.Packages)
	case StepStopSandboxes:
		return Step{Kind: StepRestartUnit, Unit: s.Unit}, s.Unit != ""
	case StepKubeadmRenewCertificates:
		return Step{Kind: StepRestoreCertificates}, true
	case StepReloadUnits, StepRestartUnit, StepRestartStaticPod:
		return s, true
	}
	return Step{}, false
}

// swapped turns changes around; the later of a transaction are undone first.
func swapped(changes []PackageChange) []PackageChange {
	var out []PackageChange
	for _, c := range slices.Backward(changes) {
		out = append(out, PackageChange{Name: c.Name, From: c.To, To: c.From, Held: c.Held})
	}
	return out
}

// unheldAgain frees every package of a hold, so that the one before it can be put back.
// The hold that was there at first comes back with the inverse of its UnholdPackages.
func unheldAgain(packages []PackageChange) (Step, bool) {
	return Step{Kind: StepUnholdPackages, Packages: slices.Clone(packages)}, true
}
