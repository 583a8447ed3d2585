package artefacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// rootSuite is the Debian release of the hosts.
const rootSuite = "bookworm"

// rootPackages is what a host has before the fleet installs a runtime and Kubernetes on it.
var rootPackages = []string{
	"systemd", "systemd-sysv", "dbus", "apt", "gpgv", "ca-certificates", "openssl", "netbase",
	"iproute2", "iptables", "nftables", "procps", "kmod", "util-linux", "mount",
	"conntrack", "ethtool", "socat", "containernetworking-plugins", "runc",
}

// maskedUnits make no sense on a host that shares its kernel, its disks and its console with the machine.
var maskedUnits = []string{
	"console-getty.service", "getty@.service", "container-getty@.service", "getty.target", "systemd-resolved.service",
	"apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer",
	"systemd-timesyncd.service", "systemd-udevd.service", "nftables.service",
}

// rootRecipe changes with everything that changes the result; rootRevision with what the code below does.
const rootRevision = "1"

func rootfsEntry() string {
	return "rootfs/" + rootSuite + "-" + recipe(append(append([]string{rootRevision, rootSuite}, rootPackages...), maskedUnits...)...)
}

// recipe is a short digest of what an entry is made from.
func recipe(inputs ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(inputs, "\x00")))
	return hex.EncodeToString(sum[:6])
}

func (m *maker) rootfsItems() ([]item, error) {
	return []item{{name: "root filesystem (Debian " + rootSuite + ")", entry: rootfsEntry(), eta: 90 * time.Second, make: makeRootfs}}, nil
}

func makeRootfs(ctx context.Context, w workplace) error {
	root := filepath.Join(w.dir, "root")
	sources := filepath.Join(w.dir, "mirrors")
	text, err := suiteSources("/etc/apt", rootSuite)
	if err != nil {
		return err
	}
	if err := os.WriteFile(sources, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing apt sources: %w", err)
	}
	options, err := aptOptions(ctx)
	if err != nil {
		return err
	}
	argv := append([]string{"mmdebstrap", "--mode=root", "--variant=minbase", "--include=" + strings.Join(rootPackages, ",")}, options...)
	for _, tree := range []string{"doc", "man", "info", "locale"} {
		argv = append(argv, "--dpkgopt=path-exclude=/usr/share/"+tree+"/*")
	}
	argv = append(argv, rootSuite, root, sources)
	if err := (command{log: w.log, argv: argv}).run(ctx); err != nil {
		return err
	}
	return errors.Join(neutral(root), os.Remove(sources))
}

// aptOptions hands the machine's own ways of reaching its mirrors (proxies, clock checks) to the bootstrap.
func aptOptions(ctx context.Context) ([]string, error) {
	out, err := command{argv: []string{"apt-config", "dump", "--no-empty", "--format", "%F %v%n", "Acquire"}}.output(ctx)
	if err != nil {
		return nil, err
	}
	var options []string
	for _, line := range strings.Split(string(out), "\n") {
		name, value, ok := strings.Cut(line, " ")
		rest := strings.TrimPrefix(name, "Acquire::")
		wanted := strings.HasPrefix(rest, "Check-") || strings.HasPrefix(rest, "http") || rest == "Retries"
		if ok && wanted && !strings.HasSuffix(name, "::") {
			options = append(options, fmt.Sprintf("--aptopt=%s %q", name, value))
		}
	}
	return options, nil
}

// neutral removes what ties the tree to the machine it was made on, and what the hosts shall not start.
func neutral(root string) error {
	for _, path := range []string{
		"etc/apt/sources.list", "etc/apt/sources.list.d/*", "etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap",
		"var/lib/apt/lists/*", "var/cache/apt/*.bin", "var/cache/apt/archives/*.deb", "etc/hostname", "etc/resolv.conf",
		"var/log/*.log", "var/log/apt/*",
	} {
		if err := removeAll(filepath.Join(root, path)); err != nil {
			return err
		}
	}
	// An empty machine-id lets every host make its own at its first boot.
	for _, path := range []string{"etc/machine-id", "etc/resolv.conf"} {
		if err := os.WriteFile(filepath.Join(root, path), nil, 0o644); err != nil {
			return fmt.Errorf("emptying %s: %w", path, err)
		}
	}
	for _, dir := range []string{"etc/apt/keyrings", "etc/apt/sources.list.d", "etc/systemd/system"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return fmt.Errorf("creating %s: %w", dir, err)
		}
	}
	return mask(root)
}

func mask(root string) error {
	for _, unit := range maskedUnits {
		link := filepath.Join(root, "etc/systemd/system", unit)
		if err := errors.Join(removeAll(link), os.Symlink("/dev/null", link)); err != nil {
			return fmt.Errorf("masking %s: %w", unit, err)
		}
	}
	return nil
}

func removeAll(pattern string) error {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("listing %s: %w", pattern, err)
	}
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing: %w", err)
		}
	}
	return nil
}
