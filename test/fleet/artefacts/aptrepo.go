package artefacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// aptRevision changes when the layout or the fields of the repositories change.
const aptRevision = "1"

// aptEntry is named after the packages in it and the key that signs it. Empty while the key is missing.
func (m *maker) aptEntry() string {
	key, err := os.ReadFile(m.cache.path(keyringEntry, publicKeyFile))
	if err != nil {
		return ""
	}
	inputs := []string{aptRevision, string(key)}
	for _, b := range m.debBuilds() {
		inputs = append(inputs, b.repo, b.entry())
	}
	return "apt/" + recipe(inputs...)
}

func (m *maker) aptItems() ([]item, error) {
	return []item{{name: "apt repositories", entry: m.aptEntry(), eta: 5 * time.Second, make: m.makeApt}}, nil
}

func (m *maker) makeApt(ctx context.Context, w workplace) error {
	repos := map[string]int{}
	for _, b := range m.debBuilds() {
		linked, err := linkAll(m.cache.path(b.entry()), filepath.Join(w.dir, b.repo))
		if err != nil {
			return fmt.Errorf("filling repository %s: %w", b.repo, err)
		}
		repos[b.repo] += linked
	}
	key, err := m.cache.signingKey()
	if err != nil {
		return err
	}
	for repo, packages := range repos {
		w.note("indexing " + repo)
		if err := indexRepo(ctx, filepath.Join(w.dir, repo), repo, packages); err != nil {
			return fmt.Errorf("indexing repository %s: %w", repo, err)
		}
		if err := signRelease(key, filepath.Join(w.dir, repo)); err != nil {
			return fmt.Errorf("signing repository %s: %w", repo, err)
		}
	}
	return nil
}

// linkAll links the files of one directory into another and says how many there were.
func linkAll(from, to string) (int, error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return 0, fmt.Errorf("creating directory: %w", err)
	}
	found, err := os.ReadDir(from)
	if err != nil {
		return 0, fmt.Errorf("listing packages: %w", err)
	}
	for _, f := range found {
		if err := os.Link(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())); err != nil {
			return 0, fmt.Errorf("linking package: %w", err)
		}
	}
	return len(found), nil
}

// indexRepo writes the indices of a flat repository, like the public ones: suite "/", no components.
func indexRepo(ctx context.Context, dir, repo string, packages int) error {
	index, err := command{dir: dir, argv: []string{"apt-ftparchive", "packages", "."}}.output(ctx)
	if err != nil {
		return err
	}
	if listed := len(stanzas(string(index))); listed != packages {
		return fmt.Errorf("the index lists %d packages, the repository holds %d", listed, packages)
	}
	if err := writeIndex(dir, index); err != nil {
		return err
	}
	argv := []string{"apt-ftparchive"}
	for _, field := range []string{"Origin=refit-fleet:" + repo, "Label=refit-fleet", "Architectures=" + runtime.GOARCH} {
		argv = append(argv, "-o", "APT::FTPArchive::Release::"+field)
	}
	release, err := command{dir: dir, argv: append(argv, "release", ".")}.output(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "Release"), release, 0o644); err != nil {
		return fmt.Errorf("writing Release: %w", err)
	}
	return nil
}

func writeIndex(dir string, index []byte) error {
	if err := os.WriteFile(filepath.Join(dir, "Packages"), index, 0o644); err != nil {
		return fmt.Errorf("writing Packages: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, "Packages.gz"))
	if err != nil {
		return fmt.Errorf("creating Packages.gz: %w", err)
	}
	if err := errors.Join(compress(file, index), file.Close()); err != nil {
		return fmt.Errorf("writing Packages.gz: %w", err)
	}
	return nil
}
