package rpm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/agent/host/packagelog"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	reposDir   = "/etc/yum.repos.d"
	keyringDir = "/etc/pki/rpm-gpg"
)

// dnf is the family of RHEL and Fedora.
func dnf() dialect {
	return dialect{
		reposDir: reposDir, mainFile: "/etc/dnf/dnf.conf",
		varsDirs: []string{"etc/dnf/vars", "etc/yum/vars"}, keyringDirs: []string{keyringDir},
		excludes: true,
		copies: func(s section) []string {
			const hashed = "-????????????????/repodata/*primary.xml*"
			return []string{"var/cache/dnf/" + s.id + hashed, "var/cache/libdnf5/" + s.id + hashed}
		},
		caches:  []string{"var/cache/dnf/*/packages", "var/cache/libdnf5/*/packages"},
		reach:   func(_ *RPM, a access, _ string) (access, error) { return a, nil },
		locks:   dnfLocks,
		authors: dnfAuthors,
	}
}

// dnfLocks are those of the dnf that the host has.
func dnfLocks(r *RPM) lockList {
	if target, err := filepath.EvalSymlinks(r.path("usr/bin/dnf")); err == nil && strings.HasPrefix(filepath.Base(target), "dnf5") {
		return tomlLocks{}
	}
	if _, err := os.Stat(r.path("usr/bin/dnf")); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(r.path("usr/bin/dnf5")); err == nil {
			return tomlLocks{}
		}
	}
	return listLocks{path: r.lockListPath()}
}

// dnfAuthors reads dnf 4's logs. What rpm was told directly, and what was logged before
// the log was last rotated, is not known and left out.
func dnfAuthors(r *RPM, installed []upgrade.InstalledPackage) (map[string]string, error) {
	changes, err := packagelog.Tail(r.path("var/log/dnf.rpm.log"))
	if err != nil || changes == "" {
		return nil, err
	}
	commands, err := packagelog.Tail(r.path("var/log/dnf.log"))
	if err != nil {
		return nil, err
	}
	return changedBy(changes, commands, versionsOf(installed)), nil
}

func versionsOf(installed []upgrade.InstalledPackage) map[string]string {
	versions := map[string]string{}
	for _, p := range installed {
		versions[p.Name] = p.Version
	}
	return versions
}
