package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// kernelSettings are settings of the one kernel that a kubelet or a booting host changes for all.
var kernelSettings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "vm/max_map_count", "kernel/panic", "kernel/panic_on_oops", "kernel/printk",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "kernel/pid_max",
	"fs/inotify/max_user_instances", "fs/inotify/max_user_watches", "net/netfilter/nf_conntrack_max",
}

// procSys is where sysctls are files.
const procSys = "/proc/sys"

// inotifyInstances is enough for a dozen hosts: every systemd, kubelet and container runtime of all of them takes from the
// same user's 128.
const inotifyInstances = "8192"

// RecordKernelSettings notes the machine's settings in file, unless a fleet that is already up has done so, and raises the
// limits that a fleet needs.
func RecordKernelSettings(file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	seen := map[string]string{}
	for _, name := range kernelSettings {
		value, err := os.ReadFile(filepath.Join(procSys, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("recording kernel setting %s: %w", name, err)
		}
		seen[name] = strings.TrimSpace(string(value))
	}
	data, err := json.MarshalIndent(seen, "", "  ")
	if err != nil {
		return fmt.Errorf("recording the kernel settings: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("recording the kernel settings: %w", err)
	}
	if err := os.WriteFile(file+".new", data, 0o644); err != nil {
		return fmt.Errorf("recording the kernel settings: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("recording the kernel settings: %w", err)
	}
	return raise("fs/inotify/max_user_instances", inotifyInstances)
}

func raise(name, value string) error {
	if err := os.WriteFile(filepath.Join(procSys, name), []byte(value), 0); err != nil {
		return fmt.Errorf("setting %s to %s: %w", name, value, err)
	}
	return nil
}

// RestoreKernelSettings puts the settings of file back and removes it; called when the last fleet goes.
func RestoreKernelSettings(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restoring the kernel settings: %w", err)
	}
	var seen map[string]string
	if err := json.Unmarshal(data, &seen); err != nil {
		return fmt.Errorf("restoring the kernel settings from %s: %w", file, err)
	}
	var errs []error
	for name, value := range seen {
		now, err := os.ReadFile(filepath.Join(procSys, name))
		if err != nil || strings.TrimSpace(string(now)) != value {
			errs = append(errs, raise(name, value))
		}
	}
	return errors.Join(append(errs, os.Remove(file))...)
}
