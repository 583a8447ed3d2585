package steps

import (
	"context"
	"io/fs"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// Packages is the package manager of the host.
type Packages interface {
	// Install makes exactly these changes in one transaction, from files in a directory.
	// It simulates and checks digests first; no maintainer script restarts a service.
	Install(ctx context.Context, changes []upgrade.PackageChange, stageDir string) error
	// SetHold puts packages on hold, or takes them off.
	SetHold(ctx context.Context, names []string, held bool) error
	// Query is the state of packages; one that is not installed is left out or has no version.
	Query(ctx context.Context, names []string) ([]upgrade.InstalledPackage, error)
	// Repair finishes what an interruption left half done.
	Repair(ctx context.Context) error
}

// Sources is the configuration of package repositories.
type Sources interface {
	// Switch points a source to another repository; From and To swapped undo it.
	Switch(ctx context.Context, change upgrade.SourceChange) error
}

// Units is the service manager.
type Units interface {
	Restart(ctx context.Context, unit string) error
	Stop(ctx context.Context, unit string) error
	Start(ctx context.Context, unit string) error
	Reload(ctx context.Context) error
	Active(ctx context.Context, unit string) (bool, error)
}

// Runtime is the container runtime that answers on its socket.
type Runtime interface {
	Version(ctx context.Context) (name, version string, err error)
	WaitReady(ctx context.Context, timeout time.Duration) error
	// StopSandboxes stops all that run and says how many there were.
	StopSandboxes(ctx context.Context) (int, error)
	// ProbeSandbox starts a real sandbox and removes it.
	ProbeSandbox(ctx context.Context) error
	Pull(ctx context.Context, image string) error
}

// Kubeadm is the kubeadm program of the host.
type Kubeadm interface {
	Upgrade(ctx context.Context, upgrade upgrade.KubeadmUpgrade) error
	// RenewCertificates renews all that kubeadm manages; what it cannot renew is no error.
	RenewCertificates(ctx context.Context) error
	// Unfinished is the last run on this control plane, if it did not end well; nil when it did.
	Unfinished(ctx context.Context) (*upgrade.UnfinishedFacts, error)
}

// Kubelet is the kubelet that runs.
type Kubelet interface {
	// Version of the running process, not of the program on disk.
	Version(ctx context.Context) (string, error)
	Healthz(ctx context.Context) error
}

// ControlPlane is the API server of this very host.
type ControlPlane interface {
	Version(ctx context.Context) (string, error)
	Livez(ctx context.Context) error
}

// StaticPods are the components of the control plane that the kubelet runs from manifests on disk.
type StaticPods interface {
	// Container is the id of the container that runs for a component; "" when none does.
	Container(ctx context.Context, component string) (string, error)
	// Stop ends a container in good order; the kubelet starts another one.
	Stop(ctx context.Context, container string) error
	// Answers says that a component is well, and serves the certificate that is on disk where it serves one of kubeadm's.
	Answers(ctx context.Context, component string) error
}

// Facts is everything that the host says of itself.
type Facts interface {
	Facts(ctx context.Context, extraPackages []string) (upgrade.Facts, error)
}

// Files are the few files that steps write, and the artefacts they use.
type Files interface {
	// Read is fs.ErrNotExist for a file that is not there.
	Read(path string) (content []byte, mode fs.FileMode, err error)
	// Write replaces the file atomically and durably.
	Write(path string, content []byte, mode fs.FileMode) error
	// Remove is no error for a file that is not there.
	Remove(path string) error
	// Digest is the SHA-256 of a file in hex.
	Digest(path string) (string, error)
	// Sync makes durable whatever anybody has written to the filesystem of a file or directory.
	Sync(path string) error
}

// Backups finds the previous version of a package among the files kept for a rollback.
type Backups interface {
	// Find is the file name within the backup directory and its digest; fs.ErrNotExist when it was not kept.
	Find(ctx context.Context, name, version string) (file, sha256 string, err error)
}

// Hooks are root-owned programs of the host's owner.
type Hooks interface {
	// Run runs one with some variables, and returns the end of what it printed.
	Run(ctx context.Context, name string, env []string) (output string, err error)
}

// Policy is what the owner of the host allows, read anew.
type Policy interface {
	// Read is the policy now; nil where there is none. One that cannot be gone by says so.
	Read() *upgrade.PolicyFacts
}

// Boot is the boot that the host is in.
type Boot interface {
	ID(ctx context.Context) (string, error)
	// Reboot asks the service manager to reboot; it returns before the host goes down.
	Reboot(ctx context.Context) error
}

// Host is everything that steps may do to a host.
type Host struct {
	Packages     Packages
	Sources      Sources
	Units        Units
	Runtime      Runtime
	Kubeadm      Kubeadm
	Kubelet      Kubelet
	ControlPlane ControlPlane
	StaticPods   StaticPods
	Etcd         Etcd
	Facts        Facts
	Files        Files
	Backups      Backups
	Hooks        Hooks
	Policy       Policy
	Boot         Boot
	// StageDir and BackupDir hold the packages to install, and those to go back to.
	StageDir, BackupDir string
	// HoldPath is the veto of the host's owner.
	HoldPath string
}
