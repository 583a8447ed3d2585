package apt

import (
	"regexp"
	"strings"

	"github.com/refit-dev/refit/agent/host/packagelog"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const historyLog = "var/log/apt/history.log"

// ChangedBy tells, by package, which command brought the version that is installed, as
// apt's log has it. What dpkg was told directly, or what was logged before the log was
// last rotated, is not known and left out.
func (a *Apt) ChangedBy(installed []upgrade.InstalledPackage) (map[string]string, error) {
	text, err := packagelog.Tail(a.path(historyLog))
	if err != nil || text == "" {
		return nil, err
	}
	versions := map[string]string{}
	for _, p := range installed {
		versions[p.Name] = p.Version
	}
	return changedBy(text, versions), nil
}

// logged is one package in an entry: name:arch (old, new), or name:arch (version, automatic).
var logged = regexp.MustCompile(`([a-z0-9][a-z0-9+.-]*)(?::[a-z0-9-]+)? \(([^()]*)\)`)

// changedBy reads the log's entries, the newest last, for the versions that are installed.
func changedBy(log string, installed map[string]string) map[string]string {
	out := map[string]string{}
	for entry := range strings.SplitSeq(log, "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(entry) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			fields[key] = value
		}
		for _, action := range []string{"Install", "Upgrade", "Downgrade", "Reinstall"} {
			for _, m := range logged.FindAllStringSubmatch(fields[action], -1) {
				if version := installed[m[1]]; version != "" && version == versionIn(m[2]) {
					out[m[1]] = author(fields)
				}
			}
		}
	}
	return out
}

// versionIn is the version after the change.
func versionIn(versions string) string {
	old, now, pair := strings.Cut(versions, ", ")
	if !pair || now == "automatic" {
		return old
	}
	return now
}

func author(fields map[string]string) string {
	text := packagelog.Shown(fields["Commandline"])
	if text == "" {
		text = "a program that used apt's library" // such as one with a graphical interface
	}
	if by := packagelog.Shown(fields["Requested-By"]); by != "" {
		text += ", requested by " + by
	}
	if at := packagelog.Shown(fields["Start-Date"]); at != "" {
		text += ", at " + at + " by the host's clock"
	}
	return text
}
