package apt

import (
	"regexp"

	"github.com/refit-dev/refit/agent/host/packagefile"
)

// kind is what packages of dpkg are like.
var kind = packagefile.Kind{
	Name:        regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,127}$`),
	Version:     regexp.MustCompile(`^[0-9][0-9A-Za-z.+:~-]{0,127}$`),
	NameRule:    "lower-case letters, digits, '+', '-' and '.', as dpkg does",
	VersionRule: "a version of dpkg",
	Separator:   "_", Ending: ".deb",
}

var (
	refuse = packagefile.Refuse
	wait   = packagefile.Wait
)
