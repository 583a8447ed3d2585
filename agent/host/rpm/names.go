package rpm

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

var (
	validName    = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z+._-]{0,127}$`)
	validVersion = regexp.MustCompile(`^([0-9]{1,9}:)?[0-9A-Za-z][0-9A-Za-z.+_~^]*(-[0-9A-Za-z.+_~^]+)?$`)
	validFile    = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+~^%-]{0,250}$`)
	validDigest  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

var (
	refuse = packagefile.Refuse
	wait   = packagefile.Wait
)

// checkNames keeps everything from the command line that could be read as an option or
// a pattern. The schema says the same; a plan from elsewhere may not have passed it.
func checkNames(names []string) error {
	for _, name := range names {
		if !validName.MatchString(name) {
			return refuse("PackageInvalid", "package name %q: want letters, digits, '+', '-', '_' and '.', as rpm does", name)
		}
	}
	return nil
}

func checkChange(c upgrade.PackageChange) error {
	if err := checkNames([]string{c.Name}); err != nil {
		return err
	}
	for _, version := range []string{c.From, c.To} {
		if version != "" && (len(version) > 128 || !validVersion.MatchString(version)) {
			return refuse("PackageInvalid", "package %s: version %q is not a version of rpm, [epoch:]version-release", c.Name, version)
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
		if installOnly(c.Name) {
			return refuse("InstallOnlyPackage", "package %s: several versions of it are installed side by side, which is not done yet; update it with the host's own tools", c.Name)
		}
	}
	return nil
}

// installOnly is true for packages of which a host keeps several versions, the running
// one among them: an upgrade in rpm's sense would remove the kernel that runs.
func installOnly(name string) bool {
	return name == "gpg-pubkey" || name == "kernel" || strings.HasPrefix(name, "kernel-") && !kernelHelpers.MatchString(name)
}

// kernelHelpers are packages named after the kernel that exist once.
var kernelHelpers = regexp.MustCompile(`^kernel-(tools|tools-libs|headers|srpm-macros|rpm-macros|abi-stablelists|macros|firmware.*)$`)

func checkURI(text string) error {
	uri, err := url.Parse(text)
	if err != nil || strings.ContainsAny(text, " \t\r\n") {
		return refuse("SourceInvalid", "package source URI %q is not a URI", text)
	}
	switch uri.Scheme {
	case "http", "https":
		if uri.Host == "" {
			return refuse("SourceInvalid", "package source URI %q names no host", text)
		}
	case "file":
	default:
		return refuse("SourceInvalid", "package source URI %q: want http, https or file", text)
	}
	return nil
}

func changeNames(changes []upgrade.PackageChange) []string {
	names := make([]string, 0, len(changes))
	for _, c := range changes {
		names = append(names, c.Name)
	}
	return names
}

func firstNonEmpty(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
