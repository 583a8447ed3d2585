package usage

import "regexp"

// packageName is the shape that the Machine's schema asks of a package.
var packageName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9+])?$`)

const maxPackageName = 128

// PackageNames says that the values of a flag are names that a package may have.
func PackageNames(flag string, names []string) error {
	for _, name := range names {
		if len(name) > maxPackageName || !packageName.MatchString(name) {
			return Errorf("--%s %q is no name of a package: write one name, as the package manager prints it, and repeat --%s for another", flag, name, flag)
		}
	}
	return nil
}
