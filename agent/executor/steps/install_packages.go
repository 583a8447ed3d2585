package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// repairTimeout bounds the repair after a transaction that was ended by its deadline.
const repairTimeout = 5 * time.Minute

// installPackages moves packages in one transaction, and only those that are not
// there yet. Crash window: the transaction may be half done, so a later attempt
// repairs the database before it looks. A package that was cut off while it was
// unpacked cannot be repaired, only installed again: that is what the transaction does.
func installPackages(ctx context.Context, r Run) (string, error) {
	repairErr := repairIfBroken(ctx, r)
	remaining, err := remainingChanges(ctx, r.Host, r.Step.Packages)
	if err != nil || len(remaining) == 0 {
		return "", errors.Join(err, repairErr)
	}
	installErr := r.Host.Packages.Install(ctx, remaining, r.PackageDir)
	if installErr != nil {
		// The context may be what ended the transaction; the database is repaired all the same.
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairTimeout)
		defer cancel()
		_ = r.Host.Packages.Repair(after) // what is installed afterwards decides
		ctx = after
	}
	return "", applied(ctx, r.Host, r.Step.Packages, installErr)
}

func repairIfBroken(ctx context.Context, r Run) error {
	found, err := r.Host.Packages.Query(ctx, names(r.Step.Packages))
	if err != nil {
		return fmt.Errorf("asking the package manager: %w", err)
	}
	broken := r.Attempt > 1
	for _, p := range found {
		broken = broken || !whole(p)
	}
	if !broken {
		return nil
	}
	if err := r.Host.Packages.Repair(ctx); err != nil {
		return fmt.Errorf("repairing the package database after an interruption: %w", err)
	}
	return nil
}

func remainingChanges(ctx context.Context, h *Host, changes []upgrade.PackageChange) ([]upgrade.PackageChange, error) {
	now, err := query(ctx, h, names(changes))
	if err != nil {
		return nil, err
	}
	var remaining []upgrade.PackageChange
	for _, c := range changes {
		if now[c.Name] != c.To {
			remaining = append(remaining, c)
		}
	}
	return remaining, nil
}

// applied judges a transaction by what is installed, whatever the package manager returned.
func applied(ctx context.Context, h *Host, changes []upgrade.PackageChange, installErr error) error {
	missing, err := remainingChanges(ctx, h, changes)
	switch {
	case err != nil:
		return errors.Join(err, installErr)
	case len(missing) == 0:
		return nil
	case installErr != nil:
		return fmt.Errorf("installing %s: %w", describe(missing), installErr)
	}
	return fail("NotApplied", "the package manager reported success, but %s did not come about", describe(missing))
}

func describe(changes []upgrade.PackageChange) string {
	texts := make([]string, 0, len(changes))
	for _, c := range changes {
		to := c.To
		if to == "" {
			to = "absent"
		}
		texts = append(texts, c.Name+" "+to)
	}
	return strings.Join(texts, ", ")
}

// capturePackages plans the way back from what is installed now, with the files kept for it.
func capturePackages(ctx context.Context, r Run) (journal.Undo, error) {
	if r.Step.Irreversible != "" {
		return journal.Undo{None: "what was installed of " + strings.Join(names(r.Step.Packages), ", ") + " stays: " + r.Step.Irreversible}, nil
	}
	now, err := query(ctx, r.Host, names(r.Step.Packages))
	if err != nil {
		return journal.Undo{}, err
	}
	var back []upgrade.PackageChange
	var lost []string
	for _, c := range r.Step.Packages {
		was := now[c.Name]
		if was == c.To {
			continue
		}
		change, err := wayBack(ctx, r.Host, c, was)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			lost = append(lost, c.Name+" "+was)
		case err != nil:
			return journal.Undo{}, err
		default:
			back = append(back, change)
		}
	}
	undo := journal.Undo{}
	if len(back) > 0 {
		undo.Steps = []upgrade.Step{{Kind: upgrade.StepInstallPackages, Packages: back}}
	}
	if len(lost) > 0 {
		undo.None = "the previous " + strings.Join(lost, ", ") + " could not be kept when the plan was staged"
	}
	return undo, nil
}

func wayBack(ctx context.Context, h *Host, c upgrade.PackageChange, was string) (upgrade.PackageChange, error) {
	back := upgrade.PackageChange{Name: c.Name, From: c.To, To: was, Held: c.Held}
	if was == "" {
		return back, nil
	}
	file, digest, err := h.Backups.Find(ctx, c.Name, was)
	if err != nil {
		return back, fmt.Errorf("looking for the kept file of %s %s: %w", c.Name, was, err)
	}
	back.File, back.SHA256 = file, digest
	return back, nil
}
