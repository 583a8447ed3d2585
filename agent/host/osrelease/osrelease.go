// Package osrelease reads which system a host runs.
package osrelease

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// Families of package managers.
const (
	Apt    = "apt"
	DNF    = "dnf"
	Zypper = "zypper"
)

// Release is what os-release says, as far as anything is decided by it or told of it.
type Release struct {
	ID, VersionID, PrettyName string
	IDLike                    []string
	// Family is that of the package manager; "" when it is not known.
	Family string
}

// Read reads os-release of the host under root, from /etc or else from /usr/lib.
func Read(root string) (Release, error) {
	var data []byte
	var err error
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} {
		if data, err = os.ReadFile(filepath.Join(root, path)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return Release{}, fmt.Errorf("reading os-release: %w", err)
	}
	fields := parse(string(data))
	like := strings.Fields(fields["ID_LIKE"])
	return Release{
		ID: fields["ID"], VersionID: fields["VERSION_ID"], PrettyName: fields["PRETTY_NAME"],
		IDLike: like, Family: upgrade.FamilyOf(fields["ID"], like),
	}, nil
}

// parse reads the shell-like assignments that os-release(5) allows.
func parse(content string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		fields[name] = unquote(value)
	}
	return fields
}

func unquote(value string) string {
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		quoted := value[1 : len(value)-1]
		if value[0] == '\'' {
			return quoted
		}
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`").Replace(quoted)
	}
	return value
}
