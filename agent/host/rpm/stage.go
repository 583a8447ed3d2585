package rpm

import (
	"context"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Stage makes everything ready that the changes need, without changing the host: the
// exact files in the stage directory, the files to go back to in the backup directory,
// and a simulation of the transaction. Findings are warnings; a refusal is an
// upgrade.Blocked, and any other error may pass.
func (r *RPM) Stage(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.Finding, error) {
	if err := checkChanges(changes); err != nil {
		return nil, err
	}
	if err := files.PrivateDir(r.state("rpm")); err != nil {
		return nil, err
	}
	findings, err := r.store().Stage(ctx, changes)
	if err != nil {
		return findings, err
	}
	return findings, r.simulate(ctx, changes, r.StageDir())
}

func (r *RPM) store() packagefile.Store {
	return packagefile.Store{
		Kind: kind, StageDir: r.StageDir(), BackupDir: r.BackupDir(), Downloads: r.state("rpm/download"),
		Obtain: r.obtain, Label: r.label, OnHost: r.onHost, Offered: r.search,
	}
}

// obtain fetches a package, with the digest that the metadata gives, and checks its signature.
func (r *RPM) obtain(ctx context.Context, uri, sha256, target string) error {
	from, a, err := r.originOf(uri)
	if err != nil {
		return err
	}
	if err := r.fetch(ctx, a, uri, sha256, target); err != nil {
		return err
	}
	rings, err := r.keys(ctx, from.SignedBy)
	if err != nil {
		return err
	}
	return r.checkPackage(ctx, target, rings)
}
