package apiserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	envBinaries = "REFIT_TEST_BIN"
	envRequire  = "REFIT_REQUIRE_API"
	envCache    = "REFIT_FLEET_CACHE"
)

// ErrNoBinaries says that the machine has no kube-apiserver and etcd to test against.
var ErrNoBinaries = errors.New("no kube-apiserver and etcd found")

type binaries struct{ apiserver, etcd string }

func findBinaries() (binaries, error) {
	if dir := os.Getenv(envBinaries); dir != "" {
		return inDirs(dir, dir)
	}
	cache, err := fleetCache()
	if err != nil {
		return binaries{}, err
	}
	return inDirs(
		filepath.Join(newest(filepath.Join(cache, "kubernetes")), "bin"),
		filepath.Join(newest(filepath.Join(cache, "etcd")), "bin"),
	)
}

func inDirs(kubernetes, etcd string) (binaries, error) {
	b := binaries{apiserver: filepath.Join(kubernetes, "kube-apiserver"), etcd: filepath.Join(etcd, "etcd")}
	for _, path := range []string{b.apiserver, b.etcd} {
		if _, err := os.Stat(path); err != nil {
			return b, fmt.Errorf("%w: %w: set %s to a directory that has both, or fill the fleet cache", ErrNoBinaries, err, envBinaries)
		}
	}
	return b, nil
}

func fleetCache() (string, error) {
	if dir := os.Getenv(envCache); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: finding the fleet cache: %w", ErrNoBinaries, err)
	}
	return filepath.Join(dir, "refit-fleet"), nil
}

// newest is the entry of dir with the highest version, or a name that does not exist.
func newest(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return filepath.Join(dir, "none")
	}
	latest := slices.MaxFunc(entries, func(a, b os.DirEntry) int { return compareVersions(a.Name(), b.Name()) })
	return filepath.Join(dir, latest.Name())
}

func compareVersions(a, b string) int {
	left, err := version.ParseGeneric(a)
	if err != nil {
		return strings.Compare(a, b)
	}
	order, err := left.Compare(b)
	if err != nil {
		return strings.Compare(a, b)
	}
	return order
}
