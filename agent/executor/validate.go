package executor

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/executor/steps"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// What becomes an argument, a file name or a unit name is one plain word. apt reads a
// trailing - or + of a name as an order; a version never starts with a dash.
var (
	packageName    = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*[a-z0-9+.]$|^[A-Za-z0-9][A-Za-z0-9_.+-]*[A-Za-z0-9_]$`)
	packageVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+~:^_-]*$`)
	fileName       = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+~_%-]*$`)
	digest         = regexp.MustCompile(`^[0-9a-f]{64}$`)
	unitName       = regexp.MustCompile(`^[a-z0-9][a-z0-9@_.-]*\.service$`)
	hookName       = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$`) // as admission has it
	k8sVersion     = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*$`)
	sourcePath     = regexp.MustCompile(`^/etc/(apt/sources\.list|apt/sources\.list\.d/[^/]+\.(list|sources)|(yum\.|zypp/)repos\.d/[^/]+\.repo)$`)
	keyringName    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`) // as admission has it
	sourceWord     = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._/-]{0,63}|/)$`)          // as admission has it
	newSource      = regexp.MustCompile(`^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~:+%/-]*)?$`)
	preflightID    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// Validate says whether the executor can and may run an operation. The plan came over
// the network and over a disk: nothing in it is believed. A plan without steps is legal:
// the host came to be what was asked for while it was planned.
func Validate(op upgrade.Operation) error {
	if !journal.ValidID(op.ID) {
		return fmt.Errorf("%q is not an operation id", op.ID)
	}
	hash, err := op.Plan.ComputeHash()
	if err != nil {
		return err //nolint:wrapcheck // says what it was computing
	}
	if hash != op.Plan.Hash {
		return fmt.Errorf("the plan's content has hash %s, granted was %s", hash, op.Plan.Hash)
	}
	reboots := map[string]bool{}
	for i, s := range op.Plan.Steps {
		if err := validStep(s); err != nil {
			return fmt.Errorf("step %d of the plan (%s): %w", i+1, s.Kind, err)
		}
		if s.Kind == upgrade.StepReboot {
			if reboots[s.Reason] {
				return fmt.Errorf("step %d of the plan: a second reboot for the reason %q", i+1, s.Reason)
			}
			reboots[s.Reason] = true
		}
		if s.Kind == upgrade.StepStopSandboxes && !restartedLater(op.Plan.Steps[i+1:], steps.StoppedUnit(s)) {
			return fmt.Errorf("step %d of the plan stops %s, and no later step starts it again", i+1, steps.StoppedUnit(s))
		}
	}
	return nil
}

func restartedLater(rest []upgrade.Step, unit string) bool {
	for _, s := range rest {
		if s.Kind == upgrade.StepRestartUnit && s.Unit == unit {
			return true
		}
	}
	return false
}

func validStep(s upgrade.Step) error {
	if _, known := steps.For(s.Kind); !known {
		return errors.New("a step of this kind is not known to this program")
	}
	switch s.Kind {
	case upgrade.StepInstallPackages:
		return validInstall(s.Packages)
	case upgrade.StepHoldPackages, upgrade.StepUnholdPackages:
		return validNames(s.Packages)
	case upgrade.StepSwitchSource:
		return validSource(s.Source)
	case upgrade.StepWriteConfig:
		return validFile(s.File)
	case upgrade.StepKubeadmUpgrade:
		return validKubeadm(s.Kubeadm)
	case upgrade.StepKubeadmRenewCertificates:
		return validRenewal(s.Renewal)
	case upgrade.StepGuardEtcd:
		return validAccepted(s.Accept)
	case upgrade.StepRestartStaticPod:
		if !steps.StaticPod(s.Pod) {
			return fmt.Errorf("%q is no component of a control plane", s.Pod)
		}
	case upgrade.StepRestoreCertificates:
		return errors.New("a step of this kind is for a rollback")
	case upgrade.StepRestartUnit:
		return match("unit", s.Unit, unitName)
	case upgrade.StepStopSandboxes:
		return match("unit", steps.StoppedUnit(s), unitName)
	case upgrade.StepRunHook:
		return match("hook", s.Hook, hookName)
	}
	return nil
}

func validAccepted(findings []string) error {
	for _, id := range findings {
		if err := match("finding to accept", id, preflightID); err != nil {
			return err
		}
	}
	return nil
}

func match(what, value string, pattern *regexp.Regexp) error {
	if !pattern.MatchString(value) || strings.Contains(value, "..") {
		return fmt.Errorf("%s %q is not allowed", what, value)
	}
	return nil
}

func validNames(changes []upgrade.PackageChange) error {
	if len(changes) == 0 {
		return errors.New("no packages are named")
	}
	for _, c := range changes {
		if err := match("package name", c.Name, packageName); err != nil {
			return err
		}
	}
	return nil
}

func validInstall(changes []upgrade.PackageChange) error {
	if err := validNames(changes); err != nil {
		return err
	}
	for _, c := range changes {
		if c.To == "" {
			continue
		}
		if err := errors.Join(
			match("version of "+c.Name, c.To, packageVersion),
			match("file of "+c.Name, c.File, fileName),
			match("digest of "+c.Name, c.SHA256, digest),
		); err != nil {
			return err
		}
	}
	return nil
}

func validSource(s *upgrade.SourceChange) error {
	if s == nil {
		return errors.New("no source is named")
	}
	if !sourcePath.MatchString(s.File) || path.Clean(s.File) != s.File {
		return fmt.Errorf("source file %q is not one of a package manager's", s.File)
	}
	for _, uri := range []string{s.From, s.To} {
		if strings.ContainsAny(uri, "\"'`\\") || strings.ContainsFunc(uri, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
			return fmt.Errorf("source URI %q has characters that none has", uri)
		}
	}
	if s.SignedBy != "" {
		if err := match("keyring", s.SignedBy, keyringName); err != nil {
			return err
		}
	}
	for _, word := range slices.Concat(s.Suites, s.Components) {
		if err := match("suite or component", word, sourceWord); err != nil {
			return err
		}
	}
	if s.From == "" && !newSource.MatchString(s.To) {
		return fmt.Errorf("source URI %q: a new source is an http or https URI without credentials and query", s.To)
	}
	return nil
}

