package rpm

import (
	"regexp"
	"strings"

	"github.com/refit-dev/refit/agent/host/packagelog"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// ChangedBy tells, by package, which command brought the version that is installed, where a log has it.
func (r *RPM) ChangedBy(installed []upgrade.InstalledPackage) (map[string]string, error) {
	return r.dialect.authors(r, installed)
}

var (
	loggedChange  = regexp.MustCompile(`^(\S+) \S+ (?:Installed|Upgrade|Downgrade|Reinstall): (\S+)$`)
	loggedCommand = regexp.MustCompile(`^(\S+) \S+ Command: (.*)$`)
)

// changedBy reads the log's lines, the newest last, for the versions that are installed.
func changedBy(changes, commands string, installed map[string]string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(changes) {
		m := loggedChange.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		for name, version := range installed {
			if _, plain, ok := strings.Cut(version, ":"); ok {
				version = plain
			}
			if strings.HasPrefix(m[2], name+"-"+version+".") && !strings.Contains(m[2][len(name)+len(version)+2:], ".") {
				out[name] = commandBefore(commands, m[1]) + ", at " + packagelog.Shown(m[1]) + " by the host's clock"
			}
		}
	}
	return out
}

// commandBefore is the last command that dnf logged up to a time; times of one host's log sort as texts.
func commandBefore(commands, at string) string {
	command := "a program that used dnf's library"
	for line := range strings.Lines(commands) {
		m := loggedCommand.FindStringSubmatch(strings.TrimSpace(line))
		if m != nil && m[1] <= at {
			command = packagelog.Shown(m[2])
		}
	}
	return command
}
