package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/osrelease"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// reboot is what the host says: the flag file of Debian's packages or SUSE's, or a newer kernel
// of the same flavour than the one that runs.
func (g *gathering) reboot(ctx context.Context) error {
	for _, dir := range []string{"run", "var/run"} {
		if _, err := os.Stat(g.path(dir, "reboot-required")); err == nil {
			g.facts.Reboot.Required = true
			if names, err := g.rebootPackages(dir); err == nil {
				g.facts.Reboot.Packages = names
				g.rebootVersions(ctx, names)
			}
			break
		}
	}
	if _, err := os.Stat(g.path("run/reboot-needed")); err == nil { // of libzypp
		g.facts.Reboot.Required = true
	}
	return g.newerKernel(ctx)
}

func (g *gathering) rebootPackages(dir string) ([]string, error) {
	data, err := os.ReadFile(g.path(dir, "reboot-required.pkgs"))
	if err != nil {
		return nil, fmt.Errorf("reading which packages want a reboot: %w", err)
	}
	names := strings.Fields(string(data))
	slices.Sort(names)
	return slices.Compact(names), nil
}

// rebootVersions tells one wish for a reboot from the next for the same package.
func (g *gathering) rebootVersions(ctx context.Context, names []string) {
	versions := map[string]string{}
	installed, err := g.manager().Query(ctx, names)
	if err == nil {
		for _, p := range installed {
			versions[p.Name] = p.Version
		}
	}
	for _, name := range names {
		g.facts.Reboot.Versions = append(g.facts.Reboot.Versions, strings.TrimSpace(name+" "+versions[name]))
	}
}

// newerKernel compares with the package manager's order, never as text, and only when the running
// kernel is one of those installed: in a container or with a kernel of somebody
// else's making the files in /boot say nothing.
func (g *gathering) newerKernel(ctx context.Context) error {
	installed, err := g.kernels()
	running := g.facts.OS.Kernel
	if err != nil || !slices.Contains(installed, running) {
		return err
	}
	for _, release := range installed {
		if flavour(release) != flavour(running) {
			continue
		}
		newer, err := g.newer(ctx, release, running)
		if err != nil {
			return err
		}
		if newer {
			g.facts.Reboot.Required = true
			name := kernelPackage(g.facts.OS.Family, release) + release
			g.facts.Reboot.Packages = append(g.facts.Reboot.Packages, name)
			g.facts.Reboot.Versions = append(g.facts.Reboot.Versions, name)
		}
	}
	return nil
}

func (g *gathering) kernels() ([]string, error) {
	found, err := filepath.Glob(g.path("boot/vmlinuz-*"))
	if err != nil {
		return nil, fmt.Errorf("listing kernels: %w", err)
	}
	var releases []string
	for _, path := range found {
		release := strings.TrimPrefix(filepath.Base(path), "vmlinuz-")
		if !strings.HasPrefix(release, "0-rescue-") && !strings.HasSuffix(release, ".old") {
			releases = append(releases, release)
		}
	}
	return releases, nil
}

var flavourPart = regexp.MustCompile(`[a-z][a-z0-9-]*$`)

// flavour of 6.8.0-100-generic is generic, of 6.1.0-30-amd64 amd64.
func flavour(release string) string { return flavourPart.FindString(release) }

// kernelPackage is what the name of a kernel's package begins with.
func kernelPackage(family, release string) string {
	switch family {
	case osrelease.DNF:
		return "kernel-core-"
	case osrelease.Zypper:
		return "kernel-" + flavour(release) + "-"
	}
	return "linux-image-"
}

func (g *gathering) newer(ctx context.Context, release, than string) (bool, error) {
	if g.facts.OS.Family == osrelease.DNF || g.facts.OS.Family == osrelease.Zypper {
		return upgrade.CompareRPM(release, than) > 0, nil
	}
	_, err := g.Runner.Run(ctx, command.Command{Argv: []string{"dpkg", "--compare-versions", release, "gt", than}})
	if err == nil {
		return true, nil
	}
	var failure *command.Error
	if errors.As(err, &failure) && failure.ExitCode == 1 {
		return false, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // no dpkg: not this family's host
	}
	return false, fmt.Errorf("comparing kernels: %w", err)
}
