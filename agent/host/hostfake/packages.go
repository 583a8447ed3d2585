package hostfake

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

type packages struct{ h *Host }

// Digest of the file of a package version, the same wherever the file is.
func Digest(name, version string) string {
	return fmt.Sprintf("%064x", []byte(fmt.Sprintf("%.32s", name+"="+version)))
}

// Install can be cut off while a package is unpacked, which a repair does not cure, and
// before it is configured, which one does.
func (p packages) Install(_ context.Context, changes []upgrade.PackageChange, dir string) error {
	label := "install " + describe(changes)
	return p.h.call(label, func() error {
		if err := p.check(changes, dir); err != nil {
			return err
		}
		for _, c := range changes {
			p.half(c)
			p.h.amid(label)
			p.unpack(c)
			p.h.amid(label)
		}
		p.configure()
		return nil
	})
}

func (p packages) check(changes []upgrade.PackageChange, dir string) error {
	replaced := map[string]bool{}
	for _, c := range changes {
		replaced[c.Name] = true
		switch {
		case p.h.Packages[c.Name].Held:
			return fmt.Errorf("held packages were changed: %s", c.Name)
		case c.To != "" && c.SHA256 != Digest(c.Name, c.To):
			return fmt.Errorf("digest of %s does not match", c.File)
		case dir == "/backup" && c.To != "" && !p.h.Kept[c.Name+" "+c.To]:
			return fmt.Errorf("no file %s in %s", c.File, dir)
		}
	}
	for name, pkg := range p.h.Packages {
		if pkg.State != installed && (pkg.State != halfInstalled || !replaced[name]) {
			return fmt.Errorf("dpkg was interrupted: %s is %s", name, pkg.State)
		}
	}
	return nil
}

const (
	installed      = "installed"
	halfConfigured = "half-configured"
	halfInstalled  = "half-installed"
)

func (p packages) half(c upgrade.PackageChange) {
	pkg := p.h.Packages[c.Name]
	pkg.State = halfInstalled
	p.h.Packages[c.Name] = pkg
}

func (p packages) unpack(c upgrade.PackageChange) {
	p.h.Effects["unpack "+c.Name+" "+c.To]++
	if c.To == "" {
		delete(p.h.Packages, c.Name)
		return
	}
	p.h.Packages[c.Name] = Package{Version: c.To, State: halfConfigured}
}

func (p packages) configure() {
	for name, pkg := range p.h.Packages {
		if pkg.State == halfConfigured {
			pkg.State = installed
			p.h.Packages[name] = pkg
		}
	}
}

func (p packages) SetHold(_ context.Context, names []string, held bool) error {
	return p.h.call(fmt.Sprintf("hold=%v %s", held, strings.Join(names, ",")), func() error {
		for _, name := range names {
			pkg, ok := p.h.Packages[name]
			if !ok {
				return fmt.Errorf("no package %s", name)
			}
			pkg.Held = held
			p.h.Packages[name] = pkg
		}
		return nil
	})
}

func (p packages) Query(_ context.Context, names []string) (found []upgrade.InstalledPackage, err error) {
	err = p.h.call("query "+strings.Join(names, ","), func() error {
		for _, name := range names {
			if pkg, ok := p.h.Packages[name]; ok {
				found = append(found, upgrade.InstalledPackage{Name: name, Version: pkg.Version, State: pkg.State})
			}
		}
		return nil
	})
	return found, err
}

func (p packages) Repair(context.Context) error {
	return p.h.call("repair", func() error {
		p.configure()
		for name, pkg := range p.h.Packages {
			if pkg.State != installed {
				return fmt.Errorf("dpkg --configure -a: %s is %s", name, pkg.State)
			}
		}
		return nil
	})
}

type sources struct{ h *Host }

func (s sources) Switch(_ context.Context, c upgrade.SourceChange) error {
	return s.h.call("switch "+c.File+" "+c.To, func() error {
		now := s.h.Sources[c.File]
		if now != c.From && now != c.To {
			return fmt.Errorf("%s names %s, neither %s nor %s", c.File, now, c.From, c.To)
		}
		s.h.Sources[c.File] = c.To
		return nil
	})
}

type backups struct{ h *Host }

func (b backups) Find(_ context.Context, name, version string) (file, digest string, err error) {
	err = b.h.call("find backup of "+name+" "+version, func() error {
		if !b.h.Kept[name+" "+version] {
			return fs.ErrNotExist
		}
		file, digest = filepath.Base(name+"_"+version+".deb"), Digest(name, version)
		return nil
	})
	return file, digest, err
}

func describe(changes []upgrade.PackageChange) string {
	texts := make([]string, 0, len(changes))
	for _, c := range changes {
		texts = append(texts, c.Name+"="+c.To)
	}
	sort.Strings(texts)
	return strings.Join(texts, ",")
}
