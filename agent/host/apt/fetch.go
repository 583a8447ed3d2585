package apt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
)

// fetch puts a file with a known digest to a path. One that is there already is not fetched again.
func (a *Apt) fetch(ctx context.Context, uri, sha256, target string) error {
	return packagefile.Fetch(uri, sha256, target, a.state("apt/download"), func(partial string) error {
		return a.download(ctx, uri, sha256, partial)
	})
}

// download uses apt's own transports, so that its proxies, credentials and client
// certificates apply; apt checks the digest, and we check it again.
func (a *Apt) download(ctx context.Context, uri, sha256, target string) error {
	if err := checkURI(uri); err != nil {
		return err
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
