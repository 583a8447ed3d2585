// Package checkout finds the source tree that a test runs in. It does not ask the
// compiler, which forgets paths when it builds with -trimpath.
package checkout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Root is the directory of the go.mod above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("there is no go.mod above the working directory: run this inside a checkout of Refit")
		}
		dir = filepath.Dir(dir)
	}
}
