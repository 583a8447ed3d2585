package packagefile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// StateInstalled is the state of a package that is whole. In any other state its version
// must not be taken for what is installed.
const StateInstalled = "installed"

// maxVersion bounds a version; the longest in public repositories have some 70 characters.
const maxVersion = 128

var (
	// Digest is a SHA-256 in hexadecimal digits.
	Digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

	plainFile = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+~^%-]{0,250}$`)
)

// Kind is what the packages of one package manager are like. Everything that goes to a
// command line or becomes the name of a file is compared with it: a plan may not have
// passed the schema.
type Kind struct {
	// Name and Version are the forms of a package's name and version.
	Name, Version *regexp.Regexp
	// NameRule and VersionRule say them to people.
	NameRule, VersionRule string
	// Separator and Ending make the name of a kept file.
	Separator, Ending string
}

// CheckNames keeps everything from the command line that could be read as an option or a pattern.
func (k Kind) CheckNames(names []string) error {
	for _, name := range names {
		if !k.Name.MatchString(name) {
			return Refuse("PackageInvalid", "package name %q: want %s", name, k.NameRule)
		}
	}
	return nil
}

// Possible are the names that a package could have: one that none has is not installed, and hides no other.
func (k Kind) Possible(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !k.Name.MatchString(name) })
}

// CheckChange says whether a change is one that can be made from a file.
func (k Kind) CheckChange(c upgrade.PackageChange) error {
	if err := k.CheckNames([]string{c.Name}); err != nil {
		return err
	}
	for _, version := range []string{c.From, c.To} {
		if version != "" && (len(version) > maxVersion || !k.Version.MatchString(version)) {
			return Refuse("PackageInvalid", "package %s: version %q is not %s", c.Name, version, k.VersionRule)
		}
	}
	if c.To == "" {
		return nil
	}
	if !plainFile.MatchString(c.File) {
		return Refuse("PackageInvalid", "package %s %s: file %q is not a plain file name in the stage directory", c.Name, c.To, c.File)
	}
	if !Digest.MatchString(c.SHA256) {
		return Refuse("DigestMissing", "package %s %s: no SHA-256 digest; without one nothing is installed", c.Name, c.To)
	}
	return nil
}

// CheckChanges says the same of all changes.
func (k Kind) CheckChanges(changes []upgrade.PackageChange) error {
	for _, c := range changes {
		if err := k.CheckChange(c); err != nil {
			return err
		}
	}
	return nil
}

// FileName is how a kept file is called; the ':' of an epoch is escaped.
func (k Kind) FileName(name, version string) string {
	return name + k.Separator + strings.ReplaceAll(version, ":", "%3a") + k.Ending
}

// Names are those of the packages that change.
func Names(changes []upgrade.PackageChange) []string {
	names := make([]string, 0, len(changes))
	for _, c := range changes {
		names = append(names, c.Name)
	}
	return names
}

// Left are the changes that are not there yet, whole, by what is installed now.
func Left(changes []upgrade.PackageChange, now []upgrade.InstalledPackage) []upgrade.PackageChange {
	return slices.DeleteFunc(slices.Clone(changes), func(c upgrade.PackageChange) bool { return Done(c, now) })
}

// Done says whether a change is there, whole.
func Done(c upgrade.PackageChange, now []upgrade.InstalledPackage) bool {
	for _, p := range now {
		if p.Name == c.Name {
			return p.State == StateInstalled && p.Version == c.To
		}
	}
	return c.To == ""
}
