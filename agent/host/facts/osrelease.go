package facts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// release reads os-release of the host, from /etc or else from /usr/lib.
func (g *gathering) release() error {
	var data []byte
	var err error
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} {
		if data, err = os.ReadFile(g.path(path)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("reading os-release: %w", err)
	}
	fields := parseOSRelease(string(data))
	o := &g.facts.OS
	o.ID, o.VersionID, o.PrettyName = fields["ID"], fields["VERSION_ID"], fields["PRETTY_NAME"]
	o.IDLike = strings.Fields(fields["ID_LIKE"])
	o.Family = upgrade.FamilyOf(o.ID, o.IDLike)
	return nil
}

// parseOSRelease reads the shell-like assignments that os-release(5) allows.
func parseOSRelease(content string) map[string]string {
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
