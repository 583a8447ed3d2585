// Package apt is apt and dpkg as Refit uses them: never through a shell, never with
// a question, never more than was asked for, and judged by what is installed
// afterwards.
//
//	Candidates  signed indexes → private lists           the host's own lists stay as they are
//	Stage       exact files → stage directory, simulate  nothing on the host changes
//	Install     staged files, one transaction            nothing is fetched
//	Switch      one URI in one source file
package apt

import (
	"context"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
)

const (
	queryTimeout   = time.Minute
	updateTimeout  = 5 * time.Minute
	repairTimeout  = 10 * time.Minute
	installTimeout = 20 * time.Minute
	// lockTimeout is how long another package manager may keep the lock before we give up for now.
	lockTimeout = 10 * time.Minute
)

// Apt is the package manager of one host.
type Apt struct {
	// Root of the host's files, / outside of tests.
	Root string
	// State is where Refit keeps its own files, /var/lib/refit by default, under Root.
	State string
	// Runner of programs; command.Exec by default.
	Runner command.Runner
	// LockTimeout and InstallTimeout, where the defaults do not fit.
	LockTimeout, InstallTimeout time.Duration
	// DpkgOptions are added to every run of dpkg that changes something; tests need them, hosts do not.
	DpkgOptions []string
}

// New returns the package manager of the host under root.
func New(root string) *Apt {
	return &Apt{
		Root: root, State: "/var/lib/refit", Runner: command.Exec{},
		LockTimeout: lockTimeout, InstallTimeout: installTimeout,
	}
}

func (a *Apt) path(elements ...string) string {
	return filepath.Join(append([]string{a.Root}, elements...)...)
}

func (a *Apt) state(elements ...string) string {
	return a.path(append([]string{a.State}, elements...)...)
}

// StageDir holds the files that a plan installs, BackupDir those it would go back to.
func (a *Apt) StageDir() string { return a.state("stage") }

// BackupDir is private: only root reads it.
func (a *Apt) BackupDir() string { return a.state("backup") }

func (a *Apt) offers() packagefile.Offers { return packagefile.Offers(a.state("apt/offers.json")) }

func (a *Apt) dpkgDir() string { return a.path("var/lib/dpkg") }

// apt is the argument vector of an apt program on this root. It never tries a fetch again,
// whatever the host's configuration says: the caller does, with backoff and from the
// beginning. In an apt that resumes a download, what was verified may be replaced by
// whoever is between it and the mirror (CVE-2026-109518).
func (a *Apt) apt(program string, args ...string) []string {
	argv := []string{program, "-o", "Dpkg::Use-Pty=0", "-o", "APT::Color=0", "-o", "Acquire::Retries=0"}
	if a.Root != "/" {
		argv = append(argv, "-o", "Dir="+a.Root, "-o", "Dir::State::status="+a.path("var/lib/dpkg/status"), "-o", "Dpkg::Options::=--root="+a.Root)
	}
	for _, option := range a.DpkgOptions {
		argv = append(argv, "-o", "Dpkg::Options::="+option)
	}
	return append(argv, args...)
}

func (a *Apt) dpkg(args ...string) []string {
	argv := []string{"dpkg"}
	if a.Root != "/" {
		argv = append(argv, "--root="+a.Root)
	}
	return append(append(argv, a.DpkgOptions...), args...)
}

func (a *Apt) run(ctx context.Context, timeout time.Duration, argv []string, env ...string) (command.Result, error) {
	log := logr.FromContextOrDiscard(ctx)
	result, err := a.Runner.Run(ctx, command.Command{Argv: argv, Env: env, Timeout: timeout})
	log.V(1).Info("Ran the package manager", "program", argv[0], "exitCode", result.ExitCode, "duration", result.Duration)
	return result, err //nolint:wrapcheck // the callers say what they were doing
}
