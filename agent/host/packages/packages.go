// Package packages picks the package manager of a host by what its os-release says:
//
//	apt     → agent/host/apt
//	dnf     → agent/host/rpm
//	zypper  → agent/host/rpm, with the files of SUSE
//	others  → a refusal with the reason UnsupportedOS, whatever is asked
//
// So is a host whose /usr is read-only: its packages change only in a snapshot or an image
// for the next boot, which no step here makes.
//
// All of them do the same to a host: signed indexes to private state, exact files to
// the stage directory, one simulated and then one real transaction from those files.
package packages

import (
	"context"
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/agent/host/apt"
	"github.com/refit-dev/refit/agent/host/osrelease"
	"github.com/refit-dev/refit/agent/host/rpm"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Database is what is installed, and what of it may not change. Nothing is fetched.
type Database interface {
	// Query is the state of packages; one that is not installed is left out.
	Query(ctx context.Context, names []string) ([]upgrade.InstalledPackage, error)
	// Holds are the packages that are on hold, in whatever way the host does that.
	Holds(ctx context.Context) ([]string, error)
	// Broken are the packages that an interrupted transaction left half done.
	Broken(ctx context.Context) ([]string, error)
	// ChangedBy tells which command brought the versions that are installed, where a log has it.
	ChangedBy(installed []upgrade.InstalledPackage) (map[string]string, error)
	LockHolder() (*upgrade.LockFacts, error)
}

// Repositories are those that the host is configured with, and those that a plan asks for.
type Repositories interface {
	Sources(ctx context.Context, packages []string) ([]upgrade.SourceFacts, error)
	// Indexes are what the host's own copies of the indexes offer.
	Indexes(ctx context.Context, packages []string) ([]upgrade.IndexFacts, error)
	// Candidates come from the repositories' signed metadata; the host's own caches stay as they are.
	Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error)
	Switch(ctx context.Context, change upgrade.SourceChange) error
}

// Files are the package files that are staged, and those that are kept for going back.
type Files interface {
	Stage(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.Finding, error)
	Unpack(ctx context.Context, change upgrade.PackageChange) (dir string, remove func() error, err error)
	Find(ctx context.Context, name, version string) (file, sha256 string, err error)
	StageDir() string
	BackupDir() string
}

// Transactions are what changes packages.
type Transactions interface {
	Install(ctx context.Context, changes []upgrade.PackageChange, dir string) error
	SetHold(ctx context.Context, names []string, held bool) error
	Repair(ctx context.Context) error
}

// Manager is the package manager of one host.
type Manager interface {
	Database
	Repositories
	Files
	Transactions
}

var (
	_ Manager = (*apt.Apt)(nil)
	_ Manager = (*rpm.RPM)(nil)
	_ Manager = (*unsupported)(nil)
)

// Of returns the package manager of the host under root.
func Of(root string) Manager {
	release, err := osrelease.Read(root)
	if err != nil {
		return &unsupported{host: apt.New(root), why: err.Error()}
	}
	return For(root, release)
}

// For returns the package manager of a host whose system is known.
func For(root string, release osrelease.Release) Manager {
	if readOnly(root) {
		return &unsupported{host: apt.New(root), why: "its /usr is read-only, as that of a transactional or image-based system (MicroOS, SLE Micro, Fedora CoreOS): " +
			"packages change there only for the next boot, with transactional-update or rpm-ostree, which Refit does not do"}
	}
	switch release.Family {
	case osrelease.Apt:
		return apt.New(root)
	case osrelease.DNF:
		return rpm.New(root)
	case osrelease.Zypper:
		return rpm.NewZypper(root)
	}
	return &unsupported{host: apt.New(root), why: "its package manager is neither apt, dnf nor zypper, as far as os-release tells"}
}

// readOnly says that nobody could install a package: the file system of /usr, its mount
// or its subvolume is read-only. The sandbox of a unit may be the reason too, so this is
// for the executor, which has none.
func readOnly(root string) bool {
	return errors.Is(unix.Access(filepath.Join(root, "usr"), unix.W_OK), unix.EROFS)
}
