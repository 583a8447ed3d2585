package apt

import (
	"errors"
	"time"

	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// prune removes what no plan and no rollback will ask for any more, so that a host
// that is upgraded for years does not fill up.
func (a *Apt) prune(changes []upgrade.PackageChange, now time.Time) error {
	needed := map[string]bool{}
	for _, c := range changes {
		needed[c.File] = true
		needed[fileName(c.Name, c.From)] = true
	}
	return errors.Join(
		packagefile.RemoveUnneeded(a.StageDir(), now.Add(-packagefile.StagedFor), packagefile.MaxUnneeded, needed),
		packagefile.RemoveUnneeded(a.BackupDir(), now.Add(-packagefile.KeptFor), packagefile.MaxUnneeded, needed),
		packagefile.RemoveUnneeded(a.state("apt/download"), now.Add(-packagefile.StagedFor), packagefile.MaxUnneeded, nil),
	)
}
