package rpm

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// kind is what packages of rpm are like.
var kind = packagefile.Kind{
	Name:        regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z+._-]{0,127}$`),
	Version:     regexp.MustCompile(`^([0-9]{1,9}:)?[0-9A-Za-z][0-9A-Za-z.+_~^]*(-[0-9A-Za-z.+_~^]+)?$`),
	NameRule:    "letters, digits, '+', '-', '_' and '.', as rpm does",
	VersionRule: "a version of rpm, [epoch:]version-release",
	Separator:   "-", Ending: ".rpm",
}

var (
	refuse = packagefile.Refuse
	wait   = packagefile.Wait
)

func checkChanges(changes []upgrade.PackageChange) error {
	for _, c := range changes {
		if err := kind.CheckChange(c); err != nil {
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
	case "file", "dir":
	default:
		return refuse("SourceInvalid", "package source URI %q: want http, https or file", text)
	}
	return nil
}
