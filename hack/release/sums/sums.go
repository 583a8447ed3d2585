// Package sums writes and checks the digests of a release.
package sums

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// File has the digests of all other files of its directory, as sha256sum writes and checks them.
const File = "SHA256SUMS"

// Write makes File of a directory.
func Write(dir string) error {
	names, err := files(dir)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, name := range names {
		sum, err := digest(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, name)
	}
	if err := os.WriteFile(filepath.Join(dir, File), []byte(out.String()), 0o644); err != nil {
		return fmt.Errorf("writing the digests: %w", err)
	}
	return nil
}

// Check compares a directory with its File: nothing differs, nothing is missing, and nothing is there beside it.
func Check(dir string) error {
	text, err := os.Open(filepath.Join(dir, File))
	if err != nil {
		return fmt.Errorf("reading the digests: %w", err)
	}
	defer text.Close()
	wanted, errs := map[string]bool{}, []error{}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		want, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || name != filepath.Base(name) {
			errs = append(errs, fmt.Errorf("%s has a line that is none of a digest and a file name: %q", File, lines.Text()))
			continue
		}
		wanted[name] = true
		if have, err := digest(filepath.Join(dir, name)); err != nil {
			errs = append(errs, err)
		} else if have != want {
			errs = append(errs, fmt.Errorf("%s has digest %s, not %s", name, have, want))
		}
	}
	names, err := files(dir)
	for _, name := range names {
		if !wanted[name] {
			errs = append(errs, fmt.Errorf("%s has no digest in %s", name, File))
		}
	}
	if len(wanted) == 0 {
		errs = append(errs, fmt.Errorf("%s names no file", File))
	}
	return errors.Join(append(errs, err)...)
}

func files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, fmt.Errorf("listing the release: %w", err)
	}
	var out []string
	for _, e := range entries {
		if e.Name() != File {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading for its digest: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("reading %s for its digest: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
