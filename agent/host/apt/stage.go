package apt

import (
	"context"
	"errors"
	"strings"

	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Stage makes everything ready that the changes need, without changing the host: the
// exact files in the stage directory, the files to go back to in the backup
// directory, and a simulation of the transaction. Findings are warnings; a refusal is
// an upgrade.Blocked, and any other error may pass.
func (a *Apt) Stage(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.Finding, error) {
	if err := kind.CheckChanges(changes); err != nil {
		return nil, err
	}
	findings, err := a.store().Stage(ctx, changes)
	if err != nil {
		return findings, err
	}
	return findings, a.simulate(ctx, changes, a.StageDir(), true)
}

func (a *Apt) store() packagefile.Store {
	return packagefile.Store{
		Kind: kind, StageDir: a.StageDir(), BackupDir: a.BackupDir(), Downloads: a.state("apt/download"),
		Obtain: a.fetch, Label: a.control, OnHost: a.onHost, Offered: a.indexed,
	}
}

func cutTwo(text string) (first, second string, err error) {
	fields := strings.Split(text, "\t")
	if len(fields) < 2 {
		return "", "", errors.New("reading a package file: no name and version in it")
	}
	return fields[0], fields[1], nil
}
