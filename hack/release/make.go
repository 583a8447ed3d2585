package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/refit-dev/refit/hack/release/archive"
	"github.com/refit-dev/refit/hack/release/chart"
	"github.com/refit-dev/refit/hack/release/pack"
	"github.com/refit-dev/refit/hack/release/sbom"
	"github.com/refit-dev/refit/hack/release/sums"
)

// Hosts and the coordinator run Linux; kubectl refit runs where people sit.
var (
	hostArchs = []string{"amd64", "arm64"}
	desks     = []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64", "windows-amd64"}
)

func (r release) make() error {
	for _, step := range []func() error{
		func() error { return r.makePackages(hostArchs) },
		r.makeArchives,
		r.makeChart,
		r.makeSBOM,
		func() error { return sums.Write(r.out) }, // last: of everything
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// makePackages packs all at once: most of it is compression, by one core each.
func (r release) makePackages(archs []string) error {
	var wanted []pack.Package
	for _, arch := range archs {
		for _, format := range pack.Formats {
			wanted = append(wanted, pack.Package{
				Format: format, Arch: arch, Version: r.version, Time: r.at,
				Deploy: filepath.Join(r.root, "deploy"), Programs: filepath.Join(r.programs, "linux-"+arch),
			})
		}
	}
	paths, errs := make([]string, len(wanted)), make([]error, len(wanted))
	var all sync.WaitGroup
	for i, p := range wanted {
		all.Go(func() {
			if paths[i], errs[i] = p.Write(r.out); errs[i] != nil {
				errs[i] = fmt.Errorf("packing the %s for %s: %w", p.Format, p.Arch, errs[i])
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Println(strings.Join(paths, "\n"))
	return nil
}

func (r release) makeArchives() error {
	for _, arch := range hostArchs {
		if err := r.archive("refit", "linux-"+arch, []string{"refit-agent", "refit-executor", "refit-coordinator", "kubectl-refit"}, r.hostFiles()); err != nil {
			return err
		}
	}
	for _, platform := range desks {
		if err := r.archive("kubectl-refit", platform, []string{"kubectl-refit"}, nil); err != nil {
			return err
		}
	}
	return nil
}

// hostFiles are for hosts whose package manager is neither dpkg nor rpm.
func (r release) hostFiles() []archive.File {
	var out []archive.File
	for _, name := range []string{"refit-agent.service", "refit-resume.service", "agent.yaml"} {
		out = append(out, archive.File{Source: filepath.Join(r.root, "deploy/systemd", name), Name: "systemd/" + name, Mode: 0o644})
	}
	return out
}

func (r release) archive(name, platform string, programs []string, more []archive.File) error {
	ending, kind := "", ".tar.gz"
	if strings.HasPrefix(platform, "windows-") {
		ending, kind = ".exe", ".zip"
	}
	contents := []archive.File{{Source: filepath.Join(r.root, "LICENSE"), Name: "LICENSE", Mode: 0o644}}
	for _, p := range programs {
		contents = append(contents, archive.File{Source: filepath.Join(r.programs, platform, p+ending), Name: p + ending, Mode: 0o755})
	}
	file := r.path(fmt.Sprintf("%s_%s_%s%s", name, r.version, strings.Replace(platform, "-", "_", 1), kind))
	return archive.Write(file, r.at, append(contents, more...))
}

func (r release) makeChart() error {
	_, err := chart.Pack(filepath.Join(r.root, "deploy/chart"), r.version, r.at, r.out)
	return err
}

// makeSBOM tells of every program that was built.
func (r release) makeSBOM() error {
	var programs []string
	err := filepath.WalkDir(r.programs, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(r.programs, path)
		if err != nil {
			return fmt.Errorf("naming %s: %w", path, err)
		}
		programs = append(programs, inside)
		return nil
	})
	if err != nil || len(programs) == 0 {
		return fmt.Errorf("finding the programs in %s: %w", r.programs, errors.Join(err, errNone(programs)))
	}
	var text bytes.Buffer
	if err := sbom.Write(&text, r.version, r.at, r.programs, programs); err != nil {
		return err
	}
	if err := os.WriteFile(r.path(fmt.Sprintf("refit_%s_sbom.cdx.json", r.version)), text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("keeping the SBOM: %w", err)
	}
	return nil
}

func errNone(programs []string) error {
	if len(programs) == 0 {
		return errors.New("there are none")
	}
	return nil
}
