package artefacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the packager nfpm.Get("deb") returns
	"github.com/goreleaser/nfpm/v2/files"
)

// debRevision changes when the way packages are packed changes; what is in them changes the recipe by itself.
const debRevision = "1"

// debBuild is one run of the packager: every package of one release in one packaging revision.
type debBuild struct {
	name     string // kubernetes, containerd
	upstream string // v1.37.2
	revision string // 1.1
	repo     string // directory below AptDir
	packages []debPackage
}

type debPackage struct {
	name, description string
	binaries          []string // of the cache entry, into /usr/bin
	depends           []string
	provides          []string
	conflicts         []string
	replaces          []string
	dirs              []string
	texts             map[string]string // path: content
	postinst          string
	prerm             string
	postrm            string
}

// version is that of the package: 1.37.2-1.1.
func (b debBuild) version() string { return strings.TrimPrefix(b.upstream, "v") + "-" + b.revision }

func (b debBuild) entry() string {
	return fmt.Sprintf("debs/%s-%s-%s", b.name, b.version(), recipe(debRevision, fmt.Sprintf("%v", b.packages)))
}

func (m *maker) debItems() ([]item, error) {
	var items []item
	for _, b := range m.debBuilds() {
		items = append(items, item{
			name: fmt.Sprintf("packages %s %s", b.name, b.version()), entry: b.entry(), eta: 5 * time.Second,
			make: func(_ context.Context, w workplace) error { return m.makeDebs(w, b) },
		})
	}
	return items, nil
}

// debBuilds lists every release once. The newest Kubernetes comes in a second revision as well, as happens when a
// release is packaged twice: whoever composes package versions by hand picks the wrong one.
func (m *maker) debBuilds() []debBuild {
	var all []debBuild
	for _, v := range m.Kubernetes {
		b := debBuild{name: "kubernetes", upstream: v, revision: "1.1", repo: "kubernetes/" + minorOf(v) + "/deb", packages: kubernetesPackages}
		all = append(all, b)
		if v == newest(m.Kubernetes) {
			b.revision = "2.1"
			all = append(all, b)
		}
	}
	for _, v := range m.Containerd {
		all = append(all, debBuild{name: "containerd", upstream: v, revision: "1", repo: "containerd/deb", packages: containerdPackages})
	}
	return all
}

func (m *maker) makeDebs(w workplace, b debBuild) error {
	for _, p := range b.packages {
		w.note("packing " + p.name)
		if err := m.makeDeb(w.dir, b, p); err != nil {
			return fmt.Errorf("packing %s: %w", p.name, err)
		}
	}
	return nil
}

func (m *maker) makeDeb(dir string, b debBuild, p debPackage) (err error) {
	scratch, err := os.MkdirTemp(dir, "content")
	if err != nil {
		return fmt.Errorf("creating directory for generated files: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	info, err := p.info(b, m.cache.path(b.name+"/"+b.upstream, "bin"), scratch)
	if err != nil {
		return err
	}
	packager, err := nfpm.Get("deb")
	if err != nil {
		return fmt.Errorf("finding packager: %w", err)
	}
	out, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s_%s_%s.deb", p.name, b.version(), runtime.GOARCH)))
	if err != nil {
		return fmt.Errorf("creating package file: %w", err)
	}
	return errors.Join(packager.Package(info, out), out.Close())
}

func (p debPackage) info(b debBuild, bin, scratch string) (*nfpm.Info, error) {
	info := &nfpm.Info{
		Name: p.name, Arch: runtime.GOARCH, Platform: "linux", Version: b.version(), VersionSchema: "none",
		Section: "admin", Priority: "optional", Maintainer: "Refit test fleet <fleet@refit.dev>", Description: p.description,
		MTime: time.Unix(0, 0).UTC(),
		Overridables: nfpm.Overridables{
			Depends: p.depends, Provides: p.provides, Conflicts: p.conflicts, Replaces: p.replaces,
			Deb: nfpm.Deb{Compression: "zstd:fastest"},
		},
	}
	for _, name := range p.binaries {
		info.Contents = append(info.Contents, file(filepath.Join(bin, name), "/usr/bin/"+name, 0o755))
	}
	for _, dir := range p.dirs {
		info.Contents = append(info.Contents, &files.Content{Destination: dir, Type: files.TypeDir})
	}
	if err := p.addTexts(info, scratch); err != nil {
		return nil, err
	}
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return nil, fmt.Errorf("checking package description: %w", err)
	}
	return info, nil
}

// addTexts writes generated files and maintainer scripts where the packager can read them.
func (p debPackage) addTexts(info *nfpm.Info, scratch string) error {
	for path, text := range p.texts {
		source := filepath.Join(scratch, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		info.Contents = append(info.Contents, file(source, path, 0o644))
	}
	for name, script := range map[string]struct {
		text string
		path *string
	}{
		"postinst": {p.postinst, &info.Scripts.PostInstall},
		"prerm":    {p.prerm, &info.Scripts.PreRemove},
		"postrm":   {p.postrm, &info.Scripts.PostRemove},
	} {
		if script.text == "" {
			continue
		}
		*script.path = filepath.Join(scratch, name)
		if err := os.WriteFile(*script.path, []byte(script.text), 0o755); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

func file(source, destination string, mode os.FileMode) *files.Content {
	return &files.Content{Source: source, Destination: destination, FileInfo: &files.ContentFileInfo{Mode: mode}}
}
