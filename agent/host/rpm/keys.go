package rpm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/files"
)

var validKeyring = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,100}$`)

// armoredKey is one public key block.
var armoredKey = regexp.MustCompile(`(?s)-----BEGIN PGP PUBLIC KEY BLOCK-----.*?-----END PGP PUBLIC KEY BLOCK-----`)

// keys are the public keys of a source, armoured or binary, one keyring each. A key never
// comes with a plan and is never fetched: it is a file on the host, or one that rpm has
// been told to trust. That is so too for a source whose file names the key by a URL.
func (r *RPM) keys(ctx context.Context, signedBy string) ([][]byte, error) {
	var rings [][]byte
	trusted := signedBy == ""
	for _, name := range words(signedBy) {
		if strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://") {
			trusted = true
			continue
		}
		ring, err := r.keyring(r.expand(ctx, name))
		if err != nil {
			return nil, err
		}
		rings = append(rings, ring)
	}
	if !trusted {
		return rings, nil
	}
	known, err := r.trustedKeys(ctx)
	if err != nil {
		return nil, err
	}
	if rings = append(rings, known...); len(rings) == 0 {
		return nil, refuse("KeyringMissing", "rpm trusts no key on this host: import the key of the repository with `rpm --import`, or name a key file in %s", r.dialect.keyringDirs[0])
	}
	return rings, nil
}

// keyring reads a key file that is on the host already.
func (r *RPM) keyring(name string) ([]byte, error) {
	file, err := r.keyFile(name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(r.path(file))
	if err != nil {
		return nil, fmt.Errorf("reading a keyring: %w", err)
	}
	return data, nil
}

// keyFile finds a key file by name or by path, as the host calls it.
func (r *RPM) keyFile(name string) (string, error) {
	path := strings.TrimPrefix(name, "file://")
	var places []string
	switch {
	case strings.HasPrefix(path, "/"):
		places = []string{filepath.Clean(path)}
	case !validKeyring.MatchString(name):
		return "", refuse("KeyringInvalid", "keyring %q: want the name of a key file on the host, such as kubernetes, or its path", name)
	default:
		for _, dir := range r.dialect.keyringDirs {
			for _, file := range []string{name, "RPM-GPG-KEY-" + name} {
				for _, suffix := range []string{"", ".asc", ".gpg", ".key"} {
					places = append(places, filepath.Join(dir, file+suffix))
				}
			}
		}
	}
	for _, place := range places {
		if info, err := os.Stat(r.path(place)); err == nil && info.Mode().IsRegular() {
			return place, nil
		}
	}
	return "", refuse("KeyringMissing", "keyring %q is not on the host: put it into %s as %s.asc", name, r.dialect.keyringDirs[0], filepath.Base(name))
}

// trustedKeys are those that were imported into rpm's database.
func (r *RPM) trustedKeys(ctx context.Context) ([][]byte, error) {
	result, err := r.run(ctx, queryTimeout, r.rpm("rpm", "-q", "--qf", `%{DESCRIPTION}\n`, "gpg-pubkey"))
	if err != nil && command.ExitCode(err) != 1 { // 1: there are none
		return nil, fmt.Errorf("asking rpm for the keys it trusts: %w", err)
	}
	var rings [][]byte
	for _, block := range armoredKey.FindAllString(result.Stdout, -1) {
		rings = append(rings, []byte(block))
	}
	return rings, nil
}

// signed checks a detached signature by the keys of a source.
func signed(what string, data, signature []byte, rings [][]byte) error {
	var keys openpgp.EntityList
	for _, ring := range rings {
		// One that is not understood is one that signs nothing.
		if bytes.Contains(ring, []byte("BEGIN PGP")) {
			for _, block := range armoredKey.FindAll(ring, -1) {
				found, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(block))
				if err == nil {
					keys = append(keys, found...)
				}
			}
			continue
		}
		if found, err := openpgp.ReadKeyRing(bytes.NewReader(ring)); err == nil {
			keys = append(keys, found...)
		}
	}
	var err error
	if bytes.Contains(signature, []byte("BEGIN PGP SIGNATURE")) {
		_, err = openpgp.CheckArmoredDetachedSignature(keys, bytes.NewReader(data), bytes.NewReader(signature), nil)
	} else {
		_, err = openpgp.CheckDetachedSignature(keys, bytes.NewReader(data), bytes.NewReader(signature), nil)
	}
	if err != nil {
		return refuse("RepoSignature", "the signature of %s does not hold by the keys of its source: %v; renew the repository's key on the host; signature checks are never turned off", what, err)
	}
	return nil
}

// checkPackage has rpm check the signature of a package file, by the keys of its source
// alone: they are in a database of their own for that.
func (r *RPM) checkPackage(ctx context.Context, path string, rings [][]byte) (err error) {
	if err := files.PrivateDir(r.state("rpm")); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(r.state("rpm"), "keys-")
	if err != nil {
		return fmt.Errorf("making a keyring to check a package with: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db := []string{"--dbpath=" + filepath.Join(dir, "db")}
	for i, ring := range rings {
		file := filepath.Join(dir, fmt.Sprintf("%d.asc", i))
		if err := os.WriteFile(file, ring, 0o600); err != nil {
			return fmt.Errorf("writing a keyring to check a package with: %w", err)
		}
		argv := append(append([]string{"rpmkeys"}, db...), "--import", file)
		if _, err := r.run(ctx, queryTimeout, argv); err != nil && len(rings) == 1 {
			return refuse("KeyringInvalid", "rpm does not understand the key of the package source: %v", err)
		}
	}
	argv := append(append([]string{"rpmkeys"}, db...), "--define=_pkgverify_level all", "--checksig", "--verbose", "--", path)
	result, err := r.run(ctx, queryTimeout, argv)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("checking the signature of %s: %w", path, err)
	}
	if err != nil {
		return refuse("RepoSignature", "the signature of the package file %s does not hold by the keys of its source: %s; signature checks are never turned off",
			path, command.Tail(strings.Join(strings.Fields(result.Output()), " "), 600))
	}
	return nil
}
