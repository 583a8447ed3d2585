// Package pack writes refit-agent as a .deb and an .rpm: the programs of a host, their units and
// the scripts that dpkg and rpm run.
package pack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the packager nfpm.Get("deb") returns
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // the packager nfpm.Get("rpm") returns
)

// Formats are the kinds of package.
var Formats = []string{"deb", "rpm"}

const name = "refit-agent"

// Package is what one package is made of. The same Package gives the same bytes, whoever makes it, where and when.
type Package struct {
	Format  string // of Formats
	Arch    string // amd64, arm64
	Version string // v1.2.3
	// Time of everything in it: that of the commit.
	Time time.Time
	// Deploy is the directory deploy of the tree, and Programs one with refit-agent and refit-executor.
	Deploy, Programs string
}

// Write makes the package in a directory and returns its path.
func (p Package) Write(dir string) (path string, err error) {
	packager, err := nfpm.Get(p.Format)
	if err != nil {
		return "", fmt.Errorf("finding the packager: %w", err)
	}
	info := p.info()
	if err := nfpm.PrepareForPackager(info, p.Format); err != nil {
		return "", fmt.Errorf("checking what the %s is made of: %w", p.Format, err)
	}
	path = filepath.Join(dir, packager.ConventionalFileName(info))
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return "", fmt.Errorf("creating the package: %w", err)
	}
	if err := errors.Join(packager.Package(info, out), out.Close()); err != nil {
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	return path, nil
}

func (p Package) info() *nfpm.Info {
	info := &nfpm.Info{
		Name: name, Arch: p.Arch, Platform: "linux", Version: PackageVersion(p.Version), VersionSchema: "none", Release: "1",
		Section: "admin", Priority: "optional", License: "Apache-2.0", Homepage: "https://github.com/refit-dev/refit",
		Maintainer:  "The Refit authors <packages@refit.dev>",
		Description: "Keeps a Kubernetes host at declared versions, in place\nThe agent enforces the host's Machine and reports what runs; the executor carries out one upgrade, step by step, and undoes what fails.",
		MTime:       p.Time.UTC(), DisableGlobbing: true,
		Overridables: nfpm.Overridables{Depends: []string{"systemd", "dbus"}, Contents: p.contents(), Umask: 0o022},
	}
	if p.Format == "deb" {
		p.deb(info)
	} else {
		p.rpm(info)
	}
	return info
}

func (p Package) deb(info *nfpm.Info) {
	info.Depends = append(info.Depends, "init-system-helpers (>= 1.54)")
	info.Deb = nfpm.Deb{Compression: "xz"} // read by every dpkg; zstd is not by Debian 11
	info.Scripts = nfpm.Scripts{PostInstall: p.script("postinst"), PreRemove: p.script("prerm"), PostRemove: p.script("postrm")}
}

func (p Package) rpm(info *nfpm.Info) {
	info.RPM = nfpm.RPM{BuildHost: "refit.dev", Summary: "Keeps a Kubernetes host at declared versions, in place", Compression: "xz"}
	info.Scripts = nfpm.Scripts{PostInstall: p.script("post"), PreRemove: p.script("preun"), PostRemove: p.script("postun")}
}

func (p Package) script(name string) string {
	return filepath.Join(p.Deploy, "packages", p.Format, name)
}

func (p Package) contents() files.Contents {
	out := files.Contents{
		p.file(filepath.Join(p.Programs, "refit-agent"), "/usr/bin/refit-agent", 0o755, ""),
		p.file(filepath.Join(p.Programs, "refit-executor"), "/usr/bin/refit-executor", 0o755, ""),
		p.file(filepath.Join(p.Deploy, "systemd/refit-agent.service"), "/usr/lib/systemd/system/refit-agent.service", 0o644, ""),
		p.file(filepath.Join(p.Deploy, "systemd/refit-resume.service"), "/usr/lib/systemd/system/refit-resume.service", 0o644, ""),
		p.file(filepath.Join(p.Deploy, "systemd/agent.yaml"), "/etc/refit/agent.yaml", 0o644, files.TypeConfigNoReplace),
		{Destination: "/etc/refit", Type: files.TypeDir, FileInfo: p.as(0o755)},
	}
	if p.Format == "deb" {
		source := filepath.Join(p.Deploy, "packages/needrestart.conf")
		out = append(out, p.file(source, "/etc/needrestart/conf.d/refit.conf", 0o644, files.TypeConfigNoReplace))
	}
	return out
}

func (p Package) file(source, destination string, mode os.FileMode, kind string) *files.Content {
	return &files.Content{Source: source, Destination: destination, Type: kind, FileInfo: p.as(mode)}
}

// as fixes all that would else be taken from the file at hand.
func (p Package) as(mode os.FileMode) *files.ContentFileInfo {
	return &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: p.Time.UTC()}
}
