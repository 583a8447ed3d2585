package rpm

import (
	"cmp"
	"context"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/refit-dev/refit/agent/host/osrelease"
)

var variable = regexp.MustCompile(`\$(?:\{[0-9A-Za-z_]+\}|[0-9A-Za-z_]+)`)

// arches are rpm's names of the architectures that Go names otherwise.
var arches = map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i686"}

func basearch() string { return cmp.Or(arches[runtime.GOARCH], runtime.GOARCH) }

// expand fills in the variables of a URI the way dnf and zypper do. One that is not known stays
// as it is: the fetch fails then, and its URI says why.
func (r *RPM) expand(ctx context.Context, text string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		name := strings.Trim(match, "${}")
		for _, dir := range r.dialect.varsDirs {
			if data, err := os.ReadFile(r.path(dir, name)); err == nil {
				line, _, _ := strings.Cut(string(data), "\n")
				return strings.TrimSpace(line)
			}
		}
		switch name {
		case "basearch", "arch":
			return basearch()
		case "releasever":
			return cmp.Or(r.releasever(ctx), match)
		case "releasever_major":
			major, _, _ := strings.Cut(r.releasever(ctx), ".")
			return cmp.Or(major, match)
		case "releasever_minor":
			_, minor, _ := strings.Cut(r.releasever(ctx), ".")
			return cmp.Or(minor, match)
		}
		return match
	})
}

// releasever is what the package that provides system-release says of it, as dnf has it; else what os-release says.
func (r *RPM) releasever(ctx context.Context) string {
	format := `[%{PROVIDENAME}\t%{PROVIDEVERSION}\n]system-release\t%{VERSION}\n`
	result, err := r.run(ctx, queryTimeout, r.rpm("rpm", "-q", "--qf", format, "--whatprovides", "system-release"))
	if err == nil {
		if version := providedRelease(result.Stdout); version != "" {
			return version
		}
	}
	release, err := osrelease.Read(r.Root)
	if err != nil {
		return ""
	}
	return release.VersionID
}

// providedRelease is the release of a system in what its packages provide; a statement of its own counts more.
func providedRelease(output string) string {
	for _, wanted := range []string{"system-release(releasever)\t", "system-release\t"} {
		for line := range strings.Lines(output) {
			if version, ok := strings.CutPrefix(strings.TrimSpace(line), wanted); ok {
				version, _, _ = strings.Cut(version, "-")
				return version
			}
		}
	}
	return ""
}
