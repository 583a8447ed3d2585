package apt

import (
	"regexp"

	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

var (
	validName    = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,127}$`)
	validVersion = regexp.MustCompile(`^[0-9][0-9A-Za-z.+:~-]{0,127}$`)
	validFile    = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+~%-]{0,250}$`)
	validDigest  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// checkNames keeps everything from the command line that could be read as an option
// or a pattern. The schema says the same; a plan from elsewhere may not have passed it.
func checkNames(names []string) error {
	for _, name := range names {
		if !validName.MatchString(name) {
			return refuse("PackageInvalid", "package name %q: want lower-case letters, digits, '+', '-' and '.', as dpkg does", name)
		}
	}
	return nil
}

func checkChange(c upgrade.PackageChange) error {
	if err := checkNames([]string{c.Name}); err != nil {
		return err
	}
	for _, version := range []string{c.From, c.To} {
		if version != "" && !validVersion.MatchString(version) {
			return refuse("PackageInvalid", "package %s: version %q is not a dpkg version", c.Name, version)
		}
	}
	if c.To == "" {
		return nil
	}
	if !validFile.MatchString(c.File) {
		return refuse("PackageInvalid", "package %s %s: file %q is not a plain file name in the stage directory", c.Name, c.To, c.File)
	}
	if !validDigest.MatchString(c.SHA256) {
		return refuse("DigestMissing", "package %s %s: no SHA-256 digest; without one nothing is installed", c.Name, c.To)
	}
	return nil
}

func checkChanges(changes []upgrade.PackageChange) error {
	for _, c := range changes {
		if err := checkChange(c); err != nil {
			return err
		}
	}
	return nil
}

var (
	refuse = packagefile.Refuse
	wait   = packagefile.Wait
)
