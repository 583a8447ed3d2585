// Command release makes the files of a release from programs that are built: packages, archives, the chart, the
// SBOM and the digests. Images and manifests are put beside them before.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/refit-dev/refit/hack/release/pack"
	"github.com/refit-dev/refit/hack/release/sums"
)

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "the version, such as v1.2.3")
	epoch := flag.Int64("epoch", -1, "the time of everything in the files, in seconds since 1970: that of the commit")
	flag.StringVar(&r.root, "root", "", "the source tree")
	flag.StringVar(&r.programs, "programs", "", "a directory with directories OS-ARCH of programs")
	flag.StringVar(&r.out, "out", "", "the directory for the files")
	packages := flag.String("packages", "", "only make the packages for these architectures, separated by commas, of any version")
	check := flag.String("check", "", "only check a release's directory against its digests")
	flag.Parse()
	r.at = time.Unix(*epoch, 0)

	var err error
	switch {
	case *check != "":
		err = sums.Check(*check)
	case *epoch < 0 || r.root == "" || r.programs == "" || r.out == "":
		err = errors.New("-epoch, -root, -programs and -out are needed")
	case *packages != "":
		err = r.makePackages(strings.Split(*packages, ","))
	default:
		err = pack.Release(r.version)
		if err == nil {
			err = r.make()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one version, built.
type release struct {
	version             string
	at                  time.Time
	root, programs, out string
}

func (r release) path(name string) string { return filepath.Join(r.out, name) }
