package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/host/waiting"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// preflight looks once more, under the grant and before the first disruptive step:
// between plan and grant the host may have been changed, rebooted or put on hold. It
// changes nothing, except that it finishes an interrupted package transaction.
func preflight(ctx context.Context, r Run) (string, error) {
	if err := heldByOwner(r.Host); err != nil {
		return "", err
	}
	facts, err := settledFacts(ctx, r)
	if err != nil {
		return "", err
	}
	if r.Step.Expect != nil {
		if err := asPlanned(ctx, r, facts, *r.Step.Expect); err != nil {
			return "", err
		}
	}
	return "", staged(r)
}

func heldByOwner(h *Host) error {
	if h.HoldPath == "" {
		return nil
	}
	content, _, err := h.Files.Read(h.HoldPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil { // doubt is a veto
		return fail("HeldByOwner", "%s is there and cannot be read (%v): the host's owner wants no change; remove it to let work go on", h.HoldPath, err)
	}
	return fail("HeldByOwner", "%s is there (%q): the host's owner wants no change; remove the file to let work go on",
		h.HoldPath, strings.TrimSpace(string(content)))
}

// settledFacts are the facts once nobody holds the package lock and the package
// database is whole.
func settledFacts(ctx context.Context, r Run) (upgrade.Facts, error) {
	var facts upgrade.Facts
	repaired, start := false, time.Now()
	err := awaitSlowly(ctx, r.Poll, func(ctx context.Context) (err error) {
		if facts, err = r.Host.Facts.Facts(ctx, touched(r.Plan)); err != nil {
			return fmt.Errorf("reading the facts of the host: %w", err)
		}
		if l := facts.Packages.Lock; l != nil {
			waiting.For(ctx, l.Waited(start))
			return fail(upgrade.ReasonPackageLockHeld, "%s; it is waited for and never ended by Refit", l)
		}
		waiting.Over(ctx)
		if len(facts.Packages.Broken) == 0 || repaired {
			return answering(facts, r.Step.Expect)
		}
		repaired = true
		if err := r.Host.Packages.Repair(ctx); err != nil {
			return fmt.Errorf("repairing the package database: %w", err)
		}
		return fail("PackageDBBroken", "repaired, looking again")
	})
	if err != nil {
		return facts, err
	}
	if broken := facts.Packages.Broken; len(broken) > 0 {
		return facts, fail("PackageDBBroken", "packages %s are half installed or half configured and a repair did not help; see `dpkg --audit`, or on dnf hosts `rpm -Va`",
			strings.Join(broken, ", "))
	}
	return facts, nil
}

// answering says whether everything that the plan was made for says what it runs. What
// does not is waited for: after a reset of the host the units come up beside this step.
func answering(f upgrade.Facts, want *upgrade.Expectation) error {
	if want == nil {
		return nil
	}
	for _, c := range []struct{ what, got, want string }{
		{"kubelet", runningKubelet(f), want.Kubelet},
		{"container runtime", runningRuntime(f), want.Runtime},
		{"API server", runningAPIServer(f), want.ControlPlane},
		{"member of etcd", runningEtcd(f), want.Etcd},
	} {
		if c.want != "" && c.got == "" {
			return fail("HostChanged", "the %s does not say what it runs, the plan was made for %s%s: see that it is up, then a new plan is needed", c.what, c.want, problems(f))
		}
	}
	return nil
}

// touched are the names of all packages that a plan changes.
func touched(p upgrade.Plan) []string {
	var names []string
	seen := map[string]bool{}
	for _, s := range p.Steps {
		for _, c := range s.Packages {
			if !seen[c.Name] {
				seen[c.Name] = true
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// Touched are the names of all packages that a plan changes.
func Touched(p upgrade.Plan) []string { return touched(p) }

// asPlanned says whether the host still is what the plan was made for.
func asPlanned(ctx context.Context, r Run, f upgrade.Facts, want upgrade.Expectation) error {
	if want.BootID != "" && f.Host.BootID != want.BootID {
		return fail("HostRebooted", "the host was rebooted since the plan was made (boot %s, planned in %s): a new plan is needed", f.Host.BootID, want.BootID)
	}
	for _, c := range []struct {
		what, got, want string
		same            func(a, b string) bool
	}{
		{"kubelet", runningKubelet(f), want.Kubelet, upgrade.SameKubernetes},
		{"container runtime", runningRuntime(f), want.Runtime, upgrade.SameRuntime},
		{"API server", runningAPIServer(f), want.ControlPlane, upgrade.SameKubernetes},
		{"member of etcd", runningEtcd(f), want.Etcd, upgrade.SameRuntime},
	} {
		if c.want != "" && !c.same(c.got, c.want) {
			return fail("HostChanged", "the running %s is %q, the plan was made for %s%s: a new plan is needed", c.what, c.got, c.want, problems(f))
		}
	}
	if other := r.Plan.StartsOther(f); other != "" {
		return fail("HostChanged", "%s: a new plan is needed", other)
	}
	for _, c := range want.Packages {
		if err := packageIs(ctx, r.Host, c.Name, c.From); err != nil {
			return err
		}
	}
	return nil
}

func packageIs(ctx context.Context, h *Host, name, version string) error {
	now, err := query(ctx, h, []string{name})
	if err != nil {
		return err
	}
	if now[name] != version {
		return fail("HostChanged", "package %s is at %q, the plan was made for %q: a new plan is needed", name, now[name], version)
	}
	return nil
}

func problems(f upgrade.Facts) string {
	if len(f.Problems) == 0 {
		return ""
	}
	texts := make([]string, 0, len(f.Problems))
	for _, p := range f.Problems {
		texts = append(texts, p.Field+": "+p.Message)
	}
	return " (" + strings.Join(texts, "; ") + ")"
}

func runningKubelet(f upgrade.Facts) string {
	if f.Kubelet == nil {
		return ""
	}
	return f.Kubelet.Running
}

func runningRuntime(f upgrade.Facts) string {
	if f.Runtime == nil {
		return ""
	}
	return f.Runtime.Running
}

func runningAPIServer(f upgrade.Facts) string {
	if f.Control == nil {
		return ""
	}
	return f.Control.APIServer
}

func runningEtcd(f upgrade.Facts) string {
	if version := f.Versions().Etcd; version != v1alpha1.Unknown {
		return version
	}
	return ""
}

// staged says that every file the plan installs is there and is the one that was planned.
func staged(r Run) error {
	for _, s := range r.Plan.Steps {
		if s.Kind != upgrade.StepInstallPackages {
			continue
		}
		for _, c := range s.Packages {
			if c.To == "" {
				continue
			}
			got, err := r.Host.Files.Digest(filepath.Join(r.PackageDir, c.File))
			if err != nil {
				return fail("NotStaged", "%s %s is not staged: %v", c.Name, c.To, err)
			}
			if got != c.SHA256 {
				return fail("DigestMismatch", "the staged file of %s %s has digest %s, planned %s", c.Name, c.To, got, c.SHA256)
			}
		}
	}
	return nil
}