func validFile(f *upgrade.FileChange) error {
	switch {
	case f == nil:
		return errors.New("no file is named")
	case !steps.PlannedPath(f.Path):
		return fmt.Errorf("file %q is not one that a plan may write", f.Path)
	case f.Mode&^0o777 != 0:
		return fmt.Errorf("mode %#o of %s is not allowed", f.Mode, f.Path)
	case f.Remove:
		return nil
	case strings.HasPrefix(f.Path, upgrade.KubeletDropInDir+"/"):
		return upgrade.CheckKubeletDropIn(f.Content) //nolint:wrapcheck // says what of the file
	case strings.HasSuffix(path.Dir(f.Path), ".service.d"):
		return upgrade.CheckUnitDropIn(f.Content) //nolint:wrapcheck // says what of the file
	}
	return nil
}

func validRenewal(r *upgrade.Renewal) error {
	if r == nil {
		return errors.New("it does not say how long certificates must be good for")
	}
	if d, err := time.ParseDuration(r.Before); err != nil || d <= 0 {
		return fmt.Errorf("%q is not a time that certificates can be good for", r.Before)
	}
	return nil
}

func validKubeadm(k *upgrade.KubeadmUpgrade) error {
	if k == nil {
		return errors.New("no version is named")
	}
	if err := match("version", k.Version, k8sVersion); err != nil {
		return err
	}
	for _, id := range k.IgnorePreflightErrors {
		if err := match("preflight error id", id, preflightID); err != nil {
			return err
		}
		if strings.EqualFold(id, "all") {
			return errors.New("preflight errors are ignored one by one, never all")
		}
	}
	for _, phase := range k.SkipPhases {
		if !upgrade.SkippablePhase(phase) {
			return fmt.Errorf("kubeadm's phase %q is not one that can be left out", phase)
		}
	}
	return nil
}
