package packages

import (
	"context"

	"github.com/refit-dev/refit/agent/host/apt"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// unsupported is a host on which no package is ever looked at or changed. Every answer is
// the same refusal; only the names of Refit's own directories are what they are elsewhere.
type unsupported struct {
	host *apt.Apt
	why  string
}

func (u *unsupported) refusal() error {
	return packagefile.Refuse(upgrade.ReasonUnsupportedOS, "packages of this host are left alone: %s", u.why)
}

func (u *unsupported) StageDir() string  { return u.host.StageDir() }
func (u *unsupported) BackupDir() string { return u.host.BackupDir() }

func (u *unsupported) Query(context.Context, []string) ([]upgrade.InstalledPackage, error) {
	return nil, u.refusal()
}

func (u *unsupported) Holds(context.Context) ([]string, error)  { return nil, u.refusal() }
func (u *unsupported) Broken(context.Context) ([]string, error) { return nil, u.refusal() }

func (u *unsupported) ChangedBy([]upgrade.InstalledPackage) (map[string]string, error) {
	return nil, u.refusal()
}

func (u *unsupported) LockHolder() (*upgrade.LockFacts, error) { return nil, u.refusal() }

func (u *unsupported) Sources(context.Context, []string) ([]upgrade.SourceFacts, error) {
	return nil, u.refusal()
}

func (u *unsupported) Indexes(context.Context, []string) ([]upgrade.IndexFacts, error) {
	return nil, u.refusal()
}

func (u *unsupported) Candidates(context.Context, upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	return nil, u.refusal()
}

func (u *unsupported) Switch(context.Context, upgrade.SourceChange) error { return u.refusal() }

func (u *unsupported) Stage(context.Context, []upgrade.PackageChange) ([]upgrade.Finding, error) {
	return nil, u.refusal()
}

func (u *unsupported) Unpack(context.Context, upgrade.PackageChange) (string, func() error, error) {
	return "", nil, u.refusal()
}

func (u *unsupported) Find(context.Context, string, string) (string, string, error) {
	return "", "", u.refusal()
}

func (u *unsupported) Install(context.Context, []upgrade.PackageChange, string) error {
	return u.refusal()
}

func (u *unsupported) SetHold(context.Context, []string, bool) error { return u.refusal() }
func (u *unsupported) Repair(context.Context) error                  { return u.refusal() }
