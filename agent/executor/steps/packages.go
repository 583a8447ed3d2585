package steps

import (
	"context"
	"fmt"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// query is the version of each named package that is whole; "" for one that is
// absent or half installed: a version that is not configured is not there.
func query(ctx context.Context, h *Host, names []string) (map[string]string, error) {
	found, err := h.Packages.Query(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("asking the package manager: %w", err)
	}
	versions := make(map[string]string, len(found))
	for _, p := range found {
		if p.State == "" || p.State == installed {
			versions[p.Name] = p.Version
		}
	}
	return versions, nil
}

const installed = "installed"

// whole says that a package is not in the middle of something: it is installed, or it
// is absent, with or without its configuration files left.
func whole(p upgrade.InstalledPackage) bool {
	switch p.State {
	case "", installed, "config-files", "not-installed":
		return true
	}
	return false
}

func names(changes []upgrade.PackageChange) []string {
	out := make([]string, 0, len(changes))
	for _, c := range changes {
		out = append(out, c.Name)
	}
	return out
}
