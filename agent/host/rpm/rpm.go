// Package rpm is rpm as Refit uses it on hosts of dnf's and of zypper's family: never through a shell,
// never with a question, never more than was asked for, and judged by what is installed
// afterwards.
//
//	Candidates  signed metadata → private state            the host's own caches stay as they are
//	Stage       exact files → stage directory, simulate    nothing on the host changes
//	Install     staged files, one transaction              nothing is fetched
//	Switch      one baseurl in one repository file
//
// Neither dnf nor zypper is run. Repositories, their keys and proxies, locks and excludes
// are read from the files that they read; metadata and packages are fetched and
// verified here, and the transaction is rpm's. So excludes and locks need not be lifted
// for it, and it is the same whichever version of them the host has.
package rpm

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
	fetchTimeout   = 5 * time.Minute
	repairTimeout  = 10 * time.Minute
	installTimeout = 20 * time.Minute
	// lockTimeout is how long another package manager may keep the lock before we give up for now.
	lockTimeout = 10 * time.Minute
)

// RPM is the package manager of one host.
type RPM struct {
	// Root of the host's files, / outside of tests.
	Root string
	// State is where Refit keeps its own files, /var/lib/refit by default, under Root.
	State string
	// Runner of programs; command.Exec by default.
	Runner command.Runner
	// LockTimeout and InstallTimeout, where the defaults do not fit.
	LockTimeout, InstallTimeout time.Duration
	// Options are added to every run of rpm on the host's database; tests need them, hosts do not.
	Options []string

	dialect dialect
}

// New returns the package manager of the host of dnf's family under root.
func New(root string) *RPM {
	return &RPM{
		Root: root, State: "/var/lib/refit", Runner: command.Exec{},
		LockTimeout: lockTimeout, InstallTimeout: installTimeout, dialect: dnf(),
	}
}

func (r *RPM) path(elements ...string) string {
	return filepath.Join(append([]string{r.Root}, elements...)...)
}

func (r *RPM) state(elements ...string) string {
	return r.path(append([]string{r.State}, elements...)...)
}

// StageDir holds the files that a plan installs, BackupDir those it would go back to.
func (r *RPM) StageDir() string { return r.state("stage") }

// BackupDir is private: only root reads it.
func (r *RPM) BackupDir() string { return r.state("backup") }

func (r *RPM) offers() packagefile.Offers { return packagefile.Offers(r.state("rpm/offers.json")) }

// rpm is the argument vector of a program of rpm on this root.
func (r *RPM) rpm(program string, args ...string) []string {
	argv := []string{program}
	if r.Root != "/" {
		argv = append(argv, "--root="+r.Root)
	}
	return append(append(argv, r.Options...), args...)
}

func (r *RPM) run(ctx context.Context, timeout time.Duration, argv []string, env ...string) (command.Result, error) {
	log := logr.FromContextOrDiscard(ctx)
	result, err := r.Runner.Run(ctx, command.Command{Argv: argv, Env: env, Timeout: timeout})
	log.V(1).Info("Ran the package manager", "program", argv[0], "exitCode", result.ExitCode, "duration", result.Duration)
	return result, err //nolint:wrapcheck // the callers say what they were doing
}
