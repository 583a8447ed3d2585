package apt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// fetch puts a file with a known digest into a directory. One that is there already is not fetched again.
func (a *Apt) fetch(ctx context.Context, uri, sha256, target string) error {
	err := packagefile.Verify(target, sha256)
	if err == nil {
		return nil
	}
	var mismatch *upgrade.Blocked
	if !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &mismatch) {
		return err
	}
	partial := a.state("apt/download", filepath.Base(target))
	if err := a.download(ctx, uri, sha256, partial); err != nil {
		return err
	}
	defer os.Remove(partial) //nolint:errcheck // a leftover is overwritten next time
	if err := packagefile.Verify(partial, sha256); err != nil {
		return err
	}
	return files.CopyAtomic(target, partial, 0o644)
}

// download uses apt's own transports, so that its proxies, credentials and client
// certificates apply; apt checks the digest, and we check it again.
func (a *Apt) download(ctx context.Context, uri, sha256, target string) error {
	if err := checkURI(uri); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("making the download directory: %w", err)
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an unfinished download: %w", err)
	}
	argv := a.apt(aptHelper, append(a.private(), "download-file", uri, target, "SHA256:"+sha256)...)
	result, err := a.run(ctx, a.InstallTimeout, argv)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("downloading %s: %w", uri, err)
	}
	return fetchFailure("downloading "+uri, result.Output(), err)
}

// control reads name and version out of a package file.
func (a *Apt) control(ctx context.Context, path string) (name, version string, err error) {
	result, err := a.Runner.Run(ctx, command.Command{
		Argv: []string{"dpkg-deb", "--show", "--showformat", "${Package}\t${Version}\t", path}, Timeout: queryTimeout,
	})
	if err != nil {
		return "", "", fmt.Errorf("reading the package file %s: %w", path, err)
	}
	return cutTwo(result.Stdout)
}
