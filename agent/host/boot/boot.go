// Package boot tells one boot of the host from another, and asks for a new one.
package boot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Rebooter asks the service manager for a reboot.
type Rebooter interface {
	Reboot(ctx context.Context) error
}

// Boot is the boot that the host under Root is in.
type Boot struct {
	Root string
	Rebooter
}

// ID is the kernel's id of this boot.
func (b Boot) ID(context.Context) (string, error) {
	data, err := os.ReadFile(filepath.Join(b.Root, "proc/sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
