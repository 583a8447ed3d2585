package rpm

import (
	"github.com/refit-dev/refit/pkg/upgrade"
)

// dialect is where a family of hosts keeps what rpm itself does not know: repositories,
// keys, locks, copies of indexes and packages, and a log.
type dialect struct {
	reposDir string // of .repo files
	mainFile string // with the defaults of all repositories, in [main]
	varsDirs []string
	// keyringDirs are searched in their order; the first is told to people.
	keyringDirs []string
	// excludes says that a repository's file may hide packages of it.
	excludes bool
	// signedMetadata says that metadata has to be signed unless a file says otherwise.
	signedMetadata bool
	// copies are patterns of the host's own copies of a repository's index, the first that there is one of counts.
	copies func(s section) []string
	// caches are patterns of the packages that the host has fetched.
	caches []string
	// reach adds what the host says elsewhere of how a repository is reached.
	reach func(r *RPM, a access, uri string) (access, error)
	// quiet is what keeps scriptlets of this family from restarting services, besides what keeps systemctl from it.
	quiet []string
	locks func(r *RPM) lockList
	// authors tells which command brought the versions that are installed.
	authors func(r *RPM, installed []upgrade.InstalledPackage) (map[string]string, error)
}
