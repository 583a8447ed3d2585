package rpm

import (
	"strings"

	"github.com/refit-dev/refit/agent/host/packagelog"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const zyppReposDir = "/etc/zypp/repos.d"

// NewZypper returns the package manager of the SUSE host under root. zypper itself is not
// run, as dnf is not: see the documentation of this package.
func NewZypper(root string) *RPM {
	r := New(root)
	r.dialect = zypper()
	return r
}

// zypper is the family of SUSE.
func zypper() dialect {
	return dialect{
		reposDir: zyppReposDir, mainFile: "/etc/zypp/zypp.conf",
		varsDirs: []string{"etc/zypp/vars.d"}, keyringDirs: []string{keyringDir, "/usr/lib/rpm/gnupg/keys"},
		signedMetadata: true,
		copies: func(s section) []string {
			alias := strings.ReplaceAll(s.id, "/", "_")
			return []string{strings.TrimSuffix("var/cache/zypp/raw/"+alias+"/"+strings.Trim(s.values["path"], "/"), "/") + "/repodata/*primary.xml*"}
		},
		// By alias, then as in the repository.
		caches:  []string{"var/cache/zypp/packages/*", "var/cache/zypp/packages/*/*", "var/cache/zypp/packages/*/*/*"},
		reach:   zyppReach,
		quiet:   []string{"DISABLE_RESTART_ON_UPDATE=yes"}, // asked by the macros of systemd-rpm-macros, before they call systemctl
		locks:   func(*RPM) lockList { return zyppLocks{} },
		authors: zyppAuthors,
	}
}

const zyppHistory = "var/log/zypp/history"

// zyppAuthors reads libzypp's own log. What rpm was told directly, and what was logged
// before the log was last rotated, is not known and left out.
func zyppAuthors(r *RPM, installed []upgrade.InstalledPackage) (map[string]string, error) {
	text, err := packagelog.Tail(r.path(zyppHistory))
	if err != nil || text == "" {
		return nil, err
	}
	return zyppChangedBy(text, versionsOf(installed)), nil
}

// zyppChangedBy reads the log's lines, the newest last, for the versions that are installed:
//
//	2026-11-30 12:00:00|command|root@host|'zypper' 'install' 'kubelet'|
//	2026-11-30 12:00:01|install|kubelet|1.37.2-1|noarch|root@host|kubernetes|…
func zyppChangedBy(log string, installed map[string]string) map[string]string {
	out := map[string]string{}
	command := ""
	for line := range strings.Lines(log) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case len(fields) < 4 || strings.HasPrefix(line, "#"):
		case fields[1] == "command":
			command = packagelog.Shown(strings.NewReplacer("' '", " ", "'", "").Replace(fields[3]))
		case fields[1] == "install":
			version := installed[fields[2]]
			if version == "" || version != strings.TrimPrefix(fields[3], "0:") {
				continue
			}
			by := command
			if by == "" {
				by = "a program that used libzypp"
			}
			out[fields[2]] = by + ", at " + packagelog.Shown(fields[0]) + " by the host's clock"
		}
	}
	return out
}
