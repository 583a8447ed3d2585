package rpm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// historyLimit bounds what is read of a log; its end is what counts.
	historyLimit = 1 << 20
	// commandLimit bounds what is told of a command line.
	commandLimit = 120
)

// ChangedBy tells, by package, which command brought the version that is installed, as
// dnf 4's logs have it. What rpm was told directly, and what was logged before the log
// was last rotated, is not known and left out.
func (r *RPM) ChangedBy(installed []upgrade.InstalledPackage) (map[string]string, error) {
	changes, err := tailOf(r.path("var/log/dnf.rpm.log"))
	if err != nil || changes == "" {
		return nil, err
	}
	commands, err := tailOf(r.path("var/log/dnf.log"))
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, p := range installed {
		versions[p.Name] = p.Version
	}
	return changedBy(changes, commands, versions), nil
}

func tailOf(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("opening dnf's log: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing is written
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("reading dnf's log: %w", err)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-historyLimit), historyLimit))
	if err != nil {
		return "", fmt.Errorf("reading dnf's log: %w", err)
	}
	return string(text), nil
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
				out[name] = commandBefore(commands, m[1]) + ", at " + m[1] + " by the host's clock"
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
			command = shown(m[2])
		}
	}
	return command
}

// credentials in a URL, such as that of a proxy.
var credentials = regexp.MustCompile(`://[^/@\s]+@`)

// shown is a text of the log that can be told: on one line, short, and without secrets.
func shown(text string) string {
	text = credentials.ReplaceAllString(text, "://")
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > commandLimit {
		return string(runes[:commandLimit]) + "…"
	}
	return text
}
