package rpm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// configFile is a configuration file that is not as its package brought it.
type configFile struct {
	Path string `json:"path"` // as the host calls it
	Copy string `json:"copy"` // its name in our directory of copies
	// Deleted says that the host's owner took it away.
	Deleted bool `json:"deleted,omitempty"`
}

// changedConfig is a line of rpm -V about a configuration file: the third mark is that of its content.
var changedConfig = regexp.MustCompile(`^(?:..5......|missing {2,})\s+c\s+(/.*?)(?: \(.*\))?$`)

// snapshot copies the configuration files that the host changed. rpm itself keeps those
// that their package marks noreplace; the others it would put aside as .rpmsave, and the
// service would start with the package's defaults.
func (r *RPM) snapshot(ctx context.Context, changes []upgrade.PackageChange) ([]configFile, error) {
	dir := r.state("rpm/config")
	if err := errors.Join(os.RemoveAll(dir), files.PrivateDir(r.state("rpm")), files.PrivateDir(dir)); err != nil {
		return nil, fmt.Errorf("making room for copies of configuration files: %w", err)
	}
	var names []string
	for _, c := range changes {
		if c.To != "" && c.From != "" {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	args := append([]string{"-V", "--nodeps", "--noscripts", "--"}, names...)
	result, err := r.run(ctx, repairTimeout, r.rpm("rpm", args...))
	if err != nil && command.ExitCode(err) < 1 {
		return nil, fmt.Errorf("asking rpm for changed configuration files: %w", err)
	}
	var kept []configFile
	for _, f := range changedConfigs(result.Stdout) {
		f.Copy = strconv.Itoa(len(kept))
		if !f.Deleted {
			if err := preserve(r.path(f.Path), filepath.Join(dir, f.Copy)); err != nil {
				return nil, err
			}
		}
		kept = append(kept, f)
	}
	return kept, nil
}

// changedConfigs are the configuration files that rpm -V tells of as changed.
func changedConfigs(output string) []configFile {
	var all []configFile
	for line := range strings.Lines(output) {
		if m := changedConfig.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			all = append(all, configFile{Path: m[1], Deleted: strings.HasPrefix(line, "missing")})
		}
	}
	return all
}

// preserve copies a file with its mode; its owner stays with the file, which is written in place.
func preserve(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("looking at a configuration file: %w", err)
	}
	return files.CopyAtomic(to, from, info.Mode().Perm())
}

// keepConfig puts back what the transaction replaced, and names what the package has
// brought instead: somebody should look at it. It may be done again after a crash.
func (r *RPM) keepConfig(ctx context.Context, kept []configFile) error {
	log := logr.FromContextOrDiscard(ctx)
	var problems error
	for _, f := range kept {
		replaced, err := r.keepOne(f)
		problems = errors.Join(problems, err)
		if replaced {
			log.Info("Kept a configuration file that its package has replaced", "file", f.Path, "packaged", f.Path+".rpmnew")
		} else if _, err := os.Stat(r.path(f.Path + ".rpmnew")); err == nil {
			log.Info("Kept a configuration file that its package has changed", "file", f.Path, "packaged", f.Path+".rpmnew")
		}
	}
	return problems
}

func (r *RPM) keepOne(f configFile) (replaced bool, err error) {
	path, saved := r.path(f.Path), filepath.Join(r.state("rpm/config"), f.Copy)
	if f.Deleted {
		return false, nil // rpm brings it back: a package may not start without it
	}
	want, _, err := files.Digest(saved)
	if err != nil {
		return false, err //nolint:wrapcheck // says which file
	}
	have, _, err := files.Digest(path)
	switch {
	case err == nil && have == want:
		return false, nil
	case err == nil:
		if err := files.CopyAtomic(path+".rpmnew", path, 0o644); err != nil {
			return false, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return false, err //nolint:wrapcheck // says which file
	}
	info, err := os.Stat(saved)
	if err != nil {
		return false, fmt.Errorf("looking at the copy of a configuration file: %w", err)
	}
	if err := files.CopyAtomic(path, saved, info.Mode().Perm()); err != nil {
		return false, err
	}
	if aside, _, err := files.Digest(path + ".rpmsave"); err == nil && aside == want {
		return true, files.Remove(path + ".rpmsave") // the same as what is back in its place
	}
	return true, nil
}
