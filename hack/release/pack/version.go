package pack

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// described is what git describe says of a commit after a release.
var described = regexp.MustCompile(`^(v[0-9][0-9A-Za-z.+-]*)-([0-9]+)-g([0-9a-f]+)(-dirty)?$`)

var notInVersions = regexp.MustCompile(`[^0-9A-Za-z.]+`)

// Release says whether a version is one to release: v1.2.3 or v1.2.3-rc.1.
func Release(version string) error {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	if err != nil || !strings.HasPrefix(version, "v") || v.Metadata() != "" || described.MatchString(version) {
		return fmt.Errorf("%q is no version to release: it must be like v1.2.3 or v1.2.3-rc.1", version)
	}
	return nil
}

// PackageVersion is the version in the order of packages: v1.2.3-rc.1 comes before v1.2.3, and a commit
// after v1.2.3 behind it. What is no version, such as a bare commit, comes before everything.
func PackageVersion(version string) string {
	build := ""
	if m := described.FindStringSubmatch(version); m != nil {
		version, build = m[1], "+"+m[2]+".g"+m[3]
		if m[4] != "" {
			build += ".dirty"
		}
	}
	v, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	if err != nil || !strings.HasPrefix(version, "v") {
		return strings.TrimRight("0.0.0~dev."+strings.Trim(notInVersions.ReplaceAllString(version, "."), ".")+build, ".")
	}
	out := fmt.Sprintf("%d.%d.%d", v.Major(), v.Minor(), v.Patch())
	if pre := v.Prerelease(); pre != "" {
		out += "~" + strings.ReplaceAll(pre, "-", ".") // rpm allows no hyphen
	}
	return out + build
}
